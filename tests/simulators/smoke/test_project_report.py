"""Estimates of the gradient's error from unconverged pressure solves, and warnings."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.simulator import Array
from simphys.simulators.smoke import project
from simphys.simulators.smoke.model import Smoke
from simphys.simulators.smoke.solve_report import LARGEST_ERROR, Solve, SolveReport, UnconvergedSolve

from .test_project import model_of, some

STEPS = 6


def rollout(model: Smoke, forward: SolveReport, backward: SolveReport) -> tuple[Array, Array]:
    """Shear and project a velocity repeatedly; return it, and the gradient of its product with another one."""
    velocity = some(model)
    for step in range(STEPS):
        velocity = project.forward(model, sheared(velocity, 1), report=forward.at_step(step))
    adj = some(model, seed=1)
    for step in reversed(range(STEPS)):
        adj = sheared(project.pull(model, adj, report=backward.at_step(step)), -1)
    return velocity, adj


def sheared(velocity: Array, by: int) -> Array:
    """Shift each row along itself by its own number of cells, which changes no norm."""
    return np.stack([[np.roll(row, by * i) for i, row in enumerate(u)] for u in velocity])


def relative(found: Array, exact: Array) -> float:
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


@pytest.mark.parametrize("projection", ["conjugate_gradients", "multigrid"])
@pytest.mark.parametrize("iterations", [1, 3])
def test_the_error_of_the_gradient_is_estimated(projection: str, iterations: int) -> None:
    model = model_of((36, 20), ("periodic",) * 4, projection=projection, most_iterations=iterations)
    exact = rollout(replace(model, most_iterations=500), SolveReport("forward"), SolveReport("backward"))
    reports = SolveReport("forward"), SolveReport("backward")
    found = rollout(model, *reports)
    for report, one, other in zip(reports, found, exact, strict=True):
        error = relative(one, other)
        # A sum is too pessimistic here: errors are pressure gradients, and later projections remove a part of them.
        assert error / 1.2 < report.error < 4 * error
        assert report.solves == STEPS
        assert report.iterations == STEPS * iterations
        assert report.worst is not None
        assert report.worst.residual >= report.divergence * (1 - 1e-6)


def test_of_a_single_solve_the_estimate_is_close() -> None:
    for sides in (("inflow", "open", "closed", "closed"), ("periodic",) * 4):
        model = model_of((36, 20), sides, projection="multigrid", most_iterations=2)
        for run in (project.forward, project.pull, project.push):
            report = SolveReport("backward")
            found = run(model, some(model), report=report)
            exact = run(replace(model, most_iterations=200), some(model))
            assert report.error == pytest.approx(relative(found, exact), rel=0.2)
            assert report.worst is not None
            assert report.worst.residual == pytest.approx(report.divergence, rel=1e-6)  # equal on a staggered grid


def test_a_rollout_warns_once_and_says_what_to_do() -> None:
    model = model_of((36, 20), ("periodic",) * 4, projection="conjugate_gradients", most_iterations=3)
    forward, backward = SolveReport("forward"), SolveReport("backward")
    rollout(model, forward, backward)
    with pytest.warns(
        UnconvergedSolve, match=r"backward, an estimated relative error .* Raise most_iterations"
    ) as found:
        backward.warn(model)
    assert len(found) == 1


@pytest.mark.parametrize("projection", ["conjugate_gradients", "multigrid", "fft"])
def test_converged_solves_warn_of_nothing(projection: str) -> None:
    model = model_of((36, 20), ("periodic",) * 4, projection=projection, tolerance=1e-8)
    reports = SolveReport("forward"), SolveReport("backward")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rollout(model, *reports)
        for report in reports:
            report.warn(model)
            assert report.error < 1e-6
            SolveReport("forward").warn(model)
    assert reports[0].divergence < 1e-6


def test_the_nested_projection_warns_with_the_same_words_each_time() -> None:
    model = model_of((36, 20), ("periodic",) * 4, projection="multigrid", most_iterations=1)
    velocity = tensor(some(model), requires_grad=True)
    with pytest.warns(UnconvergedSolve) as found:
        outcome = project.Project.apply(model, project.Project.apply(model, velocity))
        forward = [str(warning.message) for warning in found]
        outcome.backward(some(model, seed=1))
    assert len(set(forward)) == 1
    assert "backward" in str(found[-1].message)


def test_without_a_report_functions_of_arrays_are_silent() -> None:
    model = model_of((36, 20), ("periodic",) * 4, projection="multigrid", most_iterations=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        project.forward(model, some(model))


def test_reports_add_up() -> None:
    report = SolveReport("forward")
    for step, residual in enumerate((1e-9, 3e-9, 2e-9)):
        solve: Any = Solve(iterations=2, residual=residual, divergence=residual, error=LARGEST_ERROR / 4)
        report.at_step(step).add(solve)
    assert (report.solves, report.iterations, report.worst_step, report.divergence) == (3, 6, 1, 3e-9)
    assert report.error == pytest.approx(0.75 * LARGEST_ERROR)
    assert "3 solves, 6 iterations, residual up to 3.0e-09" in str(report)


def test_a_velocity_at_rest_needs_no_solve() -> None:
    model = model_of((6, 4), ("closed",) * 4)
    report = SolveReport("forward")
    assert not project.forward(model, np.zeros((2, 7, 5)), report=report).any()
    assert report.worst == Solve(iterations=0, residual=0.0, divergence=0.0, error=0.0)
