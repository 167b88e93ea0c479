"""Workload w1r, a robot with a network, and robots that learn to walk, at a small size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.fits import walkers as bench_walkers
from benchmarks.workloads import robot
from benchmarks.workloads.workload import compare, summarize
from simphys.autograd import runtime


def test_loss_and_gradient_are_those_of_the_reference() -> None:
    single = runtime.settings().precision == "f32"
    loss, gradients = robot.build(robot.SETTINGS, "fused").gradient()
    errors = compare("w1r", loss, summarize(gradients))
    assert errors.pop("loss_rel") <= (5e-5 if single else 1e-11)
    assert all(each["norm_rel"] <= (1e-4 if single else 1e-11) for each in errors.values()), errors


def test_fused_and_nested_agree() -> None:
    settings = robot.WORKLOAD.override(["time.steps=5"])
    (loss, fused), (nested_loss, nested) = (robot.build(settings, mode).gradient() for mode in ("fused", "nested"))
    assert loss == pytest.approx(nested_loss, rel=1e-12)
    assert robot.build(settings, "fused").forward() == pytest.approx(loss, rel=1e-12)
    for name in fused:
        assert np.linalg.norm(fused[name] - nested[name]) <= 1e-12 * np.linalg.norm(nested[name])


def test_a_robot_walks_better_with_each_of_a_few_iterations() -> None:
    """Check the smallest robot: the others differ only in their bodies, and need compilation (test_certificates.py)."""
    gained = bench_walkers.walk(bench_walkers.ROBOTS[0], 0, iterations=8, precision="f64")
    assert len(gained) == 9 and abs(gained[0]) < 0.02 and gained[-1] > 0.1


def test_the_picture_has_a_panel_a_robot(tmp_path: Path) -> None:
    bench_walkers.draw({14: [np.arange(3.0)] * 3, 26: [np.arange(3.0)] * 3}, tmp_path / "walk.png")
    assert (tmp_path / "walk.png").stat().st_size > 10_000
