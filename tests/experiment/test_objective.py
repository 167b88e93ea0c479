"""The loss as a function of the unknowns: consistent in all its forms, right in its derivatives, cut short."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys import optimize
from simphys.autograd import tensor
from simphys.autograd.errors import InputError
from simphys.scenefile import UnknownSection

from ..helpers.small_scenes import TRUTH, oscillator, soft_square

HUBER = {"kind": "huber", "delta": 1.5}
PULL = {"kind": "regularization", "unknown": "stiffness", "weight": 2.0}
SQUARE_UNKNOWNS = {
    "velocity": {"parameter": "velocity", "entries": [0, [3, 1]]},
    "start": {"parameter": "position", "entries": [2, 5]},
    "stiffness": {"parameter": "stiffness", "tied": True, "transform": "log"},
    "gravity": {"parameter": "gravity", "entries": [1]},
}
RUNNING = {"kind": "running_sum", "field": "velocity", "nodes": [1, 4], "target": [0.2, 0.1], "weight": 3.0}


def objectives(folder: Path) -> dict[str, Any]:
    return {
        "squares": oscillator(folder / "seen.txt"),
        "huber and pull": oscillator(folder / "seen.txt", loss={**HUBER, "terms": [PULL]}),
        "target from the start": soft_square(unknowns=SQUARE_UNKNOWNS),
        "running sum": soft_square(unknowns=SQUARE_UNKNOWNS, loss={"terms": [RUNNING]}),
    }


@pytest.mark.parametrize("kind", ["squares", "huber and pull", "target from the start", "running sum"])
def test_value_gradient_residuals_and_jacobian_agree_with_each_other_and_with_differences(
    kind: str, tmp_path: Path
) -> None:
    objective = objectives(tmp_path)[kind].objective()
    theta = objective.start + 0.05
    value, gradient = objective.value_and_gradient(theta)
    residuals, jacobian = objective.residuals(theta), objective.jacobian(theta)
    assert jacobian.shape == (residuals.size, theta.size)
    assert value == pytest.approx(0.5 * float(residuals @ residuals), rel=1e-12)
    np.testing.assert_allclose(jacobian.T @ residuals, gradient, rtol=1e-9, atol=1e-9 * np.abs(gradient).max())
    eps = 1e-6
    for column, direction in enumerate(np.eye(theta.size)):
        ahead, behind = (objective.residuals(theta + sign * eps * direction) for sign in (1, -1))
        scale = np.abs(jacobian[:, column]).max()
        np.testing.assert_allclose((ahead - behind) / (2 * eps), jacobian[:, column], atol=1e-6 * scale)


def test_the_scene_at_theta_carries_the_values_and_their_graph(tmp_path: Path) -> None:
    objective = oscillator(tmp_path / "seen.txt").objective()
    theta = tensor(objective.start, requires_grad=True)
    scene = objective.scene_at(theta)
    assert scene.params.stiffness.data.tolist() == pytest.approx([7.0])
    assert scene.params.drag.data.tolist() == pytest.approx([0.2, 0.0])
    assert scene.state.position.data.ravel().tolist() == pytest.approx([0.8, 0.0])
    scene.loss(scene.rollout()).backward()
    assert theta.grad is not None
    np.testing.assert_allclose(theta.grad.data, objective.value_and_gradient(objective.start)[1], rtol=1e-12)


def test_a_part_of_the_horizon_sees_the_observations_and_steps_of_that_part(tmp_path: Path) -> None:
    objective = oscillator(tmp_path / "seen.txt").objective()
    part = objective.until(0.25)
    whole = objective.scene.observations
    assert whole is not None
    count = int((whole.times <= 1.0).sum())
    assert part.scene.steps == 100 and 0 < count < 100
    np.testing.assert_array_equal(part.residuals(part.start), objective.residuals(part.start)[:count])
    np.testing.assert_array_equal(part.start, objective.start)


def test_a_part_before_the_first_observation_has_no_residuals(tmp_path: Path) -> None:
    objective = oscillator(tmp_path / "seen.txt").objective()
    assert objective.until(1e-9).residuals(objective.start).size == 0


def test_terms_about_the_end_count_on_the_whole_horizon_only(tmp_path: Path) -> None:
    end = {"kind": "final_state", "target": [0.0]}
    objective = oscillator(tmp_path / "seen.txt", loss={"terms": [end, PULL]}).objective()
    assert objective.residuals(objective.start).size == 100 + 1 + 1
    seen = objective.until(0.5).scene.observations
    assert seen is not None
    assert objective.until(0.5).residuals(objective.start).size == seen.times.size + 1


def test_regularization_pulls_to_the_start_or_to_a_value_of_choice(tmp_path: Path) -> None:
    to_start = oscillator(tmp_path / "seen.txt", loss={"terms": [PULL]}).objective()
    assert to_start.residuals(to_start.start)[-1] == 0
    to_eight = oscillator(tmp_path / "seen.txt", loss={"terms": [{**PULL, "towards": 8.0}]}).objective()
    at_eight = to_eight.start + np.array([np.log(8.0 / 7.0), 0, 0])
    assert to_eight.residuals(at_eight)[-1] == pytest.approx(0, abs=1e-12)
    assert 0.5 * to_eight.residuals(at_eight + np.array([0.1, 0, 0]))[-1] ** 2 == pytest.approx(2.0 * 0.1**2)


def test_unknowns_may_be_chosen_in_a_script(tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt", unknowns=None)
    objective = scene.objective({"k": UnknownSection(parameter="stiffness", start=8.0)})
    result = optimize.minimize(objective)
    assert result.success
    np.testing.assert_allclose(objective.unknowns.natural(result.theta), [TRUTH["stiffness"]], rtol=2e-3)


def test_mistakes_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="something must be unknown"):
        oscillator(tmp_path / "seen.txt", unknowns=None).objective()
    with pytest.raises(InputError, match="a growing horizon needs observations"):
        soft_square(unknowns=SQUARE_UNKNOWNS).objective().until(0.5)
    with pytest.raises(InputError, match=r"loss\.terms\.0: towards fits the unknown stiffness; found 2 numbers"):
        oscillator(tmp_path / "seen.txt", loss={"terms": [{**PULL, "towards": [1.0, 2.0]}]}).objective()
    with pytest.raises(InputError, match="the log transform is positive"):
        oscillator(tmp_path / "seen.txt", loss={"terms": [{**PULL, "towards": 0.0}]}).objective()
    scene = oscillator(tmp_path / "seen.txt", loss={"terms": [PULL]})
    with pytest.raises(InputError, match="needs the label of an unknown; found stiffness"):
        scene.objective({"k": UnknownSection(parameter="stiffness")})
