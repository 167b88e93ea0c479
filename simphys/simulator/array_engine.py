"""Common base of engines that store the states of a segment as one array per field, in host memory."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import Any

import numpy as np

from simphys.autograd import runtime

from . import arena
from .arrays import Array, Arrays, Rows, Shape
from .contract import Engine, Model


class ArrayEngine(Engine):
    """Engine without its loops: a subclass adds `advance` and `pull`, and `push` if it has tangents.

    A segment is {field: [B, rows, *shape]}, contiguous, as kernels take it. So are `params` {name: [B, *shape]},
    `control` [B, T, *shape] (None without one) and their `tangents`; values shared by all members are broadcast along
    the batch axis. `pull` adds to the adjoint sums `sums`, of the same names and shapes, including "control". It must
    add to their present values step by step and element by element, so that gradients do not depend on the blocks of
    the horizon. A GPU copies the arrays at each launch; so large simulators have own engines with segments on the
    device.
    """

    def __init__(
        self,
        model: Model,
        params: Arrays,
        control: Array | None,
        *,
        batch: int,
        needs: frozenset[str],
        deterministic: bool,
        tangents: Arrays | None = None,
    ) -> None:
        self.model, self.batch, self.needs, self.deterministic = model, batch, needs, deterministic
        self._given = params if control is None else {**params, "control": control}
        self._shapes: dict[str, Shape] = dict(model.param_shapes())
        if control is not None:
            self._shapes["control"] = control.shape[control.ndim - len(model.control_shape() or ()) - 1 :]
        members = {name: self._of_members(name, values) for name, values in self._given.items()}
        self.control = members.pop("control", None)
        self.params = members
        self.sums = self._zeros()
        self._given_tangents = tangents or {}

    @cached_property
    def tangents(self) -> Arrays:
        """Tangents of the parameters and of the control; zero if none was given."""
        return self._zeros() | {name: self._of_members(name, values) for name, values in self._given_tangents.items()}

    def segment_bytes(self, steps: int, *, dense: bool) -> int:
        """Count the segment, the sums, and broadcast copies; a subclass adds the workspace of its `pull`."""
        row = sum([np.prod(shape, dtype=int) for shape in self.model.state_shapes().values()])
        states = self.batch * (steps + 1) * int(row) * runtime.real_dtype().itemsize
        taken = {**self.params, **({} if self.control is None else {"control": self.control})}
        copies = [values for name, values in taken.items() if not np.may_share_memory(values, self._given[name])]
        return states + sum([values.nbytes for values in (*self.sums.values(), *copies)])

    def segment(self, steps: int) -> Arrays:
        shapes = self.model.state_shapes().items()
        return {name: arena.empty((self.batch, steps + 1, *shape), runtime.real_dtype()) for name, shape in shapes}

    def load(self, segment: Arrays, state: Arrays) -> None:
        for name, values in state.items():
            segment[name][:, 0] = values

    def read(self, segment: Arrays, rows: Rows, names: Collection[str] | None = None) -> Arrays:
        return {n: np.array(values[:, rows], order="C") for n, values in segment.items() if names is None or n in names}

    def gradients(self) -> Arrays:
        sums, self.sums = self.sums, self._zeros()
        found = {}
        for name in self.needs:
            shared = self._given[name].ndim == len(self._shapes[name])
            found[name] = sums[name].sum(axis=0) if shared else sums[name]
        return found

    def _of_members(self, name: str, values: Any) -> Array:
        shape = (self.batch, *self._shapes[name])
        return np.ascontiguousarray(np.broadcast_to(values, shape), runtime.real_dtype())

    def _zeros(self) -> Arrays:
        return {name: np.zeros((self.batch, *self._shapes[name]), runtime.real_dtype()) for name in self._given}
