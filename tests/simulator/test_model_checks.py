"""Models refuse numbers that they cannot be made of, by name, and take those of NumPy and lists for what they mean."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from simphys.autograd.errors import InputError
from simphys.nn import Controller
from simphys.simulator import Model
from simphys.simulator.model_checks import read_count, read_indices
from simphys.simulators.billiards import Billiards
from simphys.simulators.charges import Charges
from simphys.simulators.elastic import Elastic
from simphys.simulators.heat import Heat
from simphys.simulators.mass_spring import MassSpring
from simphys.simulators.molecular import Molecular
from simphys.simulators.mpm import MPM
from simphys.simulators.pendulum import Chain, Spherical
from simphys.simulators.rigid import RigidBodies, Sphere
from simphys.simulators.smoke import Smoke
from simphys.simulators.sph import SPH
from simphys.simulators.wave import Wave
from simphys.simulators.wave.shallow import ShallowWater

MODELS: dict[type[Model], Callable[..., Any]] = {
    Billiards: partial(Billiards, balls=2),
    Charges: partial(Charges, bodies=3, dim=2),
    Elastic: partial(Elastic, cells=(6, 5), spacing=1.0),
    Heat: partial(Heat, cells=(4, 3), spacing=1.0),
    MassSpring: partial(MassSpring, ends=np.array([[0, 1]]), pinned=np.zeros(2, bool), dim=2),
    Molecular: partial(Molecular, atoms=3, box=(9.0, 9.0), cutoff=2.5, switch_on=2.2, skin=0.3),
    MPM: partial(MPM, cells=(12, 12), spacing=0.1, particles=3),
    Chain: partial(Chain, links=2),
    Spherical: Spherical,
    RigidBodies: partial(RigidBodies, dim=2, shapes=((Sphere(0.1),), (Sphere(0.2),))),
    Smoke: partial(Smoke, cells=(6, 5), spacing=1.0),
    SPH: partial(SPH, fluid_count=3, wall_count=0, box=(9.0, 9.0), spacing=0.1, smoothing=0.15, skin=0.05),
    Wave: partial(Wave, cells=(6, 5), spacing=1.0),
    ShallowWater: partial(ShallowWater, cells=(4, 3), spacing=1.0),
}
GRIDS: list[type[Model]] = [Elastic, Heat, MPM, Smoke, Wave, ShallowWater]
COUNTS = [
    *((Billiards, "balls"), (Billiards, "max_impacts"), (Charges, "bodies"), (Charges, "dim"), (Chain, "links")),
    *((Elastic, "order"), (Elastic, "layer"), (Elastic, "sources"), (Elastic, "receivers"), (MassSpring, "dim")),
    *((MassSpring, "anchors"), (Molecular, "atoms"), (Molecular, "neighbours"), (Molecular, "seed")),
    *((Molecular, "bins"), (MPM, "particles"), (MPM, "margin"), (RigidBodies, "dim"), (RigidBodies, "sweeps")),
    *((Smoke, "sweeps"), (Smoke, "most_iterations"), (SPH, "fluid_count"), (SPH, "wall_count")),
    *((SPH, "neighbours"), (Wave, "order"), (Wave, "layer"), (Wave, "receivers")),
]
LENGTHS = [
    *((Molecular, "cutoff"), (RigidBodies, "slip_speed"), (SPH, "spacing")),
    *((SPH, "smoothing"), (SPH, "gauge_width"), (SPH, "breadth"), *((kind, "spacing") for kind in GRIDS)),
]
NOT_NEGATIVE = [
    *((Molecular, "skin"), (Molecular, "coulomb"), (Molecular, "damping"), (MPM, "skin"), (MPM, "mass_floor")),
    *((SPH, "skin"), (SPH, "diffusion"), (RigidBodies, "joint_correction")),
]


def make(kind: type[Model], **changes: Any) -> Any:
    return MODELS[kind](**{"dt": 0.01, **changes})


def refuse(kind: type[Model], name: str, value: Any) -> InputError:
    """Return the error for a value, which names the model, the field and the value."""
    with pytest.raises(InputError) as caught:
        make(kind, **{name: value})
    assert caught.value.source.startswith(f"{kind.__name__}.{name}")
    return caught.value


@pytest.mark.parametrize("value", [0, 0.0, -1e-3, np.nan, np.inf, "0.001", None, True, [0.1]])
@pytest.mark.parametrize("kind", MODELS)
def test_a_time_step_is_a_positive_number(kind: type[Model], value: Any) -> None:
    found = refuse(kind, "dt", value)
    assert found.constraint == "a number, positive and finite" and found.remedy == "Give one."


def test_a_text_is_shown_as_one() -> None:
    assert "found '0.01'" in str(refuse(Heat, "dt", "0.01"))
    assert "found '3'" in str(refuse(Charges, "bodies", "3"))
    assert "found '44'" in str(refuse(Heat, "cells", "44"))


@pytest.mark.parametrize("kind", MODELS)
def test_a_time_step_becomes_a_float(kind: type[Model]) -> None:
    for value in (1, np.float32(0.5), np.int64(2), Fraction(1, 4)):
        model = make(kind, dt=value)
        assert type(model.dt) is float and model.dt == value


@pytest.mark.parametrize(("kind", "name"), COUNTS, ids=lambda each: getattr(each, "__name__", each))
def test_a_count_is_a_whole_number(kind: type[Model], name: str) -> None:
    present = getattr(make(kind), name)
    for value in (float(present), 20.5, "3", None, True, -1, np.float64(present), np.nan):
        assert "a whole number, at least" in refuse(kind, name, value).constraint
    taken = getattr(make(kind, **{name: np.int64(present)}), name)
    assert type(taken) is int and taken == present


@pytest.mark.parametrize("kind", GRIDS)
def test_cells_are_positive_counts(kind: type[Model]) -> None:
    cells = make(kind).cells
    for given in (list(cells), np.array(cells), tuple(map(np.int64, cells))):
        model = make(kind, cells=given)
        assert model.cells == cells and [type(count) for count in model.cells] == [int] * len(cells)
        assert hash(model) == hash(make(kind))
        assert model.param_shapes() == make(kind).param_shapes()
    for value in (0, -4, 4.0, "4", None, True):
        assert refuse(kind, "cells", (cells[0], value)).source == f"{kind.__name__}.cells[1]"
    for value in (4, "44", None):
        assert "Give a tuple" in refuse(kind, "cells", value).remedy


@pytest.mark.parametrize(("kind", "name"), LENGTHS)
def test_a_length_is_positive_and_finite(kind: type[Model], name: str) -> None:
    for value in (0, -0.1, np.nan, np.inf, "1", None, 0.0):
        assert refuse(kind, name, value).constraint == "a number, positive and finite"


@pytest.mark.parametrize(("kind", "name"), NOT_NEGATIVE)
def test_some_numbers_may_be_zero(kind: type[Model], name: str) -> None:
    make(kind, **{name: 0})
    for value in (-0.1, np.nan, np.inf, "1"):
        assert refuse(kind, name, value).constraint == "a number, 0 or more and finite"


@pytest.mark.parametrize("kind", [Molecular, SPH])
def test_a_box_has_positive_lengths(kind: type[Model]) -> None:
    assert make(kind, box=[9, np.inf]).box == (9.0, np.inf)
    for box in (9.0, (9.0, 0.0), (9.0, -1.0), (9.0, np.nan), (9.0, -np.inf), (9.0, "9")):
        assert refuse(kind, "box", box).constraint == "a positive length for each axis, or inf"


def test_a_controller_has_counts() -> None:
    with pytest.raises(InputError, match=r"Controller\.waves: a whole number, at least 1; found 2\.0. Give 2, an int"):
        Controller(waves=2.0, hidden=3, goal=(0.0,))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "remedy"), [(2, "3 or more"), (3.0, "3, an int"), (3.5, "an int"), (2.0, "2, an int"), ("x", "an int")]
)
def test_a_remedy_tells_the_count_that_is_meant(value: Any, remedy: str) -> None:
    with pytest.raises(InputError) as caught:
        read_count("it", value, 3)
    assert caught.value.remedy == f"Give {remedy}."


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[0, 1], [1, -1]], r"node indices lie in 0\.\.2; found row 1: \[1, -1\]"),
        ([[0, 3]], r"node indices lie in 0\.\.2; found row 0: \[0, 3\]"),
        ([[0, 1], [2, 2]], r"each row names 2 different nodes; found row 1: \[2, 2\]"),
        ([0, 1], r"rows of 2 numbers of nodes; found shape \[2\]"),
        ([[0, 1, 2]], r"rows of 2 numbers of nodes; found shape \[1, 3\]"),
        ([[0.0, 1.0]], "whole numbers, .*; found"),
        ([[0, 1], [1]], "whole numbers, .*; found"),
        ([["0", "1"]], "whole numbers, .*; found"),
        ([[2**40, 1]], "whole numbers, of 32 bits; found"),
    ],
)
def test_indices_name_things_that_exist(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"it: {message}"):
        read_indices("it", given, width=2, count=3, noun="node")


def test_indices_may_be_a_list_or_empty() -> None:
    found = read_indices("it", [(2, 0)], width=2, count=3, noun="node")
    assert found.dtype == np.int32 and found.tolist() == [[2, 0]]
    empty: tuple[Any, ...] = ([], np.zeros((0, 2)), ())
    for nothing in empty:
        assert read_indices("it", nothing, width=2, count=3, noun="node").shape == (0, 2)


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        *((kind, {"cells": (6,) * 4}, "space has .* dimensions; found 4") for kind in GRIDS if kind is not Elastic),
        *((kind, {"box": (9.0,)}, "space has 2 or 3 dimensions; found 1") for kind in (Molecular, SPH)),
        (Charges, {"dim": 4}, "Charges.dim: space has 1, 2 or 3 dimensions; found 4"),
        (Smoke, {"grid": "square"}, r"Smoke.grid: must be one of \('staggered', 'collocated'\); found square"),
        (Heat, {"sides": ("fixed",) * 3}, r"Heat.sides: must hold 4 of .*, one for each side x-, x\+"),
        (Wave, {"boundaries": ("periodic", "zero") * 2}, "Wave.boundaries: opposite sides are periodic together"),
        (
            Wave,
            {"boundaries": ("absorbing",) * 4, "layer": 2},
            "Wave.layer_speed: absorbing layers have a width, a speed",
        ),
        (
            Elastic,
            {"sides": ("absorbing",) * 4, "layer": 1},
            "Elastic.layer_speed: absorbing layers have a width, a speed",
        ),
    ],
)
def test_dimensions_choices_sides_and_layers_are_checked(
    kind: type[Model], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        make(kind, **changes)
