"""A scene from its file: what it builds, both ways to simulate it, predictions and losses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys.autograd import tensor
from simphys.autograd.errors import InputError
from simphys.autograd.proof.gradcheck import gradcheck

from ..helpers.small_scenes import build, oscillator, soft_square

FILE = """
[simulator]
name = "mass_spring"
[time]
dt = 0.01
steps = 7
[geometry]
position = [[0.0, 1.0], [1.0, 1.0]]
springs = [[0, 1]]
[[geometry.anchors]]
node = 0
point = [0.0, 2.0]
stiffness = 5.0
[material]
stiffness = 20.0
mass = 2.0
[environment]
gravity = [0.0, -9.81]
"""


def test_a_file_becomes_a_model_parameters_and_state(tmp_path: Path) -> None:
    path = tmp_path / "scene.toml"
    path.write_text(FILE)
    scene = simphys.load_scene(path, ["material.stiffness=40.0", "time.steps=3"])
    assert (scene.steps, scene.dt) == (3, 0.01)
    assert scene.model.ends.tolist() == [[0, 1], [0, 2]]
    assert scene.model.pinned.tolist() == [False, False, True] and scene.model.anchors == 1
    assert scene.params.stiffness.data.tolist() == [40.0, 5.0]
    assert scene.state.position.data.tolist() == [[0, 1], [1, 1], [0, 2]]
    assert scene.observations is None and scene.rollout().position.shape == (4, 3, 2)


def test_nested_and_fused_rollouts_have_the_same_states_and_gradients() -> None:
    scene = soft_square()
    gradients = []
    for mode in ("nested", "fused"):
        k = scene.params.stiffness.detach().requires_grad_()
        trajectory = scene.rollout(params=scene.params.replace(stiffness=k), mode=mode)
        scene.loss(trajectory).backward()
        assert k.grad is not None
        gradients.append(k.grad.data)
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-11)


def test_the_horizon_ends_with_the_last_observation_unless_told_otherwise(tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt")
    assert scene.steps == 400 and scene.observations is not None
    free = oscillator(tmp_path / "seen.txt", time={"duration": None})
    assert free.steps == np.ceil(scene.observations.times[-1] / 0.01)
    np.testing.assert_array_equal(free.predict(free.rollout()).data, scene.predict(scene.rollout()).data)
    short = oscillator(tmp_path / "seen.txt", time={"duration": 1.0})  # a piece of the recording
    assert short.observations is not None and short.observations.times[-1] <= 1.0
    count = len(short.observations.times)
    np.testing.assert_array_equal(short.predict(short.rollout()).data, scene.predict(scene.rollout()).data[:count])
    with pytest.raises(InputError, match="the horizon must reach a sample"):
        oscillator(tmp_path / "seen.txt", time={"duration": 0.01})


def test_predictions_between_steps_are_second_order_in_the_step(tmp_path: Path) -> None:
    without_drag: dict[str, Any] = {"material": {"drag": 0.0}}
    exact = oscillator(tmp_path / "seen.txt", time={"dt": 1e-4}, **without_drag)
    errors = []
    for dt in (0.02, 0.01):
        scene = oscillator(tmp_path / "seen.txt", time={"dt": dt}, **without_drag)
        errors.append(np.linalg.norm(scene.predict(scene.rollout()).data - exact.predict(exact.rollout()).data))
    assert 3.7 < errors[0] / errors[1] < 4.3


def test_the_loss_is_half_the_sum_of_squared_misfits_in_standard_deviations(tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt")
    trajectory = scene.rollout()
    assert scene.observations is not None
    misfit = (scene.predict(trajectory).data - scene.observations.values) / 0.01
    assert float(scene.loss(trajectory)) == pytest.approx(0.5 * np.sum(misfit**2), rel=1e-12)
    assert 20 < float(scene.loss(trajectory)) < 100  # with the true parameters: half of a hundred samples


def test_a_missing_sample_counts_nothing_and_a_channel_may_see_a_velocity(tmp_path: Path) -> None:
    file = tmp_path / "gaps.txt"
    file.write_text("0.1 nan 0.0\n0.2 1.0 nan\n")
    channels = [
        {"column": 1, "field": "position", "node": 0},
        {"column": 2, "field": "velocity", "node": 0, "sigma": 0.5},
    ]
    scene = oscillator(tmp_path / "seen.txt", observations={"file": str(file), "missing": "skip", "channels": channels})
    trajectory = scene.rollout()
    x, v = trajectory.position.data[20, 0, 0], trajectory.velocity.data[10, 0, 0]
    assert float(scene.loss(trajectory)) == pytest.approx(0.5 * ((x - 1) ** 2 + (v / 0.5) ** 2), rel=1e-12)


def test_a_loss_of_the_final_state_may_look_at_some_nodes() -> None:
    term = {"kind": "final_state", "nodes": [1, 4], "target": [[0.0, 0.5], [0.5, 0.5]], "weight": 3.0}
    scene = soft_square(loss={"terms": [term]})
    trajectory = scene.rollout()
    away = trajectory.final.position.data[[1, 4]] - [[0.0, 0.5], [0.5, 0.5]]
    assert float(scene.loss(trajectory)) == pytest.approx(3.0 * np.mean(np.sum(away**2, axis=1)), rel=1e-12)


@pytest.mark.parametrize("nodes", [None, [1, 4], {"first": 2, "last": 4}])
@pytest.mark.parametrize("axis", [None, 1])
def test_a_loss_of_the_mean_place_at_the_end_does_not_see_the_shape(nodes: Any, axis: int | None) -> None:
    target: Any = [0.5, 0.2] if axis is None else 0.2
    term = {"kind": "final_mean", "nodes": nodes, "axis": axis, "target": target, "weight": 3.0}
    scene = soft_square(loss={"terms": [{key: value for key, value in term.items() if value is not None}]})
    trajectory = scene.rollout()
    chosen = slice(2, 5) if isinstance(nodes, dict) else (nodes or slice(None))
    away = trajectory.final.position.data[chosen].mean(axis=0) - [0.5, 0.2]
    counted = away if axis is None else away[axis]
    assert float(scene.loss(trajectory)) == pytest.approx(3.0 * np.sum(counted**2), rel=1e-12)
    with pytest.raises(InputError, match="a loss needs observations or terms"):
        replace(scene, partial=True).loss(trajectory)  # which ends before the end

    def loss_from(position: Any) -> Any:
        return scene.loss(scene.rollout(state=scene.state.replace(position=position)))

    gradcheck(loss_from, (tensor(scene.state.position.data, requires_grad=True),), mode="projected")


def test_terms_of_every_kind_may_look_at_one_axis() -> None:
    square, start = soft_square(loss=None).rollout().position.data, soft_square().state.position.data
    ends = soft_square(loss={"terms": [{"kind": "final_state", "axis": 1, "target_offset": -0.1}]})
    expected = np.mean((square[-1, :, 1] - start[:, 1] + 0.1) ** 2)
    assert float(ends.loss(ends.rollout())) == pytest.approx(expected, rel=1e-12)
    along = soft_square(loss={"terms": [{"kind": "running_sum", "axis": 0, "target": [0.1] * 6}]})
    expected = 0.01 * np.sum(np.mean((square[1:, :, 0] - 0.1) ** 2, axis=1))
    assert float(along.loss(along.rollout())) == pytest.approx(expected, rel=1e-12)


def test_fixed_points_of_anchors_are_no_nodes_of_a_loss() -> None:
    anchors = [{"node": 0, "point": [100.0, 100.0], "stiffness": 0.0}]
    with_anchor = soft_square(geometry={"anchors": anchors})
    plain = soft_square()
    assert float(with_anchor.loss(with_anchor.rollout())) == pytest.approx(float(plain.loss(plain.rollout())))


def test_a_running_sum_leaves_out_the_start_that_nothing_can_change() -> None:
    term = {"kind": "running_sum", "target": [0.0, 0.0]}
    scene = soft_square(loss={"terms": [term]})
    trajectory = scene.rollout()
    squares = np.mean(np.sum(trajectory.position.data[1:] ** 2, axis=2), axis=1)
    assert float(scene.loss(trajectory)) == pytest.approx(0.01 * squares.sum(), rel=1e-12)


def test_a_target_counted_from_the_start_moves_with_it() -> None:
    scene = soft_square()
    before = float(scene.loss(scene.rollout()))
    moved = scene.state.replace(position=tensor(scene.state.position.data + 3.0))
    shifted = simphys.Scene(scene.config, scene.model, scene.params, moved, None, scene.steps)
    assert float(shifted.loss(shifted.rollout())) == pytest.approx(before, rel=1e-10)

    def loss_from(position: Any) -> Any:
        start = scene.state.replace(position=position)
        there = simphys.Scene(scene.config, scene.model, scene.params, start, None, scene.steps)
        return there.loss(there.rollout())

    gradcheck(loss_from, (tensor(scene.state.position.data, requires_grad=True),), mode="projected")


def test_what_a_scene_lacks_is_told(tmp_path: Path) -> None:
    scene = soft_square(loss=None)
    with pytest.raises(InputError, match=r"needs observations or terms"):
        scene.loss(scene.rollout())
    with pytest.raises(InputError, match="needs observations"):
        scene.predict(scene.rollout())
    with pytest.raises(InputError, match="stored adjoints need mode 'fused'"):
        scene.rollout(mode="nested", keep_adjoint=True)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"observations": {"file": "nowhere.txt"}}, "nowhere.txt"),
        ({"observations": {"channels": [{"column": 1, "field": "position", "node": 7}]}}, "one of 2 nodes"),
        ({"observations": {"channels": [{"column": 9, "field": "position", "node": 0}]}}, "column"),
        ({"time": {"dt": 5.0, "duration": 10.0}}, "largest stable"),
    ],
)
def test_a_scene_that_cannot_be_built_says_why(changes: dict[str, Any], complaint: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=complaint):
        oscillator(tmp_path / "seen.txt", **changes)


def test_a_scene_needs_no_springs() -> None:
    tables = {
        "simulator": {"name": "mass_spring"},
        "time": {"dt": 0.1, "steps": 10},
        "geometry": {"position": [[0.0]]},
        "state": {"velocity": [[2.0]]},
    }
    assert build(tables).rollout().final.position.data[0, 0] == pytest.approx(2.0)
