"""The sections of scenes of molecular dynamics, their arrays, and what they refuse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from simphys.autograd import InputError
from simphys.experiment.scene import build_scene
from simphys.scenefile import ConfigError, from_dict


def sections(**changed: Any) -> dict[str, Any]:
    """Build the sections of a small crystal."""
    return {
        "simulator": {"name": "molecular", "cutoff": 1.5, "bins": 5},
        "time": {"dt": 0.005, "steps": 3},
        "geometry": {"lattice": "fcc", "cells": [2, 2, 3], "density": 0.8},
        "state": {"temperature": 1.3, "seed": 4, "equilibration": 0.01},
        **changed,
    }


def places(*position: list[float], **changed: Any) -> dict[str, Any]:
    return sections(geometry={"position": list(position), "box": [4.0, 4.0], **changed})


def test_all_given_values_arrive() -> None:
    scene = build_scene(from_dict(sections(heat_bath={"friction": 2.0, "temperature": 1.1, "seed": 9})))
    model, params, state = scene.model, scene.params.arrays(), scene.state.arrays()
    assert (model.atoms, model.bins, model.seed, model.heat_bath) == (48, 5, 9, True)
    assert math.isclose(model.atoms / math.prod(model.box), 0.8)
    assert (params["friction"], params["temperature"], state["elapsed"]) == (2.0, 1.1, -0.01)
    velocity = state["velocity"]
    assert math.isclose((velocity**2).sum() / (3 * 48), 1.3) and np.abs(velocity.sum(axis=0)).max() < 1e-12


def test_an_axis_may_be_open() -> None:
    found = build_scene(from_dict(places([0.5, 0.5], [1.6, 9.0], open=["y"])))
    assert found.model.box == (4.0, math.inf)


def molecule() -> dict[str, Any]:
    """Build the sections of three atoms, the first of which lies on the other side of the periodic box."""
    near = [[3.9, 1.0], [0.3, 1.0], [0.3, 1.5]]
    bonds = {"atoms": [[0, 1], [1, 2]], "stiffness": [30.0, 40.0]}
    return places(*near) | {"bonds": bonds, "angles": {"atoms": [[0, 1, 2]], "stiffness": 7.0}}


def test_molecules_are_whole_and_rest_as_they_begin() -> None:
    scene = build_scene(from_dict(molecule()))
    params, position = scene.params.arrays(), scene.state.position.data
    np.testing.assert_allclose(position, [[3.9, 1.0], [4.3, 1.0], [4.3, 1.5]])
    np.testing.assert_allclose(params["bond_stiffness"], [30.0, 40.0])
    np.testing.assert_allclose(params["rest_length"], [0.4, 0.5])
    np.testing.assert_allclose((params["angle_stiffness"], params["rest_angle"]), ([7.0], [math.pi / 2]))
    np.testing.assert_array_equal(scene.model.molecule, [1, 1, 1])


def test_ions_of_rock_salt_alternate() -> None:
    salt = {"lattice": "rocksalt", "cells": [2, 2, 2], "density": 0.5}
    charges = {"charge": [0.9, -0.8], "constant": 3.0, "damping": 1.1}
    scene = build_scene(from_dict(sections(geometry=salt, charges=charges, material={"mass": [23.0, 35.0]})))
    position, charge = scene.state.position.data, scene.params.charge.data
    np.testing.assert_array_equal(scene.params.mass.data, np.resize([23.0, 35.0], 64))
    np.testing.assert_array_equal(charge, np.resize([0.9, -0.8], 64))
    nearest = np.argsort(((position - position[0]) ** 2).sum(axis=1))[1:4]
    np.testing.assert_array_equal(charge[nearest], -0.8)
    assert (scene.model.coulomb, scene.model.damping) == (3.0, 1.1)
    with pytest.raises(ConfigError, match="repeated over 64 atoms must have a divisor of values; found 3"):
        from_dict(sections(geometry=salt, charges=charges | {"charge": [1.0, 1.0, -2.0]}))
    with pytest.raises(ConfigError, match=r"material\.mass.*must have a divisor of values; found 5"):
        from_dict(sections(geometry=salt, material={"mass": [1.0] * 5}))


def test_the_stiffest_bond_limits_the_step() -> None:
    stiff = {"bonds": {"atoms": [[0, 1], [1, 2]], "stiffness": 1e6}}
    with pytest.raises(InputError, match=r"is 0\.001414, by the force between atoms 0 and 1"):
        build_scene(from_dict(molecule() | stiff))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"bonds": {"atoms": [[0, 3]], "stiffness": 1.0}},
            r"bonds.atoms: atom indices lie in 0..2; found row 0: \[0, 3\]",
        ),
        ({"angles": {"atoms": [[0, 1, 0]], "stiffness": 1.0}}, "angles.atoms: each row names 3 different atoms"),
        ({"bonds": {"atoms": [[0, 1]], "stiffness": [1.0, 2.0]}}, "must have 1 elements, one for each of bonds.atoms"),
        ({"bonds": {"atoms": [[0, 1]], "stiffness": 1.0, "beads": True}}, "atoms 0 and 1 must be at least 0.7 apart"),
        ({"angles": {"atoms": [[0, 1, 2]], "stiffness": 1.0, "rest_angle": 3.2}}, "less than 3.14"),
        (
            {
                "geometry": {"lattice": "square", "cells": [3, 4], "density": 1.0},
                "bonds": {"atoms": [[0, 4], [4, 8], [8, 0]], "stiffness": 1.0},
            },
            r"nearer than half the box, 1\.5, in molecules that end within it.*2 from 4 to 8",
        ),
    ],
)
def test_links_that_cannot_be_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s){message}"):
        from_dict(molecule() | changed)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"simulator": {"name": "molecular", "cutoff": 1.8}},
            r"at least two cut-offs long, 3.6; its least is 3.42",
        ),
        (
            {
                "geometry": {"lattice": "fcc", "cells": [2, 2, 2], "density": 4.5},
                "simulator": {"name": "molecular", "cutoff": 0.9},
            },
            r"must be at least 0.7 apart.*0.68",
        ),
        (
            {"geometry": {"lattice": "fcc", "cells": [4, 4], "density": 0.8}},
            "geometry.cells: must have 3 elements, one for each axis",
        ),
        ({"geometry": {"lattice": "fcc"}}, "either lattice, cells and density, or position and box"),
        (places([0.5, 0.5], [0.9, 0.6]), "atoms 0 and 1 must be at least 0.7 apart"),
        (places([0.5, 0.5], [4.5, 2.0]), "must lie in the box, from 0 to 4"),
        (places([0.5, 0.5], [1.0, 2.0, 3.0]), "must have 2 elements, one for each axis; found"),
        (
            {"simulator": {"name": "molecular", "cutoff": 1.5, "switch_on": 1.6}},
            "simulator.switch_on: between 0 and the cut-off, 1.5",
        ),
    ],
)
def test_what_cannot_be_simulated_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s){message}"):
        from_dict(sections(**changed))


def test_a_step_too_long_for_the_stiffest_pair_is_refused() -> None:
    with pytest.raises(InputError, match=r"is 0\.0\d+, by the force between atoms 0 and 1"):
        build_scene(from_dict(places([0.5, 0.5], [1.3, 0.5]) | {"time": {"dt": 0.2, "steps": 3}}))


def test_lists_have_room_for_the_start() -> None:
    tight = {"name": "molecular", "cutoff": 1.5, "neighbours": 3}
    with pytest.raises(InputError, match=r"room for the \d+ neighbours of an atom at the start"):
        build_scene(from_dict(sections(simulator=tight)))
