"""The solver with a thread for each cell: on a GPU, and in the ordinary suite on the processor, in f64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import runtime
from simphys.autograd.kernels import calls, device
from simphys.numerics.cell_conjugate_gradients import CellConjugateGradients, conjugate_gradients
from simphys.numerics.cell_scalars import SCALARS
from simphys.numerics.conjugate_gradients import ConjugateGradients
from simphys.numerics.poisson import Poisson
from simphys.simulator import Array

from .test_poisson import CO, C, O, P, eps, solve, some

BOXES = {
    "rows of less than a block, one grid": ((5, 18), (CO, P)),
    "closed, two grids": ((20, 18), (C, C)),
    "one cell, periodic": ((1, 20), (P, P)),
    "3-D": ((4, 18, 6), (P, CO, O)),
    "3-D, periodic": ((2, 18, 4), (P, P, C)),
}
boxes = pytest.mark.parametrize(("cells", "ends"), BOXES.values(), ids=list(BOXES))
preconditioning = pytest.mark.parametrize("preconditioned", [False, True])


def make(system: Poisson, preconditioned: bool, kind: Any = CellConjugateGradients, **options: Any) -> Any:
    """Make a solver that goes on to rounding."""
    return kind(system, preconditioned=preconditioned, **{"tolerance": 4 * eps(), "most_iterations": 200, **options})


def rounded(system: Poisson) -> Array:
    """Draw a right side of numbers in the precision in force."""
    return some(system).astype(runtime.real_dtype())


@pytest.mark.gpu
@preconditioning
@boxes
def test_the_solution_is_that_of_the_processor(cells: Any, ends: Any, preconditioned: bool) -> None:
    b = rounded(Poisson(cells, ends))
    found = solve(system := Poisson(cells, ends), make(system, preconditioned), b)
    with runtime.using(runtime.Settings(precision="f64")):
        system = Poisson(cells, ends)
        expected = solve(system, make(system, preconditioned, ConjugateGradients), b)
    np.testing.assert_allclose(found, expected, rtol=0, atol=200 * eps() * np.abs(expected).max())


@preconditioning
@boxes
def test_iterations_and_errors_are_those_of_the_processor(cells: Any, ends: Any, preconditioned: bool) -> None:
    system = Poisson(cells, ends)
    for most_iterations in (1, 3, 200):
        both = [
            make(system, preconditioned, kind, tolerance=1e-9, most_iterations=most_iterations)
            for kind in (CellConjugateGradients, ConjugateGradients)
        ]
        found, expected = [(solve(system, each, 3 + some(system)), each) for each in both]
        np.testing.assert_allclose(found[0], expected[0], rtol=0, atol=1e-12 * np.abs(expected[0]).max())
        assert found[1].iterations == expected[1].iterations
        for name in ("residual", "error"):
            one, other = [value() if callable(value := getattr(each, name)) else value for each in both]
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-12)


@pytest.mark.gpu
@preconditioning
def test_a_solution_is_the_same_to_the_bit_each_time_whatever_its_magnitude(preconditioned: bool) -> None:
    system = Poisson((3, 4), (O, CO))
    solver, b = make(system, preconditioned), rounded(system)
    b /= np.abs(b).max() / 1.5
    expected = solve(system, solver, b)
    last = int(np.finfo(b.dtype).maxexp) - 1
    for scale in (1, *[np.ldexp(b.dtype.type(1), power) for power in (-40, 40, last)]):
        np.testing.assert_array_equal(solve(system, solver, scale * b), scale * expected)


@pytest.mark.gpu
@preconditioning
@pytest.mark.parametrize("ends", [(CO, P), (C, P)], ids=["regular", "singular"])
def test_zeros_and_numbers_that_are_not_finite_are_not_solved(ends: Any, preconditioned: bool) -> None:
    system = Poisson((3, 4), ends)
    solver, b = make(system, preconditioned), rounded(system)
    expected = solve(system, solver, b)
    for value, result in ((0.0, 0.0), (np.inf, np.nan), (-np.inf, np.nan), (np.nan, np.nan)):
        wrong = b.copy() if value else np.zeros_like(b)
        wrong[1, 2] = value
        np.testing.assert_array_equal(solve(system, solver, wrong), np.full_like(b, result))
        assert (solver.iterations, solver.residual) == (0, 0.0)
        np.testing.assert_array_equal(solver.error(), result)
    np.testing.assert_array_equal(solve(system, solver, b), expected)  # nothing of it is left


@pytest.mark.gpu
@pytest.mark.skipif("not runtime.settings().on_gpu", reason="nothing travels on the processor")
@preconditioning
def test_in_an_iteration_a_few_numbers_travel(preconditioned: bool) -> None:
    system = Poisson((20, 18), (CO, C))
    solver = make(system, preconditioned)
    solve(system, solver, rounded(system))
    launches = calls.join(solver.solve.launches)
    for _ in range(2):  # the first time, kernels are compiled
        before = runtime.counters.now()
        for launch in launches:
            launch()
        found = runtime.counters.now() - before
    assert solver.iterations > 2
    bytes_each = len(SCALARS) * np.dtype(runtime.real_dtype()).itemsize
    assert (found.uploads, found.downloads) == (0, solver.iterations + 1)
    assert found.bytes_down == found.downloads * bytes_each
    if len(launches) == 3:  # joined
        assert found.launches == solver.iterations + 2


@pytest.mark.gpu
def test_the_solver_of_a_device_has_its_arrays_there() -> None:
    solver = conjugate_gradients(Poisson((3, 4), (C, P)), tolerance=0.1, most_iterations=1, preconditioned=False)
    on_gpu = runtime.settings().on_gpu
    kind = device.DeviceArray if on_gpu else np.ndarray
    assert isinstance(solver.b, kind) and isinstance(solver.z, kind)
    assert isinstance(solver, CellConjugateGradients if on_gpu else ConjugateGradients)
