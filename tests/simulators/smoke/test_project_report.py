"""Estimates of the gradient's error from unconverged pressure solves, and warnings."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.simulator import Array
from simphys.simulators.smoke.model import Smoke
from simphys.simulators.smoke.project import Project
from simphys.simulators.smoke.solve_report import LARGEST_ERROR, Solve, SolveReport, UnconvergedSolve

from .projections import RUNS, Solves, projected
from .test_project import divergence, model_of, some

STEPS = 6


def rollout(model: Smoke) -> tuple[tuple[Array, Array], tuple[SolveReport, SolveReport]]:
    """Shear and project a velocity repeatedly; return it, the gradient of its product with another one, and reports."""
    solves, velocity = Solves(model), some(model)
    for _ in range(STEPS):
        velocity = solves.run(sheared(velocity, 1))
    adj = some(model, seed=1)
    for _ in range(STEPS):
        adj = sheared(solves.run(adj, "backward"), -1)
    return (velocity, adj), (solves.report(), solves.report("backward"))


def sheared(velocity: Array, by: int) -> Array:
    """Shift each row along itself by its own number of cells, which changes no norm."""
    return np.stack([[np.roll(row, by * i) for i, row in enumerate(u)] for u in velocity])


def relative(found: Array, exact: Array) -> float:
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


@pytest.mark.parametrize("projection", ["conjugate_gradients", "multigrid"])
@pytest.mark.parametrize("iterations", [1, 3])
def test_the_error_of_the_gradient_is_estimated(projection: str, iterations: int) -> None:
    model = model_of((36, 20), ("periodic",) * 4, projection=projection, most_iterations=iterations)
    exact, _ = rollout(replace(model, most_iterations=500))
    found, reports = rollout(model)
    for report, one, other in zip(reports, found, exact, strict=True):
        error = relative(one, other)
        # A sum is too pessimistic here: errors are pressure gradients, and later projections remove a part of them.
        assert error / 1.2 < report.error < 4 * error
        assert report.solves == STEPS
        assert report.iterations == STEPS * iterations


def test_of_a_single_solve_the_estimate_is_close() -> None:
    for sides in (("inflow", "open", "closed", "closed"), ("periodic",) * 4):
        model = model_of((36, 20), sides, projection="multigrid", most_iterations=2)
        for direction in RUNS:
            solves = Solves(model)
            found = solves.run(some(model), direction)
            exact = projected(replace(model, most_iterations=200), some(model), direction)
            report = solves.report(direction)
            assert report.error == pytest.approx(relative(found, exact), rel=0.2)


def test_on_a_staggered_grid_the_residual_is_the_divergence_that_is_left() -> None:
    model = model_of((36, 20), ("inflow", "open", "closed", "closed"), most_iterations=2)
    solves, velocity = Solves(model), some(model)
    before, after = (np.linalg.norm(divergence(model, u)) for u in (velocity, solves.run(velocity)))
    worst = solves.report().worst
    assert worst is not None and worst.residual == pytest.approx(after / before, rel=1e-6)


def test_a_rollout_warns_once_and_says_what_to_do() -> None:
    model = model_of((36, 20), ("periodic",) * 4, projection="conjugate_gradients", most_iterations=3)
    _, (_, backward) = rollout(model)
    with pytest.warns(
        UnconvergedSolve, match=r"backward, an estimated relative error .* Raise most_iterations"
    ) as found:
        backward.warn(model)
    assert len(found) == 1


@pytest.mark.parametrize("projection", ["conjugate_gradients", "multigrid"])
def test_converged_solves_warn_of_nothing(projection: str) -> None:
    model = model_of((36, 20), ("periodic",) * 4, projection=projection, tolerance=1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for report in rollout(model)[1]:
            report.warn(model)
            assert report.error < 1e-6
            SolveReport("forward").warn(model)


def test_the_nested_projection_warns_with_the_same_words_each_time() -> None:
    model = model_of((36, 20), ("periodic",) * 4, projection="multigrid", most_iterations=1)
    velocity = tensor(some(model), requires_grad=True)
    with pytest.warns(UnconvergedSolve) as found:
        outcome = Project.apply(model, Project.apply(model, velocity))
        forward = [str(warning.message) for warning in found]
        outcome.backward(some(model, seed=1))
    assert len(set(forward)) == 1
    assert "backward" in str(found[-1].message)


def test_reports_add_up() -> None:
    report = SolveReport("forward")
    for step, residual in enumerate((1e-9, 3e-9, 2e-9)):
        solve: Any = Solve(iterations=2, residual=residual, error=LARGEST_ERROR / 4)
        report.at_step(step).add(solve)
    assert (report.solves, report.iterations, report.worst_step) == (3, 6, 1)
    assert report.error == pytest.approx(0.75 * LARGEST_ERROR)
    assert "3 solves, 6 iterations, residual up to 3.0e-09" in str(report)


def test_a_velocity_at_rest_needs_no_solve() -> None:
    model = model_of((6, 4), ("closed",) * 4)
    solves = Solves(model)
    assert not solves.run(np.zeros((2, 7, 5))).any()
    assert solves.report().worst == Solve(iterations=0, residual=0.0, error=0.0)
