"""Engine of a rollout of chains, which runs its fused loops; see `simphys.simulator.Engine`."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.simulator import Array, Arrays
from simphys.simulator.array_engine import ArrayEngine

from . import fused, fused_adjoint, fused_tangent

PARAMETERS = ("length", "mass", "damping", "gravity", "tilt")
STAGES = 4
SPREAD = 512
"""Iterations of a parallel loop that the compiler assigns to one CPU thread, and so those that a member takes."""


class ChainEngine(ArrayEngine):
    """Engine of a batch of chains; members run on several threads where that pays."""

    def segment_bytes(self, steps: int, *, dense: bool) -> int:
        """Include the workspace of the adjoint."""
        work = sum([each.nbytes for each in self._work if isinstance(each, np.ndarray)])
        return super().segment_bytes(steps, dense=dense) + work + 8 * self._mu.nbytes

    def advance(self, segment: Arrays, *, first: int, start: int, steps: int) -> None:
        kernels = fused.kernels(runtime.real(), self._parallel(steps))
        self._select_kernel(kernels)(*self._arguments(segment, first), *self._work, start, steps)

    def pull(self, segment: Arrays, *, first: int, steps: int, adjoint: Arrays) -> None:
        kernels = fused_adjoint.kernels(runtime.real(), self._parallel(steps))
        work = [np.zeros_like(self._mu) for _ in range(8 if self._is_rk4 else 7)]
        adj_u = self.sums.get("control", np.zeros_like(self._no_torque))
        self._select_kernel(kernels)(
            *self._arguments(segment, first), *self._work,
            *_flat(adjoint, "angle", "rate"), adjoint["angle"].shape[1],
            adj_u.reshape(-1), *_flat(self.sums, *PARAMETERS), *work, steps,
        )  # fmt: skip

    def push(self, segment: Arrays, *, first: int, steps: int, tangent: Arrays) -> Arrays:
        kernels = fused_tangent.kernels(runtime.real(), self._parallel(steps))
        result = self.segment(steps)
        self.load(result, tangent)
        du = self.tangents.get("control", self._no_torque)
        size = STAGES if self._is_rk4 else 1
        work = [np.zeros(size * self._mu.size, self._mu.dtype) for _ in range(3 if self._is_rk4 else 4)]
        self._select_kernel(kernels)(
            *self._arguments(segment, first), *self._work,
            *_flat(result, "angle", "rate"), du.reshape(-1), *_flat(self.tangents, *PARAMETERS),
            np.empty_like(self._mu), *work, steps,
        )  # fmt: skip
        return result

    @property
    def _links(self) -> int:
        return int(self.model.links)  # type: ignore[attr-defined]

    @property
    def _is_rk4(self) -> bool:
        return bool(self.model.integrator == "rk4")  # type: ignore[attr-defined]

    def _select_kernel(self, kernels: Any) -> Any:
        return kernels.rk4 if self._is_rk4 else kernels.variational

    @cached_property
    def _no_torque(self) -> Array:
        """Placeholder for torques and their tangents, if there are none."""
        return np.zeros(self._links, runtime.real_dtype())

    @cached_property
    def _mu(self) -> Array:
        return np.empty(self.batch * self._links, runtime.real_dtype())

    @cached_property
    def _work(self) -> list[Any]:
        """Workspace of a step, see fused.py; for the variational integrator, NaN comes first."""
        n, real = self._mu.size, self._mu.dtype
        if self._is_rk4:
            stages = [np.empty(STAGES * n, real) for _ in range(3)]
            return [self._mu, *stages, np.empty(STAGES * n * self._links, real)]
        vectors = [np.empty(n, real) for _ in range(4)]
        return [math.nan, self._mu, *vectors, np.empty(n * self._links, real)]

    def _arguments(self, segment: Arrays, first: int) -> list[Any]:
        """Leading arguments of all kernels."""
        torque, driven = (self._no_torque, 0) if self.control is None else (self.control, 1)
        steps = self.control.shape[1] if self.control is not None else 0
        rows = segment["angle"].shape[1]
        return [
            *_flat(segment, "angle", "rate"), torque.reshape(-1), *_flat(self.params, *PARAMETERS),
            self._links, self.model.dt, self.batch, rows, steps, driven, self._spread, first,
        ]  # fmt: skip

    @property
    def _spread(self) -> int:
        return 1 if runtime.settings().on_gpu or self.batch == 1 else SPREAD

    def _parallel(self, steps: int) -> bool:
        return self.batch > 1 and runtime.parallel(self.batch * steps * step_us(self._links))


def step_us(links: int) -> float:
    """Approximate serial cost of a step [us]."""
    return 0.3 + 0.1 * links * links


def _flat(arrays: Arrays, *names: str) -> list[Array]:
    """Flatten arrays for kernels; they are contiguous, so this makes no copies."""
    return [arrays[name].reshape(-1) for name in names]
