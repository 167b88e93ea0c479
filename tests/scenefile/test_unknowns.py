"""Entries, start values and bounds of unknowns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.scenefile import ConfigError, UnknownSection, flat_entries, start_values, validate_unknowns

VALUES = {
    "stiffness": np.array([5.0, 6.0, 7.0]),
    "mass": np.ones(4),
    "position": np.arange(8.0).reshape(4, 2),
    "velocity": np.tile([1.0, -2.0], (4, 1)),
    "ground_height": np.array(0.5),
}


def unknown(**keys: Any) -> UnknownSection:
    return UnknownSection(**{"parameter": "stiffness", **keys})


def told(**unknowns: UnknownSection) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        validate_unknowns(unknowns, VALUES)
    return [str(error) for error in caught.value.errors]


@pytest.mark.parametrize(
    ("keys", "indices", "start"),
    [
        ({}, [0, 1, 2], [5.0, 6.0, 7.0]),
        ({"entries": [2, 0]}, [2, 0], [7.0, 5.0]),
        ({"entries": [2, 0], "start": 3.0}, [2, 0], [3.0, 3.0]),
        ({"entries": [2, 0], "start": [3.0, 4.0]}, [2, 0], [3.0, 4.0]),
        ({"tied": True, "start": 3.0}, [0, 1, 2], [3.0]),
        ({"parameter": "mass", "tied": True}, [0, 1, 2, 3], [1.0]),
        ({"parameter": "position", "tied": "rows", "start": [3.0, 4.0]}, list(range(8)), [3.0, 4.0]),
        ({"parameter": "position", "tied": "rows", "entries": [2, 1], "start": 3.0}, [4, 5, 2, 3], [3.0, 3.0]),
        ({"parameter": "velocity", "tied": "rows"}, list(range(8)), [1.0, -2.0]),
        ({"entries": {"first": 1, "last": 2}}, [1, 2], [6.0, 7.0]),
        ({"parameter": "velocity", "tied": "rows", "entries": {"first": 2, "last": 3}}, [4, 5, 6, 7], [1.0, -2.0]),
        ({"parameter": "position", "entries": [1]}, [2, 3], [2.0, 3.0]),
        ({"parameter": "position", "entries": [[1, 0], [3, 1]]}, [2, 7], [2.0, 7.0]),
        ({"parameter": "position", "entries": [[1, 0], 3]}, [2, 6, 7], [2.0, 6.0, 7.0]),
        ({"parameter": "position", "entries": [1, 2], "start": [[1, 2], [3, 4]]}, [2, 3, 4, 5], [1.0, 2.0, 3.0, 4.0]),
        ({"parameter": "ground_height"}, [0], [0.5]),
    ],
)
def test_entries_and_start_values_are_flattened_row_by_row(keys: Any, indices: list[int], start: list[float]) -> None:
    made = unknown(**keys)
    validate_unknowns({"label": made}, VALUES)
    assert flat_entries(made, VALUES[made.parameter].shape).tolist() == indices
    assert start_values(made, VALUES).tolist() == start


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (
            {"parameter": "stifness"},
            'k.parameter: must name a parameter, a state component or a control; found "stifness". Did you',
        ),
        (
            {"entries": [0, 3]},
            "k.entries.1: stiffness has the shape [3], counted from 0; found 3. Give indices below 3.",
        ),
        ({"entries": [[0, 0]]}, "k.entries.0: stiffness has the shape [3], counted from 0; found [0, 0]. "),
        (
            {"parameter": "position", "entries": [[0, 2]]},
            "k.entries.0: position has the shape [4, 2], counted from 0; found [0, 2]. Give indices below 4, or pairs",
        ),
        ({"parameter": "position", "entries": [[0]]}, "k.entries.0: position has the shape [4, 2], counted from 0; "),
        ({"entries": []}, "k.entries: must not be empty; found []. Leave entries out to take all of stiffness."),
        ({"parameter": "ground_height", "entries": [0]}, "k.entries: ground_height is a single number; found [0]. "),
        ({"entries": [1, 1]}, "k.entries: an entry is listed once; found [1, 1]. "),
        ({"parameter": "position", "entries": [1, [1, 0]]}, "k.entries: an entry is listed once; found [1, [1, 0]]. "),
        (
            {"entries": [0, 1], "start": [1.0, 2.0, 3.0]},
            "k.start: must be one number or 2 numbers, one for each entry; found [1.0, 2.0, 3.0]. Give one number",
        ),
        ({"tied": True, "start": [1.0, 2.0]}, "k.start: must be one number; found [1.0, 2.0]. "),
        ({"tied": True}, "k: tied entries share one start; found values from 5 to 7 in the scene. Give one number as"),
        (
            {"parameter": "position", "tied": "rows"},
            "k: tied rows share one start; found values from 0 to 7 in the scene. Give 2 numbers as start.",
        ),
        (
            {"parameter": "position", "tied": "rows", "start": [1.0, 2.0, 3.0]},
            "k.start: must be one number or 2 numbers, one for each element of a row; found [1.0, 2.0, 3.0]. ",
        ),
        (
            {"parameter": "velocity", "tied": "rows", "entries": [[0, 1]]},
            "k.tied: tied rows are whole rows of a field with rows; found entries inside of rows of velocity. Give ind",
        ),
        (
            {"entries": {"first": 1, "last": 3}},
            "k.entries.last: stiffness has the shape [3], counted from 0; found 3. G",
        ),
        ({"entries": {"first": 2, "last": 1}}, "k.entries.first: must not be beyond last = 1; found 2. Exchange them."),
        ({"tied": "rows"}, "k.tied: tied rows are whole rows of a field with rows; found stiffness of the shape [3]. "),
        (
            {"start": 8.0, "bounds": [0.1, 7.5]},
            "k.bounds: the bounds [0.1, 7.5] must include the start; found a start of 8. Widen the bounds or move the",
        ),
        ({"bounds": [5.5, 10.0]}, "k.bounds: the bounds [5.5, 10] must include the start; found a start of 5. "),
        ({"bounds": [2.0, 1.0]}, "k.bounds: the lower bound must be below the upper one; found [2.0, 1.0]. "),
        ({"bounds": [float("nan"), 1.0]}, "k.bounds: the lower bound must be below the upper one; found [NaN, 1.0]. "),
        (
            {"transform": "log", "start": 0.0},
            "k.start: the log transform needs a positive start; found a start of 0. Give a positive value, or use",
        ),
        (
            {"transform": "log", "parameter": "position"},
            "k: the log transform needs a positive start; found a start of",
        ),
        (
            {"transform": "log", "bounds": [-1.0, 10.0]},
            "k.bounds: the log transform needs bounds that are not negative; found [-1.0, 10.0]. Give a positive value",
        ),
    ],
)
def test_what_does_not_fit_its_field_is_told(keys: Any, line: str) -> None:
    (found,) = told(k=unknown(**keys))
    assert found.startswith(f"unknowns: unknowns.{line}")


def test_open_bounds_go_with_the_log_transform() -> None:
    validate_unknowns({"k": unknown(transform="log")}, VALUES)
    validate_unknowns({"k": unknown(transform="log", bounds=[0.0, 1e4])}, VALUES)


def test_an_entry_belongs_to_one_unknown() -> None:
    first = unknown(parameter="position", entries=[1])
    second = unknown(parameter="position", entries=[[0, 0], [1, 1]])
    (line,) = told(first=first, second=second)
    assert line == (
        "unknowns: unknowns.second.entries: an entry is unknown once; "
        "found position [1, 1], which is unknown in 'first' as well. Take it out of one of them."
    )


def test_the_problems_of_all_unknowns_are_told() -> None:
    assert len(told(a=unknown(entries=[9]), b=unknown(parameter="x"), c=unknown())) == 2


def test_an_unknown_of_nothing_is_told() -> None:
    """A scene without joints has no anchors to seek."""
    with pytest.raises(
        ConfigError, match=r"unknowns\.a\.parameter: must name numbers that the scene has.*anchor, of which"
    ):
        validate_unknowns({"a": unknown(parameter="anchor")}, {"anchor": np.zeros((0, 2))})
