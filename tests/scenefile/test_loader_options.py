"""Options of a simulator that there are not are told, whatever else the scene has."""

from __future__ import annotations

from pathlib import Path

import pytest

from simphys.scenefile import ConfigError, load

SCENES = Path(__file__).parents[2] / "scenes"


@pytest.mark.parametrize(
    ("scene", "override"),
    [("pendulum/double.toml", "simulator.integrator=euler"), ("smoke/cavity.toml", "simulator.foo=1")],
)
def test_a_wrong_option_of_the_simulator_is_told(scene: str, override: str) -> None:
    with pytest.raises(ConfigError, match="simulator"):
        load(SCENES / scene, [override])
