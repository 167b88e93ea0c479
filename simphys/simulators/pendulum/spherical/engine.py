"""Engine of a rollout of spherical pendulums, which runs its fused loops; see `simphys.simulator.Engine`."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.simulator import Array, Arrays
from simphys.simulator.array_engine import ArrayEngine

from . import fused, fused_adjoint
from .model import check_direction

PARAMETERS = ("length", "mass", "damping", "gravity")
STEP_US = 0.3
"""Approximate serial cost of a step [us]."""
SPREAD = 512
"""Iterations of a parallel loop that the compiler assigns to one CPU thread, and so those that a member takes."""


class SphericalEngine(ArrayEngine):
    """Engine of a batch of spherical pendulums; members run on several threads where that pays."""

    def segment_bytes(self, steps: int, *, dense: bool) -> int:
        """Include the workspace."""
        return super().segment_bytes(steps, dense=dense) + sum([each.nbytes for each in self._stages])

    def load(self, segment: Arrays, state: Arrays) -> None:
        """Raise UnphysicalValue for a direction that is not of length 1."""
        check_direction(state["direction"])
        super().load(segment, state)

    def advance(self, segment: Arrays, *, first: int, start: int, steps: int) -> None:
        self._select_kernel(fused.kernels(runtime.real(), self._parallel(steps)))(
            *self._arguments(segment, first), start, steps
        )

    def pull(self, segment: Arrays, *, first: int, steps: int, adjoint: Arrays) -> None:
        dense_rows = [self._vectors(adjoint["direction"]), self._vectors(adjoint["rate"])]
        adj_t = self._vectors(self.sums.get("control", np.zeros_like(self._no_torque)))
        sums = [self.sums[name] for name in PARAMETERS]
        self._select_kernel(fused_adjoint.kernels(runtime.real(), self._parallel(steps)))(
            *self._arguments(segment, first), *dense_rows, adjoint["rate"].shape[1], adj_t, *sums, steps
        )

    def push(self, segment: Arrays, *, first: int, steps: int, tangent: Arrays) -> Arrays:
        result = self.segment(steps)
        super().load(result, tangent)
        dt = self._vectors(self.tangents.get("control", self._no_torque))
        dots = [self.tangents[name] for name in PARAMETERS]
        self._select_kernel(fused.tangent_kernels(runtime.real(), self._parallel(steps)))(
            *self._arguments(segment, first),
            *[self._vectors(result[name]) for name in ("direction", "rate")], dt, *dots, steps,
        )  # fmt: skip
        return result

    def _select_kernel(self, kernels: Any) -> Any:
        integrator: str = self.model.integrator  # type: ignore[attr-defined]
        return kernels.rk4 if integrator == "rk4" else kernels.variational

    @cached_property
    def _no_torque(self) -> Array:
        """Placeholder for torques and their tangents, if there are none."""
        return np.zeros((1, 3), runtime.real_dtype())

    @cached_property
    def _stages(self) -> list[Array]:
        """Workspace of a Runge-Kutta step, see fused.py."""
        if self.model.integrator != "rk4":  # type: ignore[attr-defined]
            return []
        return [np.empty((self.batch * 4, 3), runtime.real_dtype()) for _ in range(3)]

    def _arguments(self, segment: Arrays, first: int) -> list[Any]:
        """Leading arguments of all kernels."""
        torque = self._no_torque if self.control is None else self.control
        steps, driven = (0, 0) if self.control is None else (self.control.shape[1], 1)
        spread = 1 if runtime.settings().on_gpu or self.batch == 1 else SPREAD
        return [
            *[self._vectors(each) for each in (segment["direction"], segment["rate"], torque)],
            *[self.params[name] for name in PARAMETERS],
            self.model.dt, self.batch, segment["rate"].shape[1], steps, driven, spread, first, *self._stages,
        ]  # fmt: skip

    def _vectors(self, values: Array) -> Array:
        """Flatten values to a view of vectors, [..., 3]."""
        return values.reshape(-1, 3)

    def _parallel(self, steps: int) -> bool:
        return self.batch > 1 and runtime.parallel(self.batch * steps * STEP_US)
