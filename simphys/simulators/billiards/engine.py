"""`BilliardsEngine`: fused loops over the arrays of one rollout; see `simphys.simulator.Engine`."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.simulator import Array, Arrays
from simphys.simulator.array_engine import ArrayEngine

from . import fused, fused_adjoint, fused_tangent, search
from .arrays import Balls, Legs, Limits, Table
from .model import BALL_US, PAIR_US, Billiards

SPREAD = 512
"""Iterations that a parallel loop takes per batch member: the CPU runs that many, or fewer, on a single thread."""


class BilliardsEngine(ArrayEngine):
    """Rollout of a batch of tables. A member whose impacts do not end is NaN from that step on."""

    model: Billiards

    def segment_bytes(self, steps: int, *, dense: bool) -> int:
        """Include the workspace in which `pull` stores the legs of a step, and the running adjoints."""
        slots, real = self.batch * (self.model.max_impacts + 1), runtime.real_dtype().itemsize
        workspace = slots * ((4 * self.model.balls + 1) * real + 8) + self.batch * (4 * self.model.balls + 4) * real
        return super().segment_bytes(steps, dense=dense) + workspace

    def advance(self, segment: Arrays, *, first: int, start: int, steps: int) -> None:
        failed = np.zeros(self.batch, np.int32)
        failed[~np.isfinite(segment["position"][:, start]).all(axis=(1, 2))] = start + 1
        parallel, spread = self._choose_threads(steps)
        kernel = fused.forward_kernel(runtime.real(), parallel, spread)
        kernel(*self._arguments(segment), start, steps, failed)
        for member in np.flatnonzero(failed):
            for values in segment.values():
                values[member, failed[member] : start + steps + 1] = np.nan

    def pull(self, segment: Arrays, *, first: int, steps: int, adjoint: Arrays) -> None:
        parallel, spread = self._choose_threads(steps)
        sums = self.sums
        walls = search.stack_walls(sums["lower"], sums["upper"])
        kernel = fused_adjoint.adjoint_kernel(runtime.real(), parallel, spread)
        kernel(
            *self._arguments(segment), steps, _is_dense(adjoint), *self._workspace(), _balls(adjoint),
            _table(sums, walls),
        )  # fmt: skip
        if self.model.cushions:
            sums["lower"][...], sums["upper"][...] = walls[:, 0::2], walls[:, 1::2]

    def push(self, segment: Arrays, *, first: int, steps: int, tangent: Arrays) -> Arrays:
        parallel, spread = self._choose_threads(steps)
        pushed = {
            name: np.zeros((self.batch, steps + 1, *values.shape[1:]), values.dtype) for name, values in tangent.items()
        }
        for name, values in tangent.items():
            pushed[name][:, 0] = values
        work = Balls(*np.zeros((2, self.batch * self.model.balls, 2), runtime.real_dtype()))
        walls = search.stack_walls(self.tangents["lower"], self.tangents["upper"])
        fused_tangent.tangent_kernel(runtime.real(), parallel, spread)(
            *self._arguments(segment), steps, work, _balls(pushed), _table(self.tangents, walls)
        )
        return pushed

    def _workspace(self) -> tuple[Any, ...]:
        """Return the adjoint kernel's workspace: states, times and pairs of a step's legs, and running adjoints."""
        n, slots, real = self.model.balls, self.batch * (self.model.max_impacts + 1), runtime.real_dtype()
        states, running = [Balls(*np.zeros((2, count * n, 2), real)) for count in (slots, self.batch)]
        return Legs(states, np.zeros(slots, real), np.zeros((slots, 2), np.int32)), running

    def _arguments(self, segment: Arrays) -> tuple[Any, ...]:
        """Return the arguments that both kernels take first."""
        model, p = self.model, self.params
        table = _table(p, search.stack_walls(p["lower"], p["upper"]))
        limits = Limits(model.dt, search.min_step(model), model.balls, model.partners, model.max_impacts)
        return _balls(segment), table, limits, self.batch, segment["position"].shape[1]

    def _choose_threads(self, steps: int) -> tuple[bool, int]:
        """Choose the parallel loop or the serial one, and the number of iterations for each batch member."""
        n = self.model.balls
        work = (BALL_US * n + PAIR_US * n * n) * self.batch * steps
        parallel = self.batch > 1 and runtime.parallel(work)
        return parallel, SPREAD if parallel and not runtime.settings().on_gpu else 1


def _is_dense(adjoint: Arrays) -> bool:
    """Return True if `adjoint` has a row for every state, not just one."""
    return bool(adjoint["position"].shape[1] > 1)


def _balls(states: Arrays) -> Balls:
    """Return the record of states, for kernels."""
    return Balls(states["position"].reshape(-1, 2), states["velocity"].reshape(-1, 2))


def _table(values: Arrays, walls: Array) -> Table:
    """Return the record of parameters or their adjoints, for kernels."""
    names = ("radius", "mass", "restitution", "cushion_restitution", "deceleration")
    r, m, c, side_c, a = [values[name].reshape(-1) for name in names]
    return Table(r, m, c, side_c, a, walls.reshape(-1))
