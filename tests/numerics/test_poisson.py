"""The Poisson problem on a box: its operator, Jacobi sweeps, the direct solver and the Fourier solver."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from simphys.autograd import runtime
from simphys.autograd.kernels import device
from simphys.numerics.fourier import FourierSolver
from simphys.numerics.jacobi import JacobiSweeps
from simphys.numerics.poisson import Poisson
from simphys.numerics.separable import CellDirectSolver, DirectSolver
from simphys.simulator import Array

from ..helpers.rounding import assert_equal_but_for_rounding

P, C, O, CO = ("periodic", "periodic"), ("closed", "closed"), ("open", "open"), ("closed", "open")  # noqa: E741
BOXES = [((5, 18), (CO, P)), ((1, 4), (C, CO)), ((2, 3), (P, C)), ((4, 3, 17), (O, P, C)), ((2, 17, 3), (P, CO, P))]


def dense(system: Poisson) -> Array:
    """Assemble the matrix of A, neighbour by neighbour."""
    index = np.arange(np.prod(system.cells)).reshape(system.cells)
    matrix = np.zeros((index.size, index.size))
    for cell in np.ndindex(*system.cells):
        for axis, n in enumerate(system.cells):
            for side, step in enumerate((-1, 1)):
                other = list(cell)
                other[axis] += step
                end = system.ends[axis][side]
                if 0 <= other[axis] < n or end == "periodic":
                    other[axis] %= n
                    matrix[index[cell], index[cell]] += 1
                    matrix[index[cell], index[tuple(other)]] -= 1
                elif end == "open":
                    matrix[index[cell], index[cell]] += 1 / system.open_distance
    return matrix


def kron(one: Array, other: Array) -> Array:
    return np.kron(one, other)


def solve(system: Poisson, solver: Any, b: Array) -> Array:
    given = system.array()
    system.inside(given)[...] = b
    if isinstance(solver.b, np.ndarray):
        solver.b[...] = given
    else:
        solver.b.write(given)
    solver.solve()
    return system.inside(device.to_host(solver.z, solver.z.shape)).copy()


def some(system: Poisson, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=system.cells)


def eps() -> float:
    """Return the rounding unit of the precision in force."""
    return float(np.finfo(runtime.real_dtype()).eps)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", [DirectSolver, CellDirectSolver])
@pytest.mark.parametrize(("cells", "ends"), BOXES)
def test_the_direct_solve_is_the_pseudoinverse(cells: Any, ends: Any, kind: Any) -> None:
    for distance in (1.0, 0.75):
        system = Poisson(cells, ends, open_distance=distance)
        expected = np.linalg.pinv(dense(system), rcond=1e-12) @ some(system).reshape(-1)
        found = solve(system, kind(system), some(system)).reshape(-1)
        np.testing.assert_allclose(found, expected, atol=4096 * eps())


@pytest.mark.gpu
@pytest.mark.parametrize(("cells", "ends"), BOXES)
def test_sweeps_are_those_of_jacobi(cells: Any, ends: Any) -> None:
    system = Poisson(cells, ends)
    b, matrix = some(system).reshape(-1), dense(system)
    diagonal = system.inside(system.diagonal).reshape(-1)  # counts of faces, also with one cell along a periodic axis
    z = np.zeros(b.size)
    for count in range(4):
        found = solve(system, JacobiSweeps(system, count), some(system))
        assert_equal_but_for_rounding(found.reshape(-1), z, ulps=64, size=np.abs(b).max())
        z += (b - matrix @ z) / diagonal


@pytest.mark.parametrize("cells", [(6, 5), (3, 4, 5)])
def test_by_fourier_is_the_pseudoinverse_of_either_operator(cells: tuple[int, ...]) -> None:
    system = Poisson(cells, [P] * len(cells))
    compact = FourierSolver(system, central=False)
    np.testing.assert_allclose(
        solve(system, compact, some(system)), solve(system, DirectSolver(system), some(system)), atol=1e-13
    )
    half = [np.roll(np.eye(n), 1, axis=1) / 2 - np.roll(np.eye(n), -1, axis=1) / 2 for n in cells]
    matrix = np.zeros((np.prod(cells), np.prod(cells)))
    for axis, d in enumerate(half):
        matrix += functools.reduce(kron, [d.T @ d if a == axis else np.eye(n) for a, n in enumerate(cells)])
    expected = np.linalg.pinv(matrix, rcond=1e-12) @ some(system).reshape(-1)
    found = solve(system, FourierSolver(system, central=True), some(system))
    np.testing.assert_allclose(found.reshape(-1), expected, atol=1e-12)


@pytest.mark.gpu
def test_many_sweeps_solve_a_small_problem_in_either_precision() -> None:
    system = Poisson((3, 4), (CO, P))
    b = some(system).astype(runtime.real_dtype())
    expected = np.linalg.solve(dense(system), b.reshape(-1)).reshape(b.shape)
    np.testing.assert_allclose(solve(system, JacobiSweeps(system, 800), b), expected, atol=1e-4)
