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
from .grid import flat, sizes
from .model import STAGES, ShallowWater

Launch = Callable[..., None]
LAST = len(STAGES)


class Pair:
    """Elevation and velocity of all batch members, or their adjoints or tangents; a given `eta` is shared memory."""

    def __init__(self, model: ShallowWater, batch: int, eta: Array | None = None) -> None:
        self.eta = cells(model, batch) if eta is None else eta
        self.u = faces(model, batch)
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
        return cls(cells(model, batch), faces(model, batch), cells(model, batch), cells(model, batch))


class Given(NamedTuple):
    """The parameters of all batch members, or their tangents, flattened."""

    depth: Array
    gravity: Array
    friction: Array

    @classmethod
    def of(cls, params: Arrays) -> Given:
        """Flatten parameters of shape [B, *shape] each."""
        return cls(*flat(*[params[name] for name in cls._fields]))


class Forward:
    """A step from `start` to `end`, with the intermediate values that its adjoint needs."""

    ARRAYS = 13, 9
    """Number of arrays over cells, and over faces."""

    def __init__(self, model: ShallowWater, batch: int, given: Given) -> None:
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
        self._launches = self._bound()

    def run(self) -> None:
        """Compute `end` from `start`."""
        for launch in self._launches:
            launch()

    def _bound(self) -> list[Launch]:
        slow, flow, go = (file.kernels_of(self.model, self.batch).forward for file in (friction, fluxes, advance))
        D, g, c_f = self.given
        first, last = self.stages[0], self.stages[LAST]
        made = [slow.bind(self.start.u, self.start.eta, D, c_f, *self.half, first.u)]
        for at, to, f, part in zip(self.stages, self.stages[1:], self.fluxes, self.parts, strict=False):
            made.append(flow.bind(at.eta, at.u, D, g, *self.edge, *f))
            made.append(go.bind(first.eta, first.u, f.U, f.q, f.H, *part, to.eta, to.u))
        return [*made, slow.bind(last.u, last.eta, D, c_f, *self.half, self.end.u)]


class Adjoint:
    """The adjoint of a step: turns the adjoint of its end into that of its start, and adds to the adjoint sums."""

    ARRAYS = 11, 9
    """Number of arrays over cells, and over faces."""

    def __init__(self, step: Forward) -> None:
        model, batch = step.model, step.batch
        self.state = Pair(model, batch)
        self.sums = Given(*[cells(model, batch) for _ in Given._fields])
        """Adjoint sums with an entry for each cell, even for parameters that are scalars."""
        self._stages = [Pair(model, batch) for _ in step.stages]
        z, U, q, H = Fluxes.zeros(model, batch)
        G, across, height = (faces(model, batch) for _ in range(3))
        slow, flow, go = (file.kernels_of(model, batch).adjoint for file in (friction, fluxes, advance))
        D, g, c_f = step.given

        def slowed(value: Pair, adj_new: Pair, adj_u: Array, adj_eta: Array) -> Launch:
            arrays = across, height, adj_u, adj_eta, self.sums.depth, self.sums.friction
            bound: Launch = slow.bind(value.u, value.eta, D, c_f, *step.half, adj_new.u, *arrays)
            return bound

        first, last = self._stages[0], self._stages[LAST]
        self._slow_last = slowed(step.stages[LAST], self.state, last.u, last.eta)
        self._slow_first = slowed(step.start, first, self.state.u, first.eta)
        self._back: list[tuple[Launch, Launch]] = []
        sums = self.sums.depth, self.sums.gravity
        for k, (at, f, part) in enumerate(zip(step.stages, step.fluxes, step.parts, strict=False)):
            a, b = self._stages[k], self._stages[k + 1]
            of_stage = go.bind(f.U, f.q, *part, b.eta, b.u, G, U, q, H)
            of_fluxes = flow.bind(at.eta, at.u, g, *step.edge, f.h, f.q, U, q, H, z, a.eta, a.u, *sums)
            self._back.append((of_stage, of_fluxes))

    def run(self) -> None:
        """Reverse the step that ran last."""
        for stage in self._stages:
            stage.eta.fill(0)
            stage.u.fill(0)
        first, last = self._stages[0], self._stages[LAST]
        last.eta[:] = self.state.eta
        self._slow_last()
        for k in reversed(range(LAST)):
            first.eta += self._stages[k + 1].eta  # each stage starts from the state at the beginning of the step
            first.u += self._stages[k + 1].u
            for launch in self._back[k]:
                launch()
        self._slow_first()
        self.state.eta[:] = first.eta


class Tangent:
    """The tangent of a step, from the tangent of its start to that of its end."""

    def __init__(self, step: Forward, given: Given) -> None:
        model, batch = step.model, step.batch
        self.start = Pair(model, batch)
        stages = [Pair(model, batch, self.start.eta), *[Pair(model, batch) for _ in STAGES]]
        self.end = Pair(model, batch, stages[LAST].eta)
        dh, dU, dq, dH = Fluxes.zeros(model, batch)
        slow, flow, go = (file.kernels_of(model, batch).tangent for file in (friction, fluxes, advance))
        D, g, c_f = step.given
        dD, dg, dc = given
        first, last, value = stages[0], stages[LAST], step.stages[LAST]
        self._launches: list[Launch] = [
            slow.bind(step.start.u, step.start.eta, D, c_f, *step.half, self.start.u, self.start.eta, dD, dc, first.u)
        ]
        for at, to, of, f, part in zip(stages, stages[1:], step.stages, step.fluxes, step.parts, strict=False):
            self._launches += [
                flow.bind(of.eta, of.u, g, *step.edge, f.h, f.q, at.eta, at.u, dD, dg, dh, dU, dq, dH),
                go.bind(f.U, f.q, *part, first.eta, first.u, dU, dq, dH, to.eta, to.u),
            ]
        self._launches.append(slow.bind(value.u, value.eta, D, c_f, *step.half, last.u, last.eta, dD, dc, self.end.u))

    def run(self) -> None:
        """Compute the tangent of the step that ran last."""
        for launch in self._launches:
            launch()


def cells(model: ShallowWater, batch: int) -> Array:
    """Return zeros for the cells of all batch members."""
    return np.zeros(sizes(model, batch)[-1], runtime.real_dtype())


def faces(model: ShallowWater, batch: int) -> Array:
    """Return zeros for the faces of all batch members."""
    return np.zeros(model.dim * sizes(model, batch)[-1], runtime.real_dtype())
