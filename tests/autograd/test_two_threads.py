"""While one thread computes, another one that tries the same is refused, and changes nothing in the first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.autograd import is_grad_enabled, ops, tensor

from ..helpers import small_scenes
from ..helpers.intruder import Intruder
from ..helpers.rounding import assert_equal_but_for_rounding
from .ops.rules_table import RULES, Rule, draw, leaves


def pulled(rule: Rule, shapes: tuple[tuple[int, ...], ...]) -> list[np.ndarray]:
    """The result of a rule and its adjoints."""
    inputs = leaves(draw(rule, shapes))
    result = rule.call(ops, *inputs)
    result.backward(np.ones(result.shape))
    return [result.numpy(), *[x.grad.numpy() for x in inputs if x.grad is not None]]


def test_every_operation_gives_the_same_beside_a_thread_that_tries_it_too() -> None:
    cases = [(rule, shapes) for rule in RULES.values() for shapes in rule.shapes]
    quiet = [pulled(*case) for case in cases]
    turn = 0
    with Intruder(lambda: pulled(*cases[turn])) as intruder:
        while intruder.refused <= 10:
            for turn, case in enumerate(cases):
                for one, other in zip(pulled(*case), quiet[turn], strict=True):
                    assert_equal_but_for_rounding(one, other)
                assert not intruder.other
    assert not intruder.other and is_grad_enabled()


@pytest.mark.parametrize("mode", ["nested", "fused"])
def test_rollout_and_backward_give_the_same_bits_beside_a_thread_that_tries_them_too(mode: Any, tmp_path: Path) -> None:
    objective = small_scenes.oscillator(tmp_path / "seen.txt").objective()

    def gradient() -> np.ndarray:
        theta = tensor(objective.start, requires_grad=True)
        scene = objective.scene_at(theta)
        scene.loss(scene.rollout(mode=mode)).backward()
        assert theta.grad is not None
        return theta.grad.numpy()

    quiet = gradient()
    with Intruder(gradient) as intruder:
        beside = [gradient()]
        while not intruder.refused and not intruder.other:
            beside.append(gradient())
    assert all([found.tobytes() == quiet.tobytes() for found in beside])
    assert not intruder.other and is_grad_enabled()
