"""A V-cycle is symmetric, positive and contracts equally on every grid; it makes conjugate gradients converge fast."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.numerics.cell_conjugate_gradients import CellConjugateGradients
from simphys.numerics.cell_multigrid import CellMultigrid
from simphys.numerics.conjugate_gradients import ConjugateGradients
from simphys.numerics.multigrid import Multigrid
from simphys.numerics.poisson import Poisson
from simphys.numerics.separable import DirectSolver

from .test_poisson import CO, C, O, P, eps, solve, some

BOXES = [
    ((72, 36), (C, C)),
    ((36, 72), (P, CO)),
    ((72, 68), (O, P)),
    ((20, 18, 36), (C, CO, P)),
    ((36, 4, 20), (P, C, O)),
]

solvers = pytest.mark.parametrize("kind", [ConjugateGradients, CellConjugateGradients])


@pytest.mark.gpu
@pytest.mark.parametrize("kind", [Multigrid, CellMultigrid])
@pytest.mark.parametrize(("cells", "ends"), BOXES)
def test_a_cycle_is_symmetric_and_positive(cells: Any, ends: Any, kind: Any) -> None:
    system = Poisson(cells, ends)
    cycle = kind(system)
    one, two = some(system), some(system, seed=1)
    if system.is_singular:
        one, two = one - one.mean(), two - two.mean()
    there, back = (two * solve(system, cycle, one)).sum(), (one * solve(system, cycle, two)).sum()
    np.testing.assert_allclose(there, back, rtol=1e5 * eps())
    assert (one * solve(system, cycle, one)).sum() > 0


@solvers
@pytest.mark.parametrize(("cells", "ends"), BOXES)
def test_with_it_conjugate_gradients_take_few_steps_on_every_grid(cells: Any, ends: Any, kind: Any) -> None:
    system = Poisson(cells, ends)
    exact = solve(system, DirectSolver(system), some(system))
    solver = kind(system, tolerance=1e-8, most_iterations=200, preconditioned=True)
    found = solve(system, solver, some(system))
    assert solver.iterations <= 9
    assert solver.residual < 1e-8
    np.testing.assert_allclose(found, exact, atol=1e-7 * abs(exact).max())


@solvers
@pytest.mark.parametrize("preconditioned", [False, True])
@pytest.mark.parametrize("iterations", [1, 3, 30])
def test_the_error_of_an_unfinished_solve_is_estimated(iterations: int, preconditioned: bool, kind: Any) -> None:
    system = Poisson((72, 36), (CO, C))
    exact = solve(system, DirectSolver(system), some(system))
    solver = kind(system, tolerance=1e-8, most_iterations=iterations, preconditioned=preconditioned)
    error = solve(system, solver, some(system)) - exact
    steps = [np.diff(error, axis=0, append=0), np.diff(error, axis=1)]
    energy = np.sqrt(sum((step**2).sum() for step in steps))
    assert solver.error() == pytest.approx(energy, rel=0.1)


@solvers
def test_without_an_open_side_constants_are_left_out(kind: Any) -> None:
    system = Poisson((20, 18), (C, P))
    for preconditioned in (False, True):
        solver = kind(system, tolerance=1e-12, most_iterations=500, preconditioned=preconditioned)
        found = solve(system, solver, some(system) + 3)
        np.testing.assert_allclose(found, solve(system, DirectSolver(system), some(system)), atol=1e-9)
        assert not solve(system, solver, np.full(system.cells, 2.0)).any()
        assert solver.iterations == 0
