"""`SphericalEngine`: the fused loops of one rollout, see `simphys.simulator.Engine`."""

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
"""About the serial cost of a step [us]."""
SPREAD = 512
"""A parallel loop of so many iterations or fewer stays on one thread of a CPU: it takes as many for each member."""


class SphericalEngine(ArrayEngine):
    """The rollout of a batch of spherical pendulums, of which threads take one each where that pays."""

    def segment_bytes(self, steps: int, *, dense: bool) -> int:
        """See `Engine`: with the working memory."""
        return super().segment_bytes(steps, dense=dense) + sum([each.nbytes for each in self._stages])

    def load(self, segment: Arrays, state: Arrays) -> None:
        """See `Engine`. Errors: UnphysicalValue for a direction that is not of length 1."""
        check_direction(state["direction"])
        super().load(segment, state)

    def advance(self, segment: Arrays, *, first: int, start: int, steps: int) -> None:
        """See `Engine`."""
        self._of(fused.kernels(runtime.real(), self._parallel(steps)))(*self._arguments(segment, first), start, steps)

    def pull(self, segment: Arrays, *, first: int, steps: int, adjoint: Arrays) -> None:
        """See `Engine`."""
        held = [self._vectors(adjoint["direction"]), self._vectors(adjoint["rate"])]
        adj_t = self._vectors(self.sums.get("control", np.zeros_like(self._no_torque)))
        sums = [self.sums[name] for name in PARAMETERS]
        self._of(fused_adjoint.kernels(runtime.real(), self._parallel(steps)))(
            *self._arguments(segment, first), *held, adjoint["rate"].shape[1], adj_t, *sums, steps
        )

    def push(self, segment: Arrays, *, first: int, steps: int, tangent: Arrays) -> Arrays:
        """See `Engine`."""
        moved = self.segment(steps)
        super().load(moved, tangent)
        dt = self._vectors(self.tangents.get("control", self._no_torque))
        dots = [self.tangents[name] for name in PARAMETERS]
        self._of(fused.tangent_kernels(runtime.real(), self._parallel(steps)))(
            *self._arguments(segment, first),
            *[self._vectors(moved[name]) for name in ("direction", "rate")], dt, *dots, steps,
        )  # fmt: skip
        return moved

    def _of(self, kernels: Any) -> Any:
        integrator: str = self.model.integrator  # type: ignore[attr-defined]
        return kernels.rk4 if integrator == "rk4" else kernels.variational

    @cached_property
    def _no_torque(self) -> Array:
        """In place of torques and their tangents, where there are none."""
        return np.zeros((1, 3), runtime.real_dtype())

    @cached_property
    def _stages(self) -> list[Array]:
        """Working memory of a Runge-Kutta step, see fused.py."""
        if self.model.integrator != "rk4":  # type: ignore[attr-defined]
            return []
        return [np.empty((self.batch * 4, 3), runtime.real_dtype()) for _ in range(3)]

    def _arguments(self, segment: Arrays, first: int) -> list[Any]:
        """What all kernels take first."""
        torque = self._no_torque if self.control is None else self.control
        steps, driven = (0, 0) if self.control is None else (self.control.shape[1], 1)
        spread = 1 if runtime.settings().on_gpu or self.batch == 1 else SPREAD
        return [
            *[self._vectors(each) for each in (segment["direction"], segment["rate"], torque)],
            *[self.params[name] for name in PARAMETERS],
            self.model.dt, self.batch, segment["rate"].shape[1], steps, driven, spread, first, *self._stages,
        ]  # fmt: skip

    def _vectors(self, values: Array) -> Array:
        """A view as [..., 3] flat vectors."""
        return values.reshape(-1, 3)

    def _parallel(self, steps: int) -> bool:
        return self.batch > 1 and runtime.parallel(self.batch * steps * STEP_US)
