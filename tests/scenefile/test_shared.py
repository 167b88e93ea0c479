"""Checks that scenes of several simulators share name the place, what must hold, what was found, and what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib import image

from simphys.autograd.errors import InputError
from simphys.scenefile.section import Problem, Range, Section
from simphys.scenefile.shared import (
    FieldFileSection,
    check_accepted,
    check_cells,
    check_given,
    check_index,
    check_length,
    check_one_of,
    check_side,
    check_turn,
    check_unused,
    fill_cells,
    kinds_of_sides,
    place_lattice,
)


class Body(Section):
    mass: float | None = None
    density: float | None = None


class Bump(Section):
    centre: list[float]
    width: float
    height: float


def test_lists_have_an_element_for_each_thing_and_numbers_stand_for_all() -> None:
    given = [1.0, 2.0]
    assert [*check_length(("m",), given, 3, "body")] == [
        Problem(("m",), "must have 3 elements, one for each body", given, "It has 2: give 3.")
    ]
    assert not [*check_length(("m",), given, 2, "body"), *check_length(("m",), 1.0, 3, "body")]
    assert not [*check_length(("m",), None, 3, "body")]


@pytest.mark.parametrize(("what", "several"), [("node", "nodes"), ("axis", "axes"), ("body", "bodies")])
def test_indices_count_from_0(what: str, several: str) -> None:
    assert not [*check_index(("i",), 1, what, 2)]
    (found,) = check_index(("i",), 2, what, 2)
    assert found.constraint == f"must be the index of one of 2 {several}, counted from 0"
    assert found.remedy == "Give an index from 0 to 1."


def test_sides_are_those_of_the_grid() -> None:
    assert (
        not [*check_side(("s",), "y+", 2)]
        and next(check_side(("s",), "z-", 2)).remedy == "Its sides are x-, x+, y-, y+."
    )
    kinds = kinds_of_sides({"x-": "periodic", "y+": "open"}, 2, "closed")
    assert kinds == ("periodic", "closed", "closed", "open") and kinds_of_sides("open", 1, "closed") == ("open",) * 2


def test_sections_give_one_of_some_keys() -> None:
    (found,) = check_one_of(("r",), Range(first=0, last=1), "first", "last")
    assert (found.constraint, found.found) == ("needs one of first and last", "first and last")
    (found,) = check_one_of(("r",), Body(), "mass", "density")
    assert found.found == "none"
    assert not [*check_one_of(("r",), Body(), "mass", "density", optional=True)]


def test_keys_are_given_where_something_needs_them_and_nowhere_else() -> None:
    (found,) = check_given(("law", "power"), None, "a gas", needed=True, example="1.4")
    assert found == Problem(("law", "power"), "is needed by a gas", "nothing", "Add power = 1.4.")
    (found,) = check_given(("law", "power"), 1.4, "a gas", needed=False)
    assert found == Problem(("law", "power"), "belongs to a gas", 1.4, "Drop it.")
    assert not [*check_given(("p",), 1.4, "a gas", needed=True), *check_given(("p",), None, "a gas", needed=False)]
    assert not [*check_unused(("p",), [], "has no use")] and [*check_unused(("p",), [0], "has no use")]


def test_rotations_are_numbers_in_the_plane_and_lists_in_space() -> None:
    assert not [
        *check_turn(("r",), 0.1, 2, "an angle", "a vector"),
        *check_turn(("r",), None, 3, "an angle", "a vector"),
    ]
    (found,) = check_turn(("r",), 0.1, 3, "an angle", "a vector")
    assert (found.constraint, found.remedy) == ("in 3-D it is a vector", "Give a vector.")


def test_what_cannot_be_made_is_a_problem_of_its_key() -> None:
    def refuse() -> None:
        raise InputError("Ball.size", "one positive number", "two", "Give one.")

    assert [*check_accepted(("size",), refuse)] == [Problem(("size",), "one positive number", "two", "Give one.")]
    assert not [*check_accepted(("size",), lambda: None)]


def test_a_lattice_begins_at_its_origin_and_its_last_index_runs_fastest() -> None:
    position = place_lattice([1.0, 2.0], [2, 3], 0.5)
    assert position.tolist() == [[1, 2], [1, 2.5], [1, 3], [1.5, 2], [1.5, 2.5], [1.5, 3]]


def test_fields_come_from_numbers_bumps_and_files(tmp_path: Path) -> None:
    file, cells = tmp_path / "field.npy", [2, 3]
    np.save(file, np.arange(6.0).reshape(2, 3) - 1)
    given = FieldFileSection(file=str(file))
    assert fill_cells(cells, 2.0).tolist() == [[2.0] * 3] * 2 and fill_cells(cells, given)[1, 2] == 4
    assert not [*check_cells(("f",), cells, given), *check_cells(("f",), cells, 2.0, positive=True)]
    (found,) = check_cells(("f",), cells, given, positive=True)
    assert found.key == ("f", "file") and found.constraint == "must be above 0"
    assert str(found.found) == "-1 in cell [0, 0] of the file"
    (found,) = check_cells(("f",), [3, 3], given)
    assert found.constraint == "must have the shape [3, 3]" and str(file) in str(found.found)
    one, other = Bump(centre=[2.0, 2.0], width=0.5, height=3.0), Bump(centre=[0.0, 0.0], width=1.0, height=1.0)
    bumps = fill_cells(cells, [one, other], 2.0, 0.0)
    assert fill_cells(cells, [one], 4.0)[0, 0] == 3 and not [*check_cells(("f",), cells, [one, other])]
    assert bumps.shape == (2, 3) and bumps[1, 1] == pytest.approx(3 + np.exp(-8)) and bumps[0, 0] == pytest.approx(1)


def test_a_picture_has_the_values_of_its_greys(tmp_path: Path) -> None:
    file = tmp_path / "field.png"
    image.imsave(file, np.eye(2), cmap="gray", vmin=0, vmax=1)
    given = FieldFileSection(file=str(file), greys=[10.0, 50.0])
    assert fill_cells([2, 2], given) == pytest.approx(np.array([[10.0, 50.0], [50.0, 10.0]]))
    (found,) = check_cells(("f",), [2, 2], FieldFileSection(file=str(file)), positive=True)
    assert found.remedy == "Set `greys` to the values of black and white."
