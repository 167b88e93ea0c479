"""Scenes with limited memory: the same loss, gradient and fit, although only a part of the states is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys import optimize
from simphys.autograd import tensor
from simphys.autograd.errors import InputError
from simphys.experiment.scene import Scene, build_scene
from simphys.scenefile import from_dict, to_dict

from .helpers.small_scenes import merged, oscillator, soft_square

END = {"kind": "final_state", "target_offset": [0.5, 0.0]}
ALONG = {"kind": "running_sum", "field": "velocity", "nodes": [1, 4], "target": [0.2, 0.1], "weight": 3.0}
UNKNOWNS = {
    "stiffness": {"parameter": "stiffness", "tied": True, "transform": "log"},
    "velocity": {"parameter": "velocity", "entries": [0, 3]},
}
SHEET = {"lattice": {"shape": [12, 12], "spacing": 0.5}}


def limited(scene: Scene, memory: str | float) -> Scene:
    return build_scene(from_dict(merged(to_dict(scene.config), {"runtime": {"memory": memory}})))


def sheet(*terms: dict[str, Any]) -> Scene:
    """Scene of a lattice whose states along time take 18 MB."""
    return soft_square(geometry=SHEET, time={"steps": 4000}, state=None, unknowns=UNKNOWNS, loss={"terms": list(terms)})


def scenes(folder: Path) -> dict[str, tuple[Scene, int]]:
    """Scenes, each with a budget [B] into which its states do not fit."""
    return {
        "observations": (oscillator(folder / "seen.txt"), 16_000),
        "the end": (sheet(END), 1_000_000),
        "along time": (sheet(ALONG), 6_000_000),
        "both": (sheet(ALONG, END), 6_000_000),
    }


@pytest.mark.parametrize("kind", ["observations", "the end", "along time", "both"])
def test_loss_and_gradient_are_those_of_unlimited_memory(kind: str, tmp_path: Path) -> None:
    scene, memory = scenes(tmp_path)[kind]
    whole, part = scene.objective(), limited(scene, memory).objective()
    plan = part.scene_at(tensor(part.start, requires_grad=True)).rollout().plan
    assert plan is not None and plan.recomputed_steps > 0 and plan.predicted_bytes <= memory
    theta = whole.start + 0.05
    (loss, gradient), (same_loss, same_gradient) = whole.value_and_gradient(theta), part.value_and_gradient(theta)
    assert same_loss == pytest.approx(loss, rel=1e-13)
    np.testing.assert_allclose(same_gradient, gradient, rtol=1e-11, atol=1e-13 * np.abs(gradient).max())


def test_a_motion_holds_only_what_its_loss_looks_at(tmp_path: Path) -> None:
    scene = limited(oscillator(tmp_path / "seen.txt"), "20kB")
    assert scene.observations is not None
    trajectory = scene.rollout()
    before = np.floor(scene.observations.times / scene.dt).astype(int)
    np.testing.assert_array_equal(trajectory.steps, np.union1d(before, before + 1))
    assert limited(soft_square(), "20kB").rollout().steps.tolist() == [20]
    assert len(soft_square().rollout().steps) == 21


def test_a_fit_within_a_budget_is_the_fit_without(tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt")
    whole = simphys.identify(scene)
    part = simphys.identify(limited(scene, "20kB"), folder=tmp_path / "part")
    np.testing.assert_array_equal(part.result.theta, whole.result.theta)
    assert [row.standard_error for row in part.unknowns] == [row.standard_error for row in whole.unknowns]
    for name in ("fit/predicted", "particles/nodes/position/value"):
        np.testing.assert_array_equal(part.recording[name], whole.recording[name])


def test_the_gradient_along_time_is_recorded_where_memory_allows_it(tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt")
    whole = simphys.identify(scene).recording
    tight = simphys.identify(limited(scene, "18kB"), folder=tmp_path / "tight").recording
    roomy = simphys.identify(limited(scene, "60kB"), folder=tmp_path / "roomy").recording
    np.testing.assert_array_equal(roomy["adjoint/position"], whole["adjoint/position"])
    assert "adjoint/position" not in tight


def test_a_sum_along_time_is_minimized_within_a_budget_by_its_gradient() -> None:
    whole, objective = sheet(ALONG).objective(), limited(sheet(ALONG), 6_000_000).objective()
    assert whole.has_residuals and not objective.has_residuals
    expected, found = (optimize.minimize(each, method="lbfgs", iterations=3) for each in (whole, objective))
    assert found.loss == pytest.approx(expected.loss, rel=1e-10) and found.loss < found.history[0].loss
    with pytest.raises(
        InputError, match=r"residuals of sums along time need every state; found runtime\.memory = 6000000"
    ):
        optimize.minimize(objective, method="least_squares")


def test_a_budget_that_is_too_small_tells_the_least_that_does(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"rollout, memory: .* found 1000 bytes. Give at least memory="):
        simphys.identify(limited(oscillator(tmp_path / "seen.txt"), 1000))


def test_the_memory_of_an_interrupted_fit_may_be_changed(tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt", optimizer={"iterations": 2})
    simphys.identify(scene, folder=tmp_path / "run")
    tight = limited(oscillator(tmp_path / "seen.txt"), "20kB")
    resumed = simphys.identify(tight, folder=tmp_path / "run", resume=True)
    whole = simphys.identify(oscillator(tmp_path / "seen.txt"), folder=tmp_path / "whole")
    np.testing.assert_array_equal(resumed.result.theta, whole.result.theta)


def test_results_can_be_made_independent_of_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    scene = soft_square(runtime={"deterministic": True})
    honest = type(scene.model).engine

    def engine(self: Any, *arguments: Any, **options: Any) -> Any:
        asked.append(options["deterministic"])
        return honest(self, *arguments, **options)

    monkeypatch.setattr(type(scene.model), "engine", engine)
    scene.rollout()
    list(scene.stream(block=7))
    assert asked == [True, True]
