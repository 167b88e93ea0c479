"""Iterative solvers are of degree one in the right side, of any magnitude, and hide no number that is not finite."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from simphys.autograd import runtime
from simphys.numerics.cell_conjugate_gradients import CellConjugateGradients
from simphys.numerics.conjugate_gradients import ConjugateGradients
from simphys.numerics.coupled_cells import CoupledCells, couple_cells
from simphys.numerics.magnitude import find_magnitude
from simphys.numerics.poisson import Poisson
from simphys.simulator import Array

from .test_poisson import CO, C, P, solve, some

CELLS = (6, 5)
PRECISIONS = {"f32": (2.0**-90, 2.0**-60, 2.0**60, 2.0**90), "f64": (2.0**-800, 2.0**-500, 2.0**500, 2.0**800)}
"""Magnitudes whose squares under- or overflow, by precision."""


def make_solver(kind: str) -> Any:
    """Make a function b -> A^-1 b."""
    if kind == "coupled cells":
        k = np.linspace(0.5, 1.5, math.prod(CELLS)).reshape(CELLS).astype(runtime.real_dtype())
        return CoupledCells(*couple_cells(k, 0.5, (0, 3))).solve
    ends = (C, P) if "singular" in kind else (CO, P)
    system = Poisson(CELLS, ends)
    solver = CellConjugateGradients if "by cells" in kind else ConjugateGradients
    made = solver(system, tolerance=1e-6, most_iterations=200, preconditioned=kind.startswith("multigrid"))
    return lambda b: solve(system, made, b)


def right_side() -> Array:
    return some(Poisson(CELLS, (C, C))).astype(runtime.real_dtype())


ROWS = ("bare", "bare, singular", "multigrid", "multigrid, singular")
KINDS = ("coupled cells", *ROWS, *[f"{kind}, by cells" for kind in ROWS])


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_solution_is_scaled_like_the_right_side_bit_by_bit(kind: str, precision: Any) -> None:
    with runtime.using(runtime.Settings(precision=precision)):
        solver, b = make_solver(kind), right_side()
        expected = solver(b)
        assert np.abs(expected).max() > 0.1
        for scale in PRECISIONS[precision]:
            np.testing.assert_array_equal(solver(scale * b) / scale, expected)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("kind", KINDS)
def test_of_a_number_that_is_not_finite_nothing_is_solved(kind: str, value: float) -> None:
    solver, b = make_solver(kind), right_side()
    expected = solver(b)
    b[2, 1] = value
    assert np.isnan(solver(b)).all()
    np.testing.assert_array_equal(solver(right_side()), expected)  # nothing of it is left


@pytest.mark.parametrize("kind", KINDS)
def test_the_solution_for_zeros_is_zero(kind: str) -> None:
    assert not make_solver(kind)(np.zeros(CELLS, runtime.real_dtype())).any()


@pytest.mark.parametrize("kind", [ConjugateGradients, CellConjugateGradients])
@pytest.mark.parametrize("preconditioned", [False, True])
def test_the_error_is_scaled_like_the_right_side(preconditioned: bool, kind: Any) -> None:
    system = Poisson((36, 20), (CO, C))
    solver = kind(system, tolerance=1e-12, most_iterations=2, preconditioned=preconditioned)
    b = some(system)
    solve(system, solver, b)
    error, residual = solver.error(), solver.residual
    solve(system, solver, 2.0**500 * b)
    assert error > 0 and (solver.error(), solver.residual) == (2.0**500 * error, residual)


def test_the_magnitude_is_a_power_of_two() -> None:
    values = {3.0: 2.0, -4.0: 4.0, 0.3: 0.25, 0.0: 0.0, 1e-320: 0.0, 1e308: 2.0**1023}
    for value, magnitude in values.items():
        assert find_magnitude(np.array([value, 0.0])) == magnitude
    assert find_magnitude(np.zeros(0)) == 0
    for wrong in (np.nan, np.inf):
        assert math.isnan(find_magnitude(np.array([1.0, wrong])))
