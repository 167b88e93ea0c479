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

from simphys.autograd import runtime
from simphys.numerics.cell_conjugate_gradients import CellConjugateGradients, conjugate_gradients
from simphys.numerics.conjugate_gradients import ConjugateGradients
from simphys.numerics.fourier import FourierSolver, OnHost
from simphys.numerics.jacobi import JacobiSweeps
from simphys.numerics.poisson import Poisson
from simphys.substep import Chain, Entries, Launch, Target, launched
from simphys.substep.action import Moment

from .differences import Differences
from .entries import norm_of
from .model import Smoke
from .solve_report import LARGEST_ERROR, Direction, Solve, SolveReports, warn

Out = Mapping[str, Target]


def project(model: Smoke, velocity: Entries, out: Out, moment: Moment | None) -> Launch:
    """Project a velocity [dim, *faces] [m/s]."""
    return _project(model, velocity, out["projected_velocity"], "forward", moment)


def adj_project(model: Smoke, adj_projected_velocity: Entries, out: Out, moment: Moment | None) -> Launch:
    return _project(model, adj_projected_velocity, out["velocity"], "backward", moment)


def jvp_project(model: Smoke, dvelocity: Entries, out: Out, moment: Moment | None) -> Launch:
    return _project(model, dvelocity, out["projected_velocity"], "tangent", moment)


def _project(model: Smoke, velocity: Entries, target: Target, direction: Direction, moment: Moment | None) -> Launch:
    used, corrected = ("free", "all") if direction == "backward" else ("all", "free")
    solver, differences = _workspace(model)
    divergence, correct = differences.divergence(used, velocity), differences.correct(corrected, velocity, target)

    def observe() -> None:
        """Report the solve or, outside an engine, warn if it is unconverged."""
        report = moment and reports_of(model, moment.notes).select(direction, moment.member, moment.step)
        unreported = moment is None and solver.residual > model.tolerance
        if not (report or unreported):
            return
        size = norm_of(model, target.entries)
        error = solver.error() / size if size else 0.0
        if report:
            report.add(Solve(iterations=solver.iterations, residual=solver.residual, error=error))
        elif error > LARGEST_ERROR:
            warn(model, f"{direction}, a larger one, estimated")  # always the same text, so that it is shown only once

    observed = [observe] if isinstance(solver, ConjugateGradients | CellConjugateGradients) else []
    return Chain(divergence, solver.solve, correct, *observed)


def finish(model: Smoke, name: str, notes: dict[str, Any]) -> None:
    """Warn of solves that ended too early, at the end of a pass."""
    direction: Direction = "backward" if name == "adjoint" else "tangent" if name == "tangent" else "forward"
    reports_of(model, notes).warn(direction)


def reports_of(model: Smoke, notes: dict[str, Any]) -> SolveReports:
    """Return the reports of an engine's solves."""
    found: SolveReports = notes.setdefault("pressure solves", SolveReports(model))
    return found


Project = launched(
    project,
    adjoint=adj_project,
    tangent=jvp_project,
    results={"projected_velocity": "velocity"},
    name="Project",
    work_arrays=8,
    finish=finish,
)
"""The projection of a velocity [dim, *faces] [m/s]. An unconverged solve causes a warning, UnconvergedSolve."""


@runtime.cached(maxsize=4)
def _workspace(model: Smoke) -> tuple[Any, Differences]:
    """Return the pressure solver of a model, with its arrays, and loops over them."""
    system = poisson_of(model)
    solver = _make_solver(model, system)
    return solver, Differences(model, system, solver.b, solver.z)


def _make_solver(model: Smoke, system: Poisson) -> Any:
    if model.projection == "jacobi":
        return JacobiSweeps(system, model.sweeps)
    if model.projection == "fft":
        solver = FourierSolver(system, central=model.grid == "collocated")
        return OnHost(solver) if runtime.settings().on_gpu else solver
    return conjugate_gradients(
        system,
        tolerance=model.tolerance,
        most_iterations=model.most_iterations,
        preconditioned=model.projection == "multigrid",
    )


def poisson_of(model: Smoke) -> Poisson:
    """Make the equation of the pressure."""
    ends = [_end_kinds(*model.boundaries[2 * axis : 2 * axis + 2]) for axis in range(model.dim)]
    return Poisson(model.cells, ends)


def _end_kinds(low: str, high: str) -> tuple[str, str]:
    kinds = {"inflow": "closed"}
    return kinds.get(low, low), kinds.get(high, high)
