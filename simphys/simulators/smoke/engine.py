"""`SmokeEngine`, the loops of the sub-steps over arrays, step by step, in memory that is reused.

A segment holds only states. `pull` recomputes the velocities that the adjoints of obstacle and viscosity need; all
other adjoints need only states, or nothing.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.simulator import Array, Arrays
from simphys.simulator.array_engine import ArrayEngine

from . import advect, buoyancy, diffuse, obstacle, project, sides
from .lattice import extended_shape
from .model import Smoke
from .solve_report import SolveReports

WORK = 32
"""Approximate number of velocities in the workspace of a step and its adjoint, at most."""


class SmokeEngine(ArrayEngine):
    """The rollout of a batch of flows, one batch member at a time. Sub-steps without effect are skipped."""

    model: Smoke

    def __init__(self, model: Smoke, *arguments: Any, **options: Any) -> None:
        super().__init__(model, *arguments, **options)
        self.reports = SolveReports(model)
        """Reports of the pressure solves so far."""
        self._active = {name for name, values in self.params.items() if values.any()}

    def segment_bytes(self, steps: int, *, dense: bool) -> int:
        numbers = WORK * self.model.dim * math.prod(extended_shape(self.model))
        return super().segment_bytes(steps, dense=dense) + numbers * runtime.real_dtype().itemsize

    def advance(self, segment: Arrays, *, first: int, start: int, steps: int) -> None:
        for b in range(self.batch):
            p = _view(self.params, b)
            for row in range(start, start + steps):
                self._advance_step(p, _view(segment, b, row), _view(segment, b, row + 1), (b, first + row))
        self.reports.warn("forward")

    def pull(self, segment: Arrays, *, first: int, steps: int, adjoint: Arrays) -> None:
        dense = adjoint["smoke"].shape[1] > 1
        for b in range(self.batch):
            p, sums = _view(self.params, b), _view(self.sums, b)
            running = {name: values[b, -1].copy() for name, values in adjoint.items()}
            for row in reversed(range(steps)):
                now, new = _view(segment, b, row), _view(segment, b, row + 1)
                running = self._pull_step(p, now, new, running, sums, (b, first + row))
                if dense:
                    for name, values in _view(adjoint, b, row).items():
                        values += running[name]
                        running[name] = values.copy()
            if not dense:
                for name, values in _view(adjoint, b, 0).items():
                    values[...] = running[name]
        self.reports.warn("backward")

    def push(self, segment: Arrays, *, first: int, steps: int, tangent: Arrays) -> Arrays:
        dsegment = self.segment(steps)
        self.load(dsegment, tangent)
        for b in range(self.batch):
            p, dp = _view(self.params, b), _view(self.tangents, b)
            for row in range(steps):
                now, new = _view(segment, b, row), _view(segment, b, row + 1)
                dnow, dnew = _view(dsegment, b, row), _view(dsegment, b, row + 1)
                self._push_step(p, now, new, dp, dnow, dnew, (b, first + row))
        self.reports.warn("tangent")
        return self.read(dsegment, slice(steps + 1))

    def _advance_step(self, p: Arrays, now: Arrays, new: Arrays, at: tuple[int, int]) -> None:
        model = self.model
        u = self._apply_forces(p, now, self._advect_velocity(p, now))
        new["force"][:] = 0
        if model.has_obstacle:
            u, new["force"][:] = obstacle.forward(model, u, p["obstacle"], out=u)
        if not model.is_periodic:
            u = sides.forward(model, u, p["boundary_velocity"], out=u)
        project.forward(model, u, out=new["velocity"], report=self.reports.select("forward", *at))
        advect.forward_smoke(model, now["smoke"], new["velocity"], p["boundary_smoke"], out=new["smoke"])
        if "smoke_rate" in self._active:
            new["smoke"] += model.dt * p["smoke_rate"]

    def _pull_step(self, p: Arrays, now: Arrays, new: Arrays, adj: Arrays, sums: Arrays, at: tuple[int, int]) -> Arrays:
        """Compute the adjoint of state `now` from that of state `new`."""
        model = self.model
        sums["smoke_rate"] += model.dt * adj["smoke"]
        adj_smoke, adj_u, adj_boundary_smoke = advect.pull_smoke(
            model, now["smoke"], new["velocity"], p["boundary_smoke"], adj["smoke"]
        )
        sums["boundary_smoke"] += adj_boundary_smoke
        adj_u += adj["velocity"]
        adj_u = project.pull(model, adj_u, out=adj_u, report=self.reports.select("backward", *at))
        if not model.is_periodic:
            adj_u, adj_boundary = sides.pull(model, adj_u)
            sums["boundary_velocity"] += adj_boundary
        diffuses, rises = (name in self._active | self.needs for name in ("viscosity", "buoyancy"))
        moved = self._advect_velocity(p, now) if diffuses or model.has_obstacle else now["velocity"]
        if model.has_obstacle:
            pushed = self._apply_forces(p, now, moved)
            adj_u, adj_obstacle = obstacle.pull(model, pushed, p["obstacle"], adj_u, adj["force"])
            sums["obstacle"] += adj_obstacle
        if rises:
            adj_u, adj_lifting, adj_buoyancy = buoyancy.pull(model, now["smoke"], p["buoyancy"], adj_u)
            adj_smoke += adj_lifting
            sums["buoyancy"] += adj_buoyancy
        if diffuses:
            adj_u, adj_viscosity, adj_boundary = diffuse.pull(
                model, moved, p["viscosity"], p["boundary_velocity"], adj_u
            )
            sums["viscosity"] += adj_viscosity
            sums["boundary_velocity"] += adj_boundary
        adj_u, adj_boundary = advect.pull_velocity(model, now["velocity"], p["boundary_velocity"], adj_u, out=adj_u)
        sums["boundary_velocity"] += adj_boundary
        return {"velocity": adj_u, "smoke": adj_smoke, "force": np.zeros_like(adj["force"])}

    def _push_step(
        self, p: Arrays, now: Arrays, new: Arrays, dp: Arrays, dnow: Arrays, dnew: Arrays, at: tuple[int, int]
    ) -> None:
        """Compute the tangent of state `new` from that of state `now`."""
        model, boundary, dboundary = self.model, p["boundary_velocity"], dp["boundary_velocity"]
        moved = self._advect_velocity(p, now)
        du = advect.push_velocity(model, now["velocity"], boundary, dnow["velocity"], dboundary)
        du = diffuse.push(model, moved, p["viscosity"], boundary, du, dp["viscosity"], dboundary)
        du = buoyancy.push(model, now["smoke"], p["buoyancy"], du, dnow["smoke"], dp["buoyancy"])
        dnew["force"][:] = 0
        if model.has_obstacle:
            pushed = self._apply_forces(p, now, moved)
            du, dnew["force"][:] = obstacle.push(model, pushed, p["obstacle"], du, dp["obstacle"])
        if not model.is_periodic:
            du = sides.push(model, du, dboundary)
        project.push(model, du, out=dnew["velocity"], report=self.reports.select("tangent", *at))
        carried = now["smoke"], new["velocity"], p["boundary_smoke"]
        dcarried = dnow["smoke"], dnew["velocity"], dp["boundary_smoke"]
        dnew["smoke"][:] = advect.push_smoke(model, *carried, *dcarried) + model.dt * dp["smoke_rate"]

    def _advect_velocity(self, p: Arrays, now: Arrays) -> Array:
        """Compute the velocity advected by itself."""
        return advect.forward_velocity(self.model, now["velocity"], p["boundary_velocity"], out=self._velocities[0])

    def _apply_forces(self, p: Arrays, now: Arrays, moved: Array) -> Array:
        """Compute the velocity after viscosity and buoyancy."""
        u = moved
        if "viscosity" in self._active:
            given = p["viscosity"], p["boundary_velocity"]
            u = diffuse.forward(self.model, u, *given, out=self._velocities[1])
        if "buoyancy" in self._active:
            u = buoyancy.forward(self.model, u, now["smoke"], p["buoyancy"], out=self._velocities[1])
        return u

    @cached_property
    def _velocities(self) -> tuple[Array, Array]:
        """Two velocities of workspace."""
        shape = self.model.dim, *self.model.faces
        return np.empty(shape, runtime.real_dtype()), np.empty(shape, runtime.real_dtype())


def _view(arrays: Arrays, *index: int) -> Arrays:
    """View a batch member, or one of its states, in the same memory; scalars, too."""
    place: Any = (*index, ...)
    return {name: values[place] for name, values in arrays.items()}
