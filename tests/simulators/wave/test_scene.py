"""Scenes of waves: the meaning of their sections, and their checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.autograd.errors import InputError
from simphys.experiment.scene import build_scene, load_scene
from simphys.experiment.wavelets import ricker
from simphys.scenefile import ConfigError, from_dict, load, to_dict

from ...helpers.rounding import assert_equal_but_for_rounding
from ...helpers.small_scenes import merged

POND: dict[str, Any] = {
    "simulator": {"name": "wave", "order": 4},
    "time": {"dt": 0.05, "steps": 12},
    "grid": {"cells": [12, 10], "spacing": 0.5, "boundaries": {"y-": "free", "x-": "absorbing"}, "layer": 4},
    "medium": {"speed": 2.0},
    "sources": [{"position": [3.1, 2.2]}, {"kind": "plane_x", "position": [2.6, 0.0], "velocity": [0.5, 0.0]}],
    "receivers": {"position": [[4.0, 1.3]], "lines": [{"start": [1.0, 2.0], "end": [3.0, 3.0], "count": 3}]},
    "control": {"kind": "wavelet", "channels": 2, "frequency": 2.0, "amplitude": [1.0, 0.5]},
}
POND["grid"]["layer_frequency"] = 2.0
SHOTS: list[dict[str, Any]] = [
    {"position": [3.1, 2.2]},
    {"position": [2.1, 1.2], "shot": 1},
    {"position": [4.1, 3.2], "shot": 2},
]


def pond(**changes: Any) -> dict[str, Any]:
    return merged(POND, changes)


def test_a_scene_is_the_model_that_it_describes() -> None:
    config = from_dict(pond())
    assert from_dict(to_dict(config)) == config
    scene = build_scene(config)
    model = scene.model
    assert (model.cells, model.spacing, model.dt, model.order) == ((12, 10), 0.5, 0.05, 4)
    assert model.boundaries == ("absorbing", "zero", "free", "zero")
    assert (model.layer, model.layer_speed, model.layer_frequency) == (4, 2.0, 2.0)
    assert model.sources == ("point", "plane_x") and model.receivers == 4
    for name, shape in {**model.param_shapes(), **model.state_shapes()}.items():
        assert scene.values()[name].shape == shape
    np.testing.assert_array_equal(scene.params.speed.data, 2.0)
    np.testing.assert_array_equal(scene.params.source_velocity.data, [[0.0, 0.0], [0.5, 0.0]])
    np.testing.assert_allclose(scene.params.receiver_position.data, [[4.0, 1.3], [1.0, 2.0], [2.0, 2.5], [3.0, 3.0]])
    assert scene.grid is not None
    assert (scene.grid.cells, scene.grid.axis(1)[-1]) == ((12, 10), 4.5)


def test_sources_are_driven_by_the_control() -> None:
    scene = build_scene(from_dict(pond()))
    control = scene.control()
    assert control is not None
    np.testing.assert_allclose(control.data, ricker(0.05 * np.arange(12), 2.0)[:, None] * [1.0, 0.5])
    fused, nested = scene.rollout().height.data, scene.rollout(mode="nested").height.data
    assert np.abs(fused[-1]).max() > 1e-3
    np.testing.assert_allclose(fused, nested, atol=1e-12 * np.abs(nested).max())


def test_bumps_are_at_rest_and_receivers_have_read_them() -> None:
    bumps = [{"centre": [2.0, 1.0], "width": 0.8, "amplitude": 2.0}, {"centre": [4.0, 2.0], "width": 0.5}]
    state = build_scene(
        from_dict(pond(state={"height": bumps}, receivers={"position": [[2.0, 1.0]], "lines": []}))
    ).state
    x, y = np.meshgrid(0.5 * np.arange(12), 0.5 * np.arange(10), indexing="ij")
    expected = 2 * np.exp(-((x - 2) ** 2 + (y - 1) ** 2) / 0.64) + np.exp(-((x - 4) ** 2 + (y - 2) ** 2) / 0.25)
    np.testing.assert_allclose(state.height.data, expected)
    np.testing.assert_array_equal(state.previous.data, state.height.data)
    np.testing.assert_allclose(state.received.data, expected[4, 2])


def test_fields_come_from_files_beside_the_scene(tmp_path: Path) -> None:
    speed = np.random.default_rng(0).uniform(1, 2, (5, 4))
    np.save(tmp_path / "speed.npy", speed)
    np.savetxt(tmp_path / "height.txt", speed - 1)
    (tmp_path / "scene.toml").write_text(
        """\
[simulator]
name = "wave"
[time]
dt = 0.1
steps = 1
[grid]
cells = [5, 4]
spacing = 1.0
[medium.speed]
file = "speed.npy"
[state.height]
file = "height.txt"
[state]
previous = 0.25
""",
        encoding="utf-8",
    )
    scene = load_scene(tmp_path / "scene.toml")
    np.testing.assert_array_equal(scene.params.speed.data, speed)
    np.testing.assert_allclose(scene.state.height.data, speed - 1, rtol=1e-15)
    np.testing.assert_array_equal(scene.state.previous.data, 0.25)
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "scene.toml", ["grid.cells=[5, 5]"])
    assert str(caught.value.errors[0]).startswith(
        f"{tmp_path}/scene.toml:10: medium.speed.file: must have the shape [5, 5]; found [5, 4] in {tmp_path}"
    )


def test_shots_are_a_batch() -> None:
    scene = build_scene(from_dict(pond(sources=SHOTS, control={"channels": 1, "amplitude": 1.0})))
    np.testing.assert_array_equal(scene.state.source_position.data[:, 0], [shot["position"] for shot in SHOTS])
    assert scene.params.source_velocity.shape == (1, 2) and scene.state.height.shape == (12, 10)
    heights = scene.rollout().height.data
    for shot, height in zip(SHOTS, heights, strict=True):
        alone = pond(sources=[{**shot, "shot": 0}], control={"channels": 1, "amplitude": 1.0})
        assert_equal_but_for_rounding(height, build_scene(from_dict(alone)).rollout().height.data, ulps=200)


def test_each_shot_may_have_its_own_amplitudes_and_velocities() -> None:
    rows = [[1.0], [2.0], [3.0]]
    moving = [*SHOTS[:2], {**SHOTS[2], "velocity": [1.0, 0.0]}]
    scene = build_scene(from_dict(pond(sources=moving, control={"channels": 1, "amplitude": rows})))
    control = scene.control()
    assert control is not None and control.shape == (3, 12, 1)
    np.testing.assert_array_equal(scene.params.source_velocity.data[:, 0], [[0, 0], [0, 0], [1, 0]])
    assert scene.rollout().received.shape == (3, 13, 4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"simulator": {"order": 3}}, "simulator.order: must be one of 2, 4 or 8; found 3."),
        ({"grid": {"cells": [12, 3]}}, "grid.cells: axis 1 has at least 4 cells, to hold its"),
        ({"grid": {"cells": [10**30, 12]}}, "grid.cells.0: must be at most 2147483647; found"),
        ({"grid": {"cells": [2**31 - 1, 2**31 - 1]}}, "grid.cells: what it counts must fit into the free memory, "),
        ({"grid": {"layer": 13}}, "grid.cells: axis 0 has at least 15 cells, to hold its"),
        ({"grid": {"layer_frequency": None}}, "grid.layer_frequency: absorbing layers have a width, a speed"),
        ({"grid": {"boundaries": {"z-": "free"}}}, "grid.boundaries.z-: must be a side of a 2-D grid; found"),
        ({"grid": {"boundaries": {"y+": "periodic"}}}, "grid.boundaries: opposite sides are periodic together; found"),
        ({"control": None}, "sources: sources need a control; found no [control] section. Add a section"),
        ({"control": {"channels": 3, "amplitude": 1.0}}, "control.channels: must be 2, which drive a step of this"),
        ({"sources": [{"kind": "plane_z", "position": [1.0, 1.0]}]}, "sources: each is one of"),
        ({"sources": [{"position": [1.0]}]}, "sources.0.position: must have 2 elements, one for each axis of"),
        (
            {"sources": [{"position": [3.0, 4.6]}, {"position": [3.0, 5.1]}]},
            "sources.1.position.1: a source must be inside of the grid, from -0.25 to 5 along y; found 5.1. Move it",
        ),
        ({"sources": [{"position": [-0.1, 1.0]}, POND["sources"][1]]}, "sources.0.position.0: a source must be inside"),
        ({"sources": [POND["sources"][0], {**POND["sources"][1], "shot": 1}]}, "sources: shot 1 must have as many"),
        ({"sources": [SHOTS[0], SHOTS[2]]}, "sources: shot 1 must have as many sources as shot 0, of the"),
        (
            {"sources": SHOTS, "control": {"channels": 1, "amplitude": [[1.0], [2.0]]}},
            "control.amplitude: must have 3 rows, one for each shot; found 2. Give a row for each shot",
        ),
        ({"receivers": {"position": [[9.0, 1.0]]}}, "receivers.position.0.0: a receiver must be inside of the grid"),
        (
            {"receivers": {"lines": [{"start": [1.0, 1.0], "end": [1.0, -1.0], "count": 3}]}},
            "receivers.lines.0.end.1: a receiver must be inside of the grid, from -0.25 to 5 along y; found -1.0.",
        ),
        ({"state": {"height": [{"centre": [1.0], "width": 1.0}]}}, "state.height.0.centre: must have 2 elements"),
        ({"medium": {"speed": -1.0}}, "medium.speed"),
        ({"medium": {"speed": {"file": "/none.npy"}}}, "medium.speed.file: must be a file that can be read; found"),
    ],
)  # fmt: skip
def test_inconsistent_sections_are_reported(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_dict(pond(**changes))
    assert any(str(error).startswith(f"scene: {message}") for error in caught.value.errors), str(caught.value)


def test_speeds_from_a_file_are_positive(tmp_path: Path) -> None:
    speed = np.ones((12, 10))
    speed[3, 7] = 0.0
    np.save(tmp_path / "speed.npy", speed)
    with pytest.raises(ConfigError) as caught:
        from_dict(pond(medium={"speed": {"file": str(tmp_path / "speed.npy")}}))
    message = "scene: medium.speed.file: must be above 0; found 0 in cell [3, 7] of"
    assert str(caught.value).startswith(message)


def test_a_time_step_beyond_the_limit_is_reported() -> None:
    limit = 2 * 0.5 / (2 * np.sqrt(2 * 16 / 3))
    build_scene(from_dict(pond(time={"dt": 0.99 * limit}))).require_stable()
    with pytest.raises(InputError) as caught:
        build_scene(from_dict(pond(time={"dt": 1.01 * limit})))
    assert str(caught.value).startswith(
        f"time.dt: the largest stable time step of this scene is {limit:.4g}, by the largest speed, 2"
    )
