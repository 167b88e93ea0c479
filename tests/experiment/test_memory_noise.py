"""Noise with a memory: its residuals become independent, and errors those of the scatter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simphys
from simphys.autograd import tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.experiment.memory_noise import Whiten, colour, make_memories, whiten

from ..helpers.small_scenes import TRUTH, oscillator

TIMES = np.sort(np.random.default_rng(2).uniform(0, 1, 12))


def test_whitened_squares_are_those_by_the_inverse_covariance() -> None:
    weights = np.ones((12, 2))
    weights[[3, 7], 0] = 0
    r = np.random.default_rng(3).normal(size=(12, 2)) * (weights > 0)
    memories = make_memories(TIMES, weights, [0.3, None])
    found = whiten(memories, r)
    there = weights[:, 0] > 0
    covariance = np.exp(-np.abs(np.subtract.outer(TIMES[there], TIMES[there])) / 0.3)
    assert found[:, 0] @ found[:, 0] == pytest.approx(r[there, 0] @ np.linalg.solve(covariance, r[there, 0]), rel=1e-12)
    np.testing.assert_array_equal(found[:, 1], r[:, 1])
    np.testing.assert_allclose(colour(memories, found), r, atol=1e-12)
    assert gradcheck(lambda x: Whiten.apply(memories, x), (tensor(r, requires_grad=True),))


def test_errors_of_a_fit_to_noise_with_a_memory_are_right(tmp_path: Path) -> None:
    channel = {"column": 1, "field": "position", "node": 0, "unit": "m", "sigma": 0.01}
    oscillator(tmp_path / "seen.txt")
    time, _ = np.loadtxt(tmp_path / "seen.txt").T
    true = oscillator(tmp_path / "seen.txt", unknowns=None, observations={"channels": [{**channel, "sigma": 1.0}]})
    motion = np.asarray(true.predict(true.rollout()).data)
    memories = make_memories(time, np.ones((100, 1)), [0.3])
    random, missed = np.random.default_rng(0), []
    for _ in range(5):
        noise = 0.01 * colour(memories, random.standard_normal((100, 1)))
        np.savetxt(tmp_path / "other.txt", np.column_stack([time, motion + noise]))
        seen = {"file": str(tmp_path / "other.txt"), "channels": [{**channel, "correlation_time": 0.3}]}
        fit = simphys.identify(oscillator(tmp_path / "seen.txt", observations=seen))
        white = next(each for each in fit.criteria if each.name == "white residuals")
        assert white.verdict == "passed"
        missed.append([(row.value - TRUTH[row.label]) / row.standard_error for row in fit.unknowns])
    assert 0.5 < np.sqrt(np.mean(np.square(missed))) < 1.5  # without the correlation time about 3
