"""Projection of a velocity by a fixed number of Jacobi sweeps, see project.py: kernels alone, where the arrays lie."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simphys.autograd import runtime
from simphys.numerics.jacobi import JacobiSweeps
from simphys.substep import Chain, Entries, Launch, Target, launched

from .differences import Differences
from .model import Smoke
from .project import Project, poisson_of

Out = Mapping[str, Target]


def project_by_sweeps(model: Smoke, velocity: Entries, out: Out) -> Launch:
    """Project a velocity [dim, *faces] [m/s]."""
    return _project(model, velocity, out["swept_velocity"], ("all", "free"))


def adj_project_by_sweeps(model: Smoke, adj_swept_velocity: Entries, out: Out) -> Launch:
    return _project(model, adj_swept_velocity, out["velocity"], ("free", "all"))


def jvp_project_by_sweeps(model: Smoke, dvelocity: Entries, out: Out) -> Launch:
    return _project(model, dvelocity, out["swept_velocity"], ("all", "free"))


def _project(model: Smoke, velocity: Entries, target: Target, faces: tuple[str, str]) -> Launch:
    solver, differences = _workspace(model)
    used, corrected = faces
    return Chain(differences.divergence(used, velocity), solver.solve, differences.correct(corrected, velocity, target))


@runtime.cached(maxsize=4)
def _workspace(model: Smoke) -> tuple[JacobiSweeps, Differences]:
    system = poisson_of(model)
    solver = JacobiSweeps(system, model.sweeps)
    return solver, Differences(model, system, solver.b, solver.z)


ProjectBySweeps = launched(
    project_by_sweeps,
    adjoint=adj_project_by_sweeps,
    tangent=jvp_project_by_sweeps,
    results={"swept_velocity": "velocity"},
    name="ProjectBySweeps",
    work_arrays=8,
)
"""The projection of a velocity [dim, *faces] [m/s] by sweeps."""


def projection_of(model: Smoke) -> Any:
    """Return the sub-step that projects a velocity by the model's solver."""
    return ProjectBySweeps if model.projection == "jacobi" else Project
