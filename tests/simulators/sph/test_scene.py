"""The sections of scenes of smoothed particle hydrodynamics, their arrays, and what they refuse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from simphys.autograd import InputError
from simphys.experiment.scene import build_scene
from simphys.scenefile import ConfigError, from_dict


def sections(**changed: Any) -> dict[str, Any]:
    """Build the sections of a tank with a block of fluid."""
    made: dict[str, Any] = {
        "simulator": {"name": "sph", "spacing": 0.1},
        "time": {"dt": 1e-3, "steps": 3},
        "tank": {"size": [2.0, 1.0], "walls": ["x-", "x+", "y-"]},
        "blocks": [{"low": [0.0, 0.0], "high": [0.5, 0.8]}],
        "material": {"sound_speed": 40.0, "viscosity": 1.0, "slip_length": 0.02},
        "environment": {"gravity": [0.0, -9.81]},
    }
    for name, given in changed.items():
        made[name] = made.get(name, {}) | given if isinstance(given, dict) else given
    return made


def test_all_given_values_arrive() -> None:
    gauges = {"places": [0.25, 1.6], "width": 0.1}
    blocks = [{"low": [0.0, 0.0], "high": [0.5, 0.8]}, {"low": [1.0, 0.5], "high": [1.2, 0.6], "velocity": [1.0, -2.0]}]
    scene = build_scene(from_dict(sections(gauges=gauges, blocks=blocks)))
    model, params, state = scene.model, scene.params.arrays(), scene.state.arrays()
    assert model.fluid_count == 42 and model.box == (math.inf, math.inf)
    assert (params["viscosity"], params["slip_length"], params["rest_density"]) == (1.0, 0.02, 1000.0)
    np.testing.assert_array_equal(state["velocity"][40:42], [[1.0, -2.0]] * 2)
    assert not state["velocity"][:40].any() and not state["velocity"][42:].any()
    pressure = 1000 * 40.0**2 / 7 * ((state["density"][:40] / 1000) ** 7 - 1)
    np.testing.assert_allclose(pressure, 1000 * 9.81 * (0.8 - state["position"][:40, 1]), rtol=1e-9)
    np.testing.assert_allclose(state["depth"], [0.8, 0.0], atol=1e-12)


def test_walls_have_layers_beyond_the_reach_of_the_fluid() -> None:
    """Three layers for a reach of three spacings, and none at the open top."""
    scene = build_scene(from_dict(sections()))
    walls = scene.state.position.data[scene.model.fluid_count :]
    assert len(walls) == 26 * 13 - 200
    np.testing.assert_allclose([walls.min(axis=0), walls.max(axis=0)], [[-0.25, -0.25], [2.25, 0.95]])


def test_periodic_axes_have_a_period_and_no_walls() -> None:
    scene = build_scene(from_dict(sections(tank={"walls": ["y-", "y+"], "periodic": ["x"]})))
    assert scene.model.box == (2.0, math.inf)
    assert scene.state.position.data[:, 0].min() > 0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"tank": {"size": [2.03, 1.0]}}, r"whole number of spacings of 0.1.*2.03.*Take 2"),
        ({"tank": {"walls": ["z-"]}}, "tank.walls.0: must be a side of a 2-D grid.*z-"),
        ({"tank": {"size": [0.5, 1.0], "walls": [], "periodic": ["x"]}}, "at least two cut-offs of 2h long, 0.6"),
        ({"simulator": {"smoothing": 0.05}}, "between 1 and 3 spacings of 0.1.*0.05.*Take 0.15"),
        ({"environment": {"gravity": [0.0, 0.0, 1.0]}}, "must have 2 elements, one for each axis of tank.size"),
        ({"blocks": []}, "blocks: must be a list of 1 or more elements; found"),
        ({"blocks": [{"low": [0.0], "high": [0.5, 0.8]}]}, "must be a list of 2 or more elements"),
        (
            {"blocks": [{"low": [0.0, 0.0, 0.0], "high": [0.5, 0.8]}]},
            "must have 2 elements, one for each axis of tank.size",
        ),
        ({"blocks": [{"low": [0.0, 0.0], "high": [0.53, 0.8]}]}, "whole number of spacings of 0.1 above low, 0"),
        ({"blocks": [{"low": [1.8, 0.0], "high": [2.2, 0.8]}]}, "in the tank, from 0 to 2 along x.*2.2.*Take 2"),
        ({"blocks": [{"low": [-0.1, 0.0], "high": [0.2, 0.8]}]}, "in the tank, from 0 to 2 along x.*-0.1.*Take 0"),
    ],
)
def test_what_cannot_be_simulated_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s){message}"):
        from_dict(sections(**changed))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"time": {"dt": 2e-3}}, r"is 0.0015, by sound speed; found 0.002"),
        ({"material": {"viscosity": 4000.0}}, r"is 0.0007031, by viscosity; found 0.001"),
        ({"material": {"sound_speed": 15.0}}, r"at least 5 times the speed of the fluid, 3.71.*Take 37"),
        ({"simulator": {"neighbours": 5}}, r"room for the \d+ neighbours of a particle at the start.*found 5"),
        (
            {"blocks": [{"low": [0.0, 0.0], "high": [0.5, 0.8]}, {"low": [0.32, 0.2], "high": [0.42, 0.4]}]},
            r"particles \d+ and \d+ must be at least 0.05 apart, half a spacing; found 0.02. Move one",
        ),
    ],
)
def test_a_start_that_is_unstable_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_scene(from_dict(sections(**changed)))
