"""`ShallowEngine`, the fused loops of one rollout over arrays; see `simphys.simulator.Engine`."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.simulator import Array, Arrays
from simphys.simulator.array_engine import ArrayEngine

from .fused import Adjoint, FlatParams, Forward, Tangent
from .grid import sizes
from .model import ShallowWater, is_dry


class ShallowEngine(ArrayEngine):
    """The rollout of a batch of shallow-water simulations."""

    model: ShallowWater

    def __init__(self, model: ShallowWater, params: Arrays, control: Array | None, **options: Any) -> None:
        super().__init__(model, params, control, **options)
        self._step = Forward(model, self.batch, FlatParams.of(self.params))
        self._depth = self.params["depth"].reshape(-1)
        self._adjoint: Adjoint | None = None

    def segment_bytes(self, steps: int, *, dense: bool) -> int:
        """Count the arrays that a step and its adjoint work with, too."""
        N = sizes(self.model, self.batch)[-1]
        cell_arrays, face_arrays = np.array(Forward.ARRAYS) + Adjoint.ARRAYS
        numbers = int(cell_arrays + face_arrays * self.model.dim) * N
        return super().segment_bytes(steps, dense=dense) + numbers * runtime.real_dtype().itemsize

    def advance(self, segment: Arrays, *, first: int, start: int, steps: int) -> None:
        """Advance the states. A dry cell makes the whole velocity NaN, which stops the rollout; see `Friction`."""
        step = self._step
        for row in range(start, start + steps):
            step.start.load(segment, row)
            dry = is_dry(step.start.eta, self._depth)
            step.run()
            if dry or is_dry(step.end.eta, self._depth):
                step.end.u.fill(np.nan)
            step.end.store(segment, row + 1)

    def pull(self, segment: Arrays, *, first: int, steps: int, adjoint: Arrays) -> None:
        self._adjoint = self._adjoint or Adjoint(self._step)
        dense = adjoint["elevation"].shape[1] > 1
        state = self._adjoint.state
        state.load(adjoint, -1)
        for row in reversed(range(steps)):
            self._step.start.load(segment, row)
            self._step.run()
            self._adjoint.run()
            if dense:
                state.add(adjoint, row)
                state.store(adjoint, row)
        if not dense:
            state.store(adjoint, 0)

    def gradients(self) -> Arrays:
        if self._adjoint is not None:
            sums = self._adjoint.sums._asdict()
            for name, total in sums.items():
                member_sums = total.reshape(self.batch, -1)
                member_sums = member_sums if name == "depth" else member_sums.sum(axis=1)
                self.sums[name] = member_sums.reshape(self.sums[name].shape).copy()
                total.fill(0)
        return super().gradients()

    def push(self, segment: Arrays, *, first: int, steps: int, tangent: Arrays) -> Arrays:
        tangent_step = Tangent(self._step, FlatParams.of(self.tangents))
        made = self.segment(steps)
        self.load(made, tangent)
        for row in range(steps):
            self._step.start.load(segment, row)
            tangent_step.start.load(made, row)
            self._step.run()
            tangent_step.run()
            tangent_step.end.store(made, row + 1)
        return made
