"""The model of material points and its validation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd.errors import InputError
from simphys.simulators.mpm.collider import Collider
from simphys.simulators.mpm.laws import LAWS
from simphys.simulators.mpm.model import MPM, Params, State

SOUND: dict[str, Any] = {"cells": (16, 12), "spacing": 0.1, "dt": 1e-3, "particles": 3}


def test_defaults_are_those_of_the_docstring() -> None:
    model = MPM(**SOUND)
    assert model.walls == ("separating",) * 4 and model.skin == model.spacing and model.actuators == 0
    assert (model.dim, model.nodes, model.spins, model.rotations) == (2, 192, 1, 1)
    assert not model.is_plastic and model.width == 2 and model.control_shape() == (0,)
    space = MPM((8, 8, 9), 0.1, 1e-3, 1)
    assert (space.dim, space.nodes, space.spins, space.rotations) == (3, 576, 3, 4)


@pytest.mark.parametrize("law", LAWS)
def test_parameters_are_those_that_the_laws_read(law: str) -> None:
    model = MPM(**SOUND, laws=(law,))
    shapes, states = model.param_shapes(), model.state_shapes()
    assert set(shapes) == set(Params.names()) and set(states) == set(State.names())
    law_parameters = {name for each in LAWS.values() for name in each.PARAMETERS}
    for name in law_parameters:
        assert shapes[name] == ((3,) if name in LAWS[law].PARAMETERS else (0,))
    assert states["plastic"] == ((3,) if LAWS[law].HIDDEN else (0,))
    assert model.width == len(LAWS[law].COEFFICIENTS)


def test_of_several_laws_all_that_one_reads_is_there_and_the_widest_counts() -> None:
    model = MPM(**SOUND, laws=("fluid", "snow"))
    shapes = model.param_shapes()
    assert shapes["bulk_modulus"] == shapes["hardening"] == (3,) and shapes["friction_angle"] == (0,)
    assert model.is_plastic and model.width == 5


@pytest.mark.parametrize("dim", [2, 3])
def test_a_control_has_a_number_for_each_actuator_and_each_way_a_collider_moves(dim: int) -> None:
    colliders = Collider("sphere", (0.1,)), Collider("plane")
    actuator = np.array([1, -1, 0], np.int32)
    model = MPM((12,) * dim, 0.1, 1e-3, 3, actuator=actuator, colliders=colliders)
    assert model.control_shape() == (2 + 2 * (dim + (1 if dim == 2 else 3)),)
    assert model.state_shapes()["collider_rotation"] == (2, 1 if dim == 2 else 4)
    assert model.param_shapes()["collider_velocity"] == (2, dim)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cells": (16,)}, "2 or 3 dimensions"),
        ({"cells": (16, 7)}, "at least 8 nodes"),
        ({"cells": (16, 16), "margin": 0}, "a margin of at least 1"),
        ({"laws": ()}, "different ones of"),
        ({"laws": ("jelly",)}, "different ones of"),
        ({"laws": ("fluid", "fluid")}, "different ones of"),
        ({"walls": ("slip",) * 3}, "one for each side x-"),
        ({"walls": ("slip", "slip", "slip", "glue")}, "must hold 4 of"),
        ({"law": np.zeros(2, np.int32)}, "each of 3 particles"),
        ({"law": np.array([0, 1, 0])}, "each of 3 particles"),
        ({"law": np.array([0, -1, 0])}, "each of 3 particles"),
        ({"actuator": np.array([0, -2, 0])}, "each of 3 particles"),
        ({"colliders": (Collider("sphere", (0.1, 0.2)),)}, "1 positive size"),
        ({"colliders": (Collider("box", (0.1, 0.2, 0.3)),)}, "2 positive sizes"),
        ({"colliders": (Collider("sphere", (-0.1,)),)}, "1 positive size"),
        ({"colliders": (Collider("cone", ()),)}, "one of"),
        ({"colliders": (Collider("plane", (), "glue"),)}, "one of"),
    ],
)
def test_invalid_models_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        MPM(**{**SOUND, **change})


def test_lists_of_numbers_become_arrays() -> None:
    model = MPM(**{**SOUND, "law": [0, 0, 0], "actuator": [-1, 0, 1]})
    assert isinstance(model.law, np.ndarray) and model.actuators == 2
    with pytest.raises(InputError, match=r"MPM\.law: whole numbers"):
        MPM(**{**SOUND, "law": [0.0, 0.0, 0.0]})
