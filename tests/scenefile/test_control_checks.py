"""What must hold inside the section of controls, and between it and the simulator that they drive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.scenefile import ConfigError, from_dict, load, to_dict

SINES: dict[str, Any] = {"kind": "sines", "channels": 2, "waves": 4, "frequency": 20.0}
WAVELET: dict[str, Any] = {"kind": "wavelet", "channels": 2, "frequency": 20.0}
ACTUATORS = [{"springs": [0]}, {"springs": [1]}]


def scene(control: dict[str, Any], actuators: Any = ACTUATORS, **sections: Any) -> dict[str, Any]:
    return {
        "simulator": {"name": "mass_spring"},
        "time": {"dt": 1e-3, "steps": 10},
        "geometry": {"position": [[0.0], [1.0], [2.0]], "springs": [[0, 1], [1, 2]], "actuators": actuators},
        "material": {"stiffness": 1.0, **({"amplitude": 0.1} if actuators else {})},
        "control": control,
        **sections,
    }


@pytest.mark.parametrize(
    "control",
    [
        SINES,
        {**SINES, "amplitude": 2.0, "weight": [[1, 2, 3, 4], [0, 0, 0, 1.5]], "bias": [0.5, -0.5], "unit": "N"},
        {**SINES, "amplitude": [1.0, 2.0]},
        {"kind": "knots", "value": [[0.0, 0.0]]},
        {"kind": "knots", "value": np.ones((5, 2)), "unit": "V"},
        {**WAVELET, "amplitude": [1.0, -2.0], "unit": "Pa"},
        {**WAVELET, "wavelet": "sine_burst", "delay": 0.1, "amplitude": [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]},
    ],
)
def test_controls_that_fit_are_accepted_and_survive_storage(control: dict[str, Any]) -> None:
    config = from_dict(scene(control))
    assert from_dict(to_dict(config)) == config


@pytest.mark.parametrize(
    ("control", "told"),
    [
        (
            {**SINES, "kind": "sine"},
            "control: must be of one of the kinds 'sines', 'knots', 'wavelet', 'pattern', 'recorded'; found {",
        ),
        ({**SINES, "wave": 3}, "control.wave: unknown key; found 3. Did you mean 'waves'?"),
        ({**SINES, "channels": 0}, "control.channels: must be at least 1; found 0. "),
        ({**SINES, "waves": 0}, "control.waves: must be at least 1; found 0. "),
        ({**SINES, "frequency": 0.0}, "control.frequency: must be greater than 0; found 0.0. "),
        ({**SINES, "amplitude": -1.0}, "control.amplitude: must be greater than 0; found -1.0. "),
        ({**SINES, "amplitude": [1.0, 0.0]}, "control.amplitude.1: must be greater than 0; found 0.0. "),
        (
            {**SINES, "amplitude": [1.0]},
            "control.amplitude: must have 2 elements, one for each channel; found [1.0]. It has 1: give 2.",
        ),
        ({**SINES, "bias": [1.0]}, "control.bias: must have 2 elements, one for each channel; found [1.0]. "),
        ({**SINES, "weight": [[0.0] * 4]}, "control.weight: must have 2 elements, one for each channel; "),
        (
            {**SINES, "weight": [[0.0] * 4, [0.0] * 3]},
            "control.weight.1: must have 4 elements, one for each wave; found [0.0, 0.0, 0.0]. It has 3: give 4.",
        ),
        (
            {**SINES, "channels": 3},
            "control.channels: must be 2, which drive a step of this scene's simulator; found 3. Give 2, or change",
        ),
        ({"kind": "knots", "value": []}, "control.value: must be a list of 1 or more elements; found []. "),
        ({"kind": "knots", "value": [[], []]}, "control.value.0: must be a list of 1 or more elements; found []. "),
        ({"kind": "knots"}, "control.value: this key is required; found nothing. Add control.value."),
        (
            {"kind": "knots", "value": [[1.0, 2.0], [3.0]]},
            "control.value.1: must have 2 elements, one for each channel of the first knot; found [3.0]. ",
        ),
        (
            {"kind": "knots", "value": [[1.0], [3.0]]},
            "control.value: must have rows of 2 numbers, which drive a step of this scene's simulator; found 1. ",
        ),
        (
            {**WAVELET, "wavelet": "rickr"},
            "control.wavelet: must be one of 'ricker', 'gaussian' or 'sine_burst'; found",
        ),
        ({**WAVELET, "frequency": 0.0}, "control.frequency: must be greater than 0; found 0.0. "),
        (
            {**WAVELET, "channels": 3},
            "control.channels: must be 2, which drive a step of this scene's simulator; found",
        ),
        (
            {**WAVELET, "amplitude": [1.0]},
            "control.amplitude: must have 2 elements, one for each channel; found [1.0].",
        ),
        (
            {**WAVELET, "amplitude": [[1.0, 2.0], [3.0]]},
            "control.amplitude.1: must have 2 elements, one for each channel; found [3.0]. It has 1: give 2.",
        ),
    ],
)
def test_controls_that_do_not_fit_are_told(control: dict[str, Any], told: str) -> None:
    names = {"knots": "value", "wavelet": "amplitude"}
    unknown = {"weight": {"parameter": f"control_{names.get(control['kind'], 'weight')}"}}
    with pytest.raises(ConfigError) as caught:
        from_dict(scene(control, unknowns=unknown))
    error = caught.value.errors[0]
    assert str(error).startswith(f"scene: {told}")
    assert not any("unknowns" in each.source for each in caught.value.errors)


def test_a_simulator_without_actuators_takes_no_control() -> None:
    with pytest.raises(ConfigError) as caught:
        from_dict(scene(SINES, actuators=[]))
    assert str(caught.value) == (
        "scene: control: needs a simulator that takes a control; found a section of kind sines. "
        "Drop the section, or add what it is to drive, such as an actuator."
    )


def test_a_part_of_the_control_may_be_unknown_and_what_is_not_there_is_told() -> None:
    weight = {"parameter": "control_weight", "entries": [[0, 3], 1]}
    parts = {"w": weight, "b": {"parameter": "control_bias"}}
    from_dict(scene(SINES, unknowns=parts))
    with pytest.raises(ConfigError) as caught:
        from_dict(scene(SINES, unknowns={"v": {"parameter": "control_value"}, "w": {**weight, "entries": [2]}}))
    first, second = map(str, caught.value.errors)
    assert first.startswith("scene: unknowns.v.parameter: must name a parameter, a state component or a control; found")
    assert second.startswith(
        "scene: unknowns.w.entries.0: control_weight has the shape [2, 4], counted from 0; found 2"
    )
    with pytest.raises(ConfigError, match=r"must name a parameter, a state component or a control"):
        from_dict(scene({"kind": "knots", "value": [[0.0, 0.0]]}, unknowns=parts))


def test_a_mistake_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "driven.toml"
    path.write_text(
        """\
[simulator]
name = "mass_spring"
[time]
dt = 1e-3
steps = 5
[geometry]
position = [[0.0], [1.0]]
springs = [[0, 1]]
[[geometry.actuators]]
springs = [0]
[material]
stiffness = 1.0
amplitude = 0.1
[control]
kind = "sines"
channels = 2
waves = 4
frequency = -20.0
""",
        encoding="utf-8",
    )
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}:18: control.frequency: must be greater than 0; found -20.0. ")
    with pytest.raises(ConfigError) as caught:
        load(path, ["control.frequency=20.0"])
    assert str(caught.value).startswith(f"{path}:16: control.channels: must be 1, which drive a step of")
