"""The proof of a scene's gradient: it passes where all is right, and names what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys import losses
from simphys.autograd import tensor
from simphys.check import Line, Proof, check
from simphys.scene import Scene

from .small_scenes import oscillator, soft_square


def wrong(proof: Proof) -> list[str]:
    assert proof.passed == all(line.passed for line in proof.lines)
    return [line.what for line in proof.lines if not line.passed]


def test_every_parameter_and_the_state_are_proven_in_three_ways(tmp_path: Path) -> None:
    told: list[Line] = []
    proof = check(oscillator(tmp_path / "seen.txt"), on_line=told.append)
    assert wrong(proof) == [] and told == list(proof.lines)
    for name in ("stiffness", "mass", "drag", "gravity", "position", "velocity"):
        for way in ("nested = fused", "adjoint = finite difference", "tangent = adjoint"):
            assert f"{name}: {way}" in [line.what for line in proof.lines]


@pytest.mark.parametrize("loss", [None, {"terms": [{"kind": "final_state", "target_offset": [0.5, 0.0]}]}])
def test_a_scene_is_proven_with_a_loss_of_its_own_or_without(loss: Any) -> None:
    assert wrong(check(soft_square(loss=loss))) == []


def test_parameters_whose_effect_is_rounding_are_not_judged_by_it() -> None:
    """A lattice in free fall is not stressed: its stiffness has a gradient of 1e-20 that is all rounding."""
    proof = check(soft_square(state=None))
    assert wrong(proof) == []
    assert "stiffness: adjoint = finite difference" not in [line.what for line in proof.lines]


def test_a_wrong_gradient_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def detached_in_part(states: Any, target: Any, weight: float) -> Any:
        return honest(states, tensor(target.data), weight)  # the target's share of the gradient is lost

    honest = losses.mean_square
    monkeypatch.setattr(losses, "mean_square", detached_in_part)
    assert wrong(check(soft_square())) == ["position: adjoint = finite difference"]


def test_a_fused_rollout_that_differs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Scene.rollout

    def off(self: Scene, params: Any = None, state: Any = None, *, mode: Any = "fused", **options: Any) -> Any:
        slow = (params or self.params).replace(mass=(params or self.params).mass * (1.001 if mode == "fused" else 1.0))
        return honest(self, slow, state, mode=mode, **options)

    monkeypatch.setattr(Scene, "rollout", off)
    assert "stiffness: nested = fused" in wrong(check(soft_square()))


def test_the_scene_is_left_as_it_was() -> None:
    scene = soft_square()
    before = scene.state.position.data.copy()
    check(scene)
    assert not scene.params.stiffness.requires_grad and scene.params.stiffness.grad is None
    np.testing.assert_array_equal(scene.state.position.data, before)
