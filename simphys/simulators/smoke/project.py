"""Projection of a velocity to a divergence-free one (Chorin 1968; Stam 1999):

    u' = u - grad p,  laplace p = div u,

with time step and density absorbed in p. D is the divergence (see `divergence`), D_f the divergence of the free faces
(all except those at closed and inflow sides, whose velocity is given), and A = D_f D_f^T (see `numerics.poisson`):

    A z = D u,  u' = u - D_f^T z

The result has no divergence. At an open side p is 0 at the centre of the ghost cell, and its faces are free. On free
faces this is therefore the orthogonal projection 1 - D_f^T A^+ D_f. Without an open side, z has zero mean, and the mean
net inflow of given faces remains as divergence. On a collocated grid A is the compact Laplacian, not D D^T. This is an
approximate projection (Almgren, Bell and Szymczak 1996), which leaves divergence, mostly at wavelengths of a few cells.
With fft A is D D^T, and the projection is exact.

The map is linear, so it is its own tangent, and nothing is saved. For g = adj_u', with A^+ symmetric,

    A w = D_f g,  adj_u = g - D^T w

is the same solve with the two divergences exchanged. A fixed number of Jacobi sweeps from 0 is symmetric as well: a
polynomial of K^-1 A times K^-1, with K the diagonal of A. So this is their exact adjoint, as for converged solves. The
adjoint of an unconverged solve has a relative error of about its residual; see `solve_report`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.numerics.conjugate_gradients import ConjugateGradients
from simphys.numerics.fourier import FourierSolver
from simphys.numerics.poisson import Poisson
from simphys.simulator import Array
from simphys.substep import Entries, Target, operation
from simphys.substep.action import Moment

from .differences import Differences
from .model import Smoke
from .solve_report import LARGEST_ERROR, MEASURED, Direction, Solve, SolveReport, SolveReports, warn


def forward(model: Smoke, velocity: Array, *, out: Array | None = None, report: SolveReport | None = None) -> Array:
    """Project a velocity [dim, *faces] into `out`, which may be the velocity itself."""
    return _project(model, velocity, out, report, "forward")


def pull(model: Smoke, adj: Array, *, out: Array | None = None, report: SolveReport | None = None) -> Array:
    """Compute the adjoint of the velocity from that of its projection, into `out`, which may be `adj` itself."""
    return _project(model, adj, out, report, "backward")


def push(model: Smoke, tangent: Array, *, out: Array | None = None, report: SolveReport | None = None) -> Array:
    """Compute the tangent of the projection from that of the velocity, into `out`, which may be `tangent` itself."""
    return _project(model, tangent, out, report, "tangent")


def project(model: Smoke, velocity: Array, out: Array, moment: Moment | None) -> None:
    """Project a velocity into `out`; without a report to add to, warn if the solve is unconverged."""
    forward(model, velocity, out=out, report=_select_report(model, moment, "forward"))
    _warn_if_unreported(model, moment, "forward")


def adj_project(model: Smoke, adj_projected_velocity: Array, out: Mapping[str, Array], moment: Moment | None) -> Array:
    """Return adj_velocity."""
    report = _select_report(model, moment, "backward")
    found = pull(model, adj_projected_velocity, out=out.get("velocity"), report=report)
    _warn_if_unreported(model, moment, "backward")
    return found


def jvp_project(model: Smoke, dvelocity: Array, moment: Moment | None) -> Array:
    """Return the tangent of the projected velocity."""
    found = push(model, dvelocity, report=_select_report(model, moment, "tangent"))
    _warn_if_unreported(model, moment, "tangent")
    return found


def finish(model: Smoke, name: str, notes: dict[str, Any]) -> None:
    """Warn of solves that ended too early, at the end of a pass."""
    direction: Direction = "backward" if name == "adjoint" else "tangent" if name == "tangent" else "forward"
    reports_of(model, notes).warn(direction)


def reports_of(model: Smoke, notes: dict[str, Any]) -> SolveReports:
    """Return the reports of an engine's solves."""
    found: SolveReports = notes.setdefault("pressure solves", SolveReports(model))
    return found


def _select_report(model: Smoke, moment: Moment | None, direction: Direction) -> SolveReport | None:
    if moment is None:
        return None
    return reports_of(model, moment.notes).select(direction, moment.member, moment.step)


Project = operation(
    project,
    adjoint=adj_project,
    tangent=jvp_project,
    results={"projected_velocity": "velocity"},
    work_arrays=8,
    finish=finish,
)
"""The projection of a velocity [dim, *faces] [m/s]. An unconverged solve causes a warning, UnconvergedSolve."""


class _Workspace:
    """The pressure solver of a model and its arrays."""

    def __init__(self, model: Smoke) -> None:
        system = poisson_of(model)
        self.solver: FourierSolver | ConjugateGradients
        if model.projection == "fft":
            self.solver = FourierSolver(system, central=model.grid == "collocated")
        else:
            self.solver = ConjugateGradients(
                system,
                tolerance=model.tolerance,
                most_iterations=model.most_iterations,
                preconditioned=model.projection == "multigrid",
            )
        self.velocity = np.zeros((model.dim, *model.faces), runtime.real_dtype())
        flat, differences = Entries(self.velocity.reshape(-1)), Differences(model, system, self.solver.b, self.solver.z)
        self.divergence = {faces: differences.divergence(faces, flat) for faces in ("all", "free")}
        self.correct = {faces: differences.correct(faces, flat, Target(flat)) for faces in ("all", "free")}

    def error(self) -> float:
        """Estimate the relative error of the velocity just projected, from the residual of an iterative solve."""
        size = _norm(self.velocity.reshape(-1))
        return self.solver.error() / size if isinstance(self.solver, ConjugateGradients) and size else 0.0


def poisson_of(model: Smoke) -> Poisson:
    """Make the equation of the pressure."""
    ends = [_end_kinds(*model.boundaries[2 * axis : 2 * axis + 2]) for axis in range(model.dim)]
    return Poisson(model.cells, ends)


def _end_kinds(low: str, high: str) -> tuple[str, str]:
    kinds = {"inflow": "closed"}
    return kinds.get(low, low), kinds.get(high, high)


@runtime.cached(maxsize=4)
def _workspace(model: Smoke) -> _Workspace:
    return _Workspace(model)


def _project(
    model: Smoke,
    velocity: Array,
    out: Array | None,
    report: SolveReport | None,
    direction: Direction,
) -> Array:
    work = _workspace(model)
    solver = work.solver
    used, corrected = ("free", "all") if direction == "backward" else ("all", "free")
    np.copyto(work.velocity, velocity)
    work.divergence[used]()
    measured = report is not None and report.solves % MEASURED == 0
    before = _norm(solver.b) if measured else 0.0
    solver.solve()
    work.correct[corrected]()
    if out is None:
        out = np.empty_like(work.velocity)
    np.copyto(out, work.velocity)
    if report is not None:
        error, left = work.error(), 0.0 if measured else None
        if before:
            work.divergence[used]()
            left = _norm(solver.b) / before
        report.add(Solve(iterations=solver.iterations, residual=solver.residual, divergence=left, error=error))
    return out


def _warn_if_unreported(model: Smoke, moment: Moment | None, direction: str) -> None:
    """Warn if the last solve is unconverged, and no engine has a report that would."""
    if moment is not None:
        return
    work = _workspace(model)
    if work.solver.residual > model.tolerance and work.error() > LARGEST_ERROR:
        warn(model, f"{direction}, a larger one, estimated")  # always the same text, so that it is shown only once


def _norm(array: Array) -> float:
    """Compute the norm of a flat array, without BLAS, which would wake other threads; in f64, for its squares."""
    return float(np.sqrt(np.einsum("i,i", array, array, dtype=np.float64)))
