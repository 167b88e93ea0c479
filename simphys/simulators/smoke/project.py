"""Projection of a velocity to one without divergence (Chorin 1968; Stam 1999):

    u' = u - grad p,  laplace p = div u,

the time step and the density being part of p. With D the divergence (see `divergence`), D_f that of the free faces
alone (all but those at closed and inflow sides, whose velocity is given) and A = D_f D_f^T (see `numerics.poisson`),

    A z = D u,  u' = u - D_f^T z,

which leaves no divergence. At an open side p is 0 in the centre of the ghost cell, its faces are free, so that among
free faces this is the orthogonal projection, 1 - D_f^T A^+ D_f. Without an open side, constants are left out of z; what
given faces let in, in the mean, stays as divergence. On a collocated grid A is the compact Laplacian, not D D^T: an
approximate projection (Almgren, Bell and Szymczak 1996), which leaves divergence, most at wavelengths of a few cells;
with fft A is D D^T, and the projection exact.

The map is linear: it is its own tangent, and nothing is saved. For g = adj_u', with A^+ symmetric,

    A w = D_f g,  adj_u = g - D^T w:

the same solve, with the two divergences exchanged. Fixed sweeps of Jacobi from 0 are symmetric as well, a polynomial of
K^-1 A times K^-1 with K the diagonal of A, so that this is the exact adjoint of them as it is of converged solves. That
of a solve which ends early is off by about the residual's share; `solve_report` tells how much.
"""

from __future__ import annotations

import functools
from typing import Any, Literal

import numpy as np

from simphys.autograd import Context, Function, Tensor
from simphys.numerics.conjugate_gradients import ConjugateGradients
from simphys.numerics.fourier import Fourier
from simphys.numerics.poisson import Poisson, Sweeps
from simphys.simulator import Array

from .divergence import Differences
from .model import Smoke
from .solve_report import LARGEST_ERROR, MEASURED, Solve, SolveReport, warn


def forward(model: Smoke, velocity: Array, *, out: Array | None = None, report: SolveReport | None = None) -> Array:
    """The projection of a velocity [dim, *faces], into `out`, which may be the velocity itself."""
    return _projected(model, velocity, out, report, "forward")


def pull(model: Smoke, adj: Array, *, out: Array | None = None, report: SolveReport | None = None) -> Array:
    """The adjoint of the velocity by that of its projection, into `out`, which may be `adj` itself."""
    return _projected(model, adj, out, report, "backward")


def push(model: Smoke, tangent: Array, *, out: Array | None = None, report: SolveReport | None = None) -> Array:
    """The tangent of the projection by that of the velocity, into `out`, which may be `tangent` itself."""
    return _projected(model, tangent, out, report, "tangent")


class Project(Function):
    """The projection of a velocity [dim, *faces] [m/s] of a model. Saved: nothing, it is linear.

    Warns (UnconvergedSolve) of a solve that ended too early."""

    @staticmethod
    def forward(ctx: Context, model: Smoke, velocity: Tensor) -> Array:
        ctx.model = model
        return _told(model, forward(model, velocity.data), "forward")

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Any, ...]:
        return None, _told(ctx.model, pull(ctx.model, adj.data), "backward")

    @staticmethod
    def jvp(ctx: Context, _: None, tangent: Any) -> Array:
        return _told(ctx.model, push(ctx.model, np.asarray(tangent)), "tangent")


class _Workspace:
    """The solver of a model, and what it works with."""

    def __init__(self, model: Smoke) -> None:
        ends = [_ends(*model.boundaries[2 * axis : 2 * axis + 2]) for axis in range(model.dim)]
        system = Poisson(model.cells, ends)
        self.solver: Sweeps | Fourier | ConjugateGradients
        if model.projection == "jacobi":
            self.solver = Sweeps(system, model.sweeps)
        elif model.projection == "fft":
            self.solver = Fourier(system, central=model.grid == "collocated")
        else:
            self.solver = ConjugateGradients(
                system,
                tolerance=model.tolerance,
                most_iterations=model.most_iterations,
                preconditioned=model.projection == "multigrid",
            )
        self.differences = Differences(model, system, self.solver.b, self.solver.z)

    def error(self) -> float:
        """Estimated error of the velocity that was just projected by an unfinished solve, relative to it."""
        size = _norm(self.differences.velocity.reshape(-1))
        return self.solver.error() / size if isinstance(self.solver, ConjugateGradients) and size else 0.0


def _ends(low: str, high: str) -> tuple[str, str]:
    kinds = {"inflow": "closed"}
    return kinds.get(low, low), kinds.get(high, high)


@functools.lru_cache(maxsize=4)
def _workspace(model: Smoke) -> _Workspace:
    return _Workspace(model)


def _projected(
    model: Smoke,
    velocity: Array,
    out: Array | None,
    report: SolveReport | None,
    direction: Literal["forward", "backward", "tangent"],
) -> Array:
    work = _workspace(model)
    differences, solver = work.differences, work.solver
    seen, corrected = ("free", "all") if direction == "backward" else ("all", "free")
    np.copyto(differences.velocity, velocity)
    differences.divergence(seen)
    measured = report is not None and report.solves % MEASURED == 0
    before = _norm(solver.b) if measured else 0.0
    solver.solve()
    differences.correct(corrected)
    if out is None:
        out = np.empty_like(differences.velocity)
    np.copyto(out, differences.velocity)
    if report is not None:
        error, left = work.error(), 0.0 if measured else None
        if before:
            differences.divergence(seen)
            left = _norm(solver.b) / before
        report.add(Solve(iterations=solver.iterations, residual=solver.residual, divergence=left, error=error))
    return out


def _told(model: Smoke, result: Array, direction: str) -> Array:
    """The result of the last solve, which is warned of if it ended too early; without a report nobody else does."""
    work = _workspace(model)
    if work.solver.residual > model.tolerance and work.error() > LARGEST_ERROR:
        warn(model, f"{direction}, a larger one, estimated")  # the same text each time, to be shown once
    return result


def _norm(array: Array) -> float:
    """Of a flat array. Not by BLAS, which would wake other threads."""
    return float(np.sqrt(np.einsum("i,i", array, array)))
