"""`BilliardsEngine`: fused loops over the arrays of one rollout; see `simphys.simulator.Engine`."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.simulator import Arrays
from simphys.simulator.array_engine import ArrayEngine

from . import fused, fused_adjoint, search
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
        flat = {name: values.reshape(-1, 2) for name, values in segment.items()}
        parallel, spread = self._choose_threads(steps)
        fused.forward_kernel(runtime.real(), parallel, spread)(
            *flat.values(), *self._arguments(segment), start, steps, failed
        )
        for member in np.flatnonzero(failed):
            for values in segment.values():
                values[member, failed[member] : start + steps + 1] = np.nan

    def pull(self, segment: Arrays, *, first: int, steps: int, adjoint: Arrays) -> None:
        parallel, spread = self._choose_threads(steps)
        sums = self.sums
        walls = search.stack_walls(sums["lower"], sums["upper"])
        fused_adjoint.adjoint_kernel(runtime.real(), parallel, spread)(
            *[values.reshape(-1, 2) for values in segment.values()], *self._arguments(segment), steps,
            _is_dense(adjoint), *self._workspace(),
            *[adjoint[name].reshape(-1, 2) for name in self.model.State.names()],
            *[sums[name].reshape(-1) for name in ("radius", "mass")],
            *[sums[name] for name in ("restitution", "cushion_restitution", "deceleration")], walls.reshape(-1),
        )  # fmt: skip
        if self.model.cushions:
            sums["lower"][...], sums["upper"][...] = walls[:, 0::2], walls[:, 1::2]

    def _workspace(self) -> tuple[Any, ...]:
        """Return the adjoint kernel's workspace: states, times and pairs of a step's legs, and running adjoints."""
        n, slots, real = self.model.balls, self.batch * (self.model.max_impacts + 1), runtime.real_dtype()
        states = [np.zeros((slots * n, 2), real) for _ in range(2)]
        running = [np.zeros((self.batch * n, 2), real) for _ in range(2)]
        return *states, np.zeros(slots, real), np.zeros((slots, 2), np.int32), *running

    def _arguments(self, segment: Arrays) -> tuple[Any, ...]:
        """Return the arguments that both kernels take after the states."""
        model, p = self.model, self.params
        walls = search.stack_walls(p["lower"], p["upper"]).reshape(-1)
        counts = (model.balls, model.partners, model.max_impacts, self.batch, segment["position"].shape[1])
        return (
            p["radius"].reshape(-1), p["mass"].reshape(-1), p["restitution"], p["cushion_restitution"],
            p["deceleration"], walls, model.dt, search.min_step(model), *counts,
        )  # fmt: skip

    def _choose_threads(self, steps: int) -> tuple[bool, int]:
        """Choose the parallel loop or the serial one, and the number of iterations for each batch member."""
        n = self.model.balls
        work = (BALL_US * n + PAIR_US * n * n) * self.batch * steps
        parallel = self.batch > 1 and runtime.parallel(work)
        return parallel, SPREAD if parallel and not runtime.settings().on_gpu else 1


def _is_dense(adjoint: Arrays) -> bool:
    """Return True if `adjoint` has a row for every state, not just one."""
    return bool(adjoint["position"].shape[1] > 1)
