"""The model of molecular dynamics: bonds and angles that name atoms, and numbers that no atom has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.autograd.errors import InputError, UnphysicalValue
from simphys.rollout import rollout
from simphys.simulators.molecular import Molecular

from .systems import system


def make(**changes: Any) -> Molecular:
    sizes: dict[str, Any] = {"atoms": 4, "box": (9.0, 9.0), "dt": 1e-3, "cutoff": 2.5, "switch_on": 2.2, "skin": 0.3}
    return Molecular(**sizes | changes)


@pytest.mark.parametrize("beads", [False, True])
@pytest.mark.parametrize(
    ("name", "rows", "message"),
    [
        ("bonds", [[0, 1], [0, -1]], r"atom indices lie in 0\.\.3; found row 1: \[0, -1\]"),
        ("bonds", [[0, 4]], r"atom indices lie in 0\.\.3; found row 0: \[0, 4\]"),
        ("bonds", [[2, 2]], r"each row names 2 different atoms; found row 0: \[2, 2\]"),
        ("bonds", [[0, 1, 2]], r"rows of 2 numbers of atoms; found shape \[1, 3\]"),
        ("bonds", [[0.0, 1.0]], "whole numbers"),
        ("angles", [[0, 1, -2]], r"atom indices lie in 0\.\.3; found row 0: \[0, 1, -2\]"),
        ("angles", [[0, 1, 4]], r"atom indices lie in 0\.\.3"),
        ("angles", [[0, 1, 0]], "each row names 3 different atoms"),
        ("angles", [[0, 1]], "rows of 3 numbers of atoms"),
    ],
)
def test_bonds_and_angles_name_different_atoms_that_exist(name: str, rows: Any, message: str, beads: bool) -> None:
    for given in (rows, np.array(rows)):
        with pytest.raises(InputError, match=rf"Molecular\.{name}: {message}"):
            make(**{name: given, "beads": beads})


def test_bonds_and_angles_may_be_lists() -> None:
    listed, arrays = (make(bonds=kind([[0, 1], [1, 2]]), angles=kind([[0, 1, 2]])) for kind in (list, np.array))
    for name in ("bonds", "angles", "bond_a", "angle_c", "molecule"):
        np.testing.assert_array_equal(getattr(listed, name), getattr(arrays, name))
    assert listed.param_shapes() == arrays.param_shapes()
    assert make(bonds=[], angles=[]).param_shapes() == make().param_shapes()


@pytest.mark.parametrize("mode", ["fused", "nested"])
@pytest.mark.parametrize("name", ["friction", "temperature"])
def test_a_heat_bath_has_friction_and_a_temperature(name: str, mode: Any) -> None:
    for bath in (True, False):
        model, params, state, _ = system(2, heat_bath=bath)
        cold = params.replace(**{name: tensor(0.0)})
        if bath:
            with pytest.raises(UnphysicalValue, match=rf"{name}: positive and finite; .*, or heat_bath = False"):
                rollout(model, cold, state, steps=1, mode=mode)
        else:
            rollout(model, cold, state, steps=1, mode=mode)
