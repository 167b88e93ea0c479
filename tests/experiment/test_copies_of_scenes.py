"""Copies of scenes and fits, by deepcopy and pickle, compute the same bits from leaves of their own."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.app.workflow import identify
from simphys.autograd import tensor
from simphys.experiment.scene import Scene

from ..helpers.small_scenes import oscillator

COPIES: dict[str, Callable[[Any], Any]] = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
}


def gradient(scene: Scene) -> list[float]:
    stiffness = tensor(scene.params.stiffness.numpy(), requires_grad=True)
    scene.loss(scene.rollout(scene.params.replace(stiffness=stiffness))).backward()
    assert stiffness.grad is not None
    return stiffness.grad.numpy().tolist()


@pytest.mark.parametrize("name", COPIES)
def test_a_copied_scene_has_the_same_gradient_and_memory_of_its_own(name: str, tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt")
    copied = COPIES[name](scene)
    assert gradient(copied) == gradient(scene)
    for field, values in copied.params.arrays().items():
        assert not values.size or not np.shares_memory(values, scene.params.arrays()[field])


@pytest.mark.parametrize("name", COPIES)
def test_a_copied_fit_has_the_same_result(name: str, tmp_path: Path) -> None:
    fit = identify(oscillator(tmp_path / "seen.txt", optimizer={"iterations": 2}))
    copied = COPIES[name](fit)
    assert copied.result.theta.tolist() == fit.result.theta.tolist() and copied.unknowns == fit.unknowns
    assert np.array_equal(copied.recording["iterations/loss"], fit.recording["iterations/loss"])
