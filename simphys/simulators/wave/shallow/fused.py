"""A time step of all batch members at once: forward, adjoint and tangent. Binds the kernels of the sub-steps to arrays.

Arrays have the layout of the kernels: N numbers for a cell quantity, dim N for a face quantity; see `grid`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from simphys.autograd import runtime
from simphys.simulator import Array, Arrays

from . import advance, fluxes, friction
from .grid import flatten, sizes
from .model import STAGES, ShallowWater

Launch = Callable[..., None]
LAST = len(STAGES)


class Pair:
    """Elevation and velocity of all batch members, or their adjoints or tangents; a given `eta` is shared memory."""

    def __init__(self, model: ShallowWater, batch: int, eta: Array | None = None) -> None:
        self.eta = cell_zeros(model, batch) if eta is None else eta
        self.u = face_zeros(model, batch)
        self.elevation = self.eta.reshape(batch, *model.cells)
        self.velocity = np.moveaxis(self.u.reshape(model.dim, batch, *model.cells), 0, 1)

    def load(self, states: Arrays, row: int) -> None:
        """Load a row of the states over time [B, rows, *shape]."""
        self.elevation[...] = states["elevation"][:, row]
        self.velocity[...] = states["velocity"][:, row]

    def add(self, states: Arrays, row: int) -> None:
        """Add a row of the states over time."""
        self.elevation += states["elevation"][:, row]
        self.velocity += states["velocity"][:, row]

    def store(self, states: Arrays, row: int) -> None:
        """Store this pair as a row of the states over time."""
        states["elevation"][:, row] = self.elevation
        states["velocity"][:, row] = self.velocity


class Fluxes(NamedTuple):
    """The height of the water and the results of `fluxes` for a stage, or their adjoints or tangents."""

    h: Array
    U: Array
    q: Array
    H: Array

    @classmethod
    def zeros(cls, model: ShallowWater, batch: int) -> Fluxes:
        return cls(
            cell_zeros(model, batch), face_zeros(model, batch), cell_zeros(model, batch), cell_zeros(model, batch)
        )


class FlatParams(NamedTuple):
    """The parameters of all batch members, or their tangents, flattened."""

    depth: Array
    gravity: Array
    friction: Array

    @classmethod
    def of(cls, params: Arrays) -> FlatParams:
        """Flatten parameters of shape [B, *shape] each."""
        return cls(*flatten(*[params[name] for name in cls._fields]))


class Forward:
    """A step from `start` to `end`, with the intermediate values that its adjoint needs."""

    ARRAYS = 13, 9
    """Number of arrays over cells, and over faces."""

    def __init__(self, model: ShallowWater, batch: int, given: FlatParams) -> None:
        self.model, self.batch, self.given = model, batch, given
        self.start = Pair(model, batch)
        self.stages = [Pair(model, batch, self.start.eta), *[Pair(model, batch) for _ in STAGES]]
        self.end = Pair(model, batch, self.stages[LAST].eta)
        self.fluxes = [Fluxes.zeros(model, batch) for _ in STAGES]
        counts, dx = sizes(model, batch), model.spacing
        self.half = model.dt / 2, *counts
        """Scalar arguments of the friction kernels."""
        self.edge = dx, *counts
        """Scalar arguments of the flux kernels."""
        self.parts = [(part * model.dt, dx, *counts) for part in STAGES]
        """Scalar arguments of each stage."""
        self._launches = self._bind()

    def run(self) -> None:
        """Compute `end` from `start`."""
        for launch in self._launches:
            launch()

    def _bind(self) -> list[Launch]:
        friction_kernel, flux_kernel, stage_kernel = (
            file.kernels_of(self.model, self.batch).forward for file in (friction, fluxes, advance)
        )
        D, g, c_f = self.given
        first, last = self.stages[0], self.stages[LAST]
        made = [friction_kernel.bind(self.start.u, self.start.eta, D, c_f, *self.half, first.u)]
        for at, to, f, part in zip(self.stages, self.stages[1:], self.fluxes, self.parts, strict=False):
            made.append(flux_kernel.bind(at.eta, at.u, D, g, *self.edge, *f))
            made.append(stage_kernel.bind(first.eta, first.u, f.U, f.q, f.H, *part, to.eta, to.u))
        return [*made, friction_kernel.bind(last.u, last.eta, D, c_f, *self.half, self.end.u)]


class Adjoint:
    """The adjoint of a step: turns the adjoint of its end into that of its start, and adds to the adjoint sums."""

    ARRAYS = 11, 9
    """Number of arrays over cells, and over faces."""

    def __init__(self, step: Forward) -> None:
        model, batch = step.model, step.batch
        self.state = Pair(model, batch)
        self.sums = FlatParams(*[cell_zeros(model, batch) for _ in FlatParams._fields])
        """Adjoint sums with an entry for each cell, even for parameters that are scalars."""
        self._stages = [Pair(model, batch) for _ in step.stages]
        z, U, q, H = Fluxes.zeros(model, batch)
        G, adj_v, adj_h = (face_zeros(model, batch) for _ in range(3))
        friction_kernel, flux_kernel, stage_kernel = (
            file.kernels_of(model, batch).adjoint for file in (friction, fluxes, advance)
        )
        D, g, c_f = step.given

        def bind_damp(value: Pair, adj_new: Pair, adj_u: Array, adj_eta: Array) -> Launch:
            arrays = adj_v, adj_h, adj_u, adj_eta, self.sums.depth, self.sums.friction
            bound: Launch = friction_kernel.bind(value.u, value.eta, D, c_f, *step.half, adj_new.u, *arrays)
            return bound

        first, last = self._stages[0], self._stages[LAST]
        self._adj_damp_last = bind_damp(step.stages[LAST], self.state, last.u, last.eta)
        self._adj_damp_first = bind_damp(step.start, first, self.state.u, first.eta)
        self._back: list[tuple[Launch, Launch]] = []
        sums = self.sums.depth, self.sums.gravity
        for k, (at, f, part) in enumerate(zip(step.stages, step.fluxes, step.parts, strict=False)):
            a, b = self._stages[k], self._stages[k + 1]
            adj_stage = stage_kernel.bind(f.U, f.q, *part, b.eta, b.u, G, U, q, H)
            adj_fluxes = flux_kernel.bind(at.eta, at.u, g, *step.edge, f.h, f.q, U, q, H, z, a.eta, a.u, *sums)
            self._back.append((adj_stage, adj_fluxes))

    def run(self) -> None:
        """Reverse the step that ran last."""
        for stage in self._stages:
            stage.eta.fill(0)
            stage.u.fill(0)
        first, last = self._stages[0], self._stages[LAST]
        last.eta[:] = self.state.eta
        self._adj_damp_last()
        for k in reversed(range(LAST)):
            first.eta += self._stages[k + 1].eta  # each stage starts from the state at the beginning of the step
            first.u += self._stages[k + 1].u
            for launch in self._back[k]:
                launch()
        self._adj_damp_first()
        self.state.eta[:] = first.eta


class Tangent:
    """The tangent of a step, from the tangent of its start to that of its end."""

    def __init__(self, step: Forward, given: FlatParams) -> None:
        model, batch = step.model, step.batch
        self.start = Pair(model, batch)
        stages = [Pair(model, batch, self.start.eta), *[Pair(model, batch) for _ in STAGES]]
        self.end = Pair(model, batch, stages[LAST].eta)
        dh, dU, dq, dH = Fluxes.zeros(model, batch)
        friction_kernel, flux_kernel, stage_kernel = (
            file.kernels_of(model, batch).tangent for file in (friction, fluxes, advance)
        )
        D, g, c_f = step.given
        dD, dg, dc = given
        first, last, value = stages[0], stages[LAST], step.stages[LAST]
        self._launches: list[Launch] = [
            friction_kernel.bind(
                step.start.u, step.start.eta, D, c_f, *step.half, self.start.u, self.start.eta, dD, dc, first.u
            )
        ]
        for at, to, of, f, part in zip(stages, stages[1:], step.stages, step.fluxes, step.parts, strict=False):
            self._launches += [
                flux_kernel.bind(of.eta, of.u, g, *step.edge, f.h, f.q, at.eta, at.u, dD, dg, dh, dU, dq, dH),
                stage_kernel.bind(f.U, f.q, *part, first.eta, first.u, dU, dq, dH, to.eta, to.u),
            ]
        self._launches.append(
            friction_kernel.bind(value.u, value.eta, D, c_f, *step.half, last.u, last.eta, dD, dc, self.end.u)
        )

    def run(self) -> None:
        """Compute the tangent of the step that ran last."""
        for launch in self._launches:
            launch()


def cell_zeros(model: ShallowWater, batch: int) -> Array:
    """Return zeros for the cells of all batch members."""
    return np.zeros(sizes(model, batch)[-1], runtime.real_dtype())


def face_zeros(model: ShallowWater, batch: int) -> Array:
    """Return zeros for the faces of all batch members."""
    return np.zeros(model.dim * sizes(model, batch)[-1], runtime.real_dtype())
