"""What engines share that keep the states of a segment as one array a field, in the memory of the host."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.errors import MissingJvp

from . import arena
from .arrays import Array, Arrays, Shape
from .contract import Model


class ArrayEngine:
    """An `Engine` without its loops: a subclass adds `advance` and `pull`, and `push` where it has tangents.

    A segment is {field: [B, rows, *shape]}, contiguous: what kernels take. So are `params` {name: [B, *shape]},
    `control` [B, T, *shape] (None without one) and their `tangents`: what members share is repeated. `pull` adds to
    `sums`, of the same names and shapes, "control" among them. It has to add step after step from what they hold, and
    element by element, for gradients that do not depend on how the horizon is cut.
    A GPU copies the arrays at each launch: large simulators keep segments on the device, in engines of their own.
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
        """Those of parameters and of the control, zero where none was given."""
        return self._zeros() | {name: self._of_members(name, values) for name, values in self._given_tangents.items()}

    def segment_bytes(self, steps: int, *, dense: bool) -> int:
        """The segment, the sums, and copies of what members share; what else `pull` works with a subclass adds."""
        row = sum([np.prod(shape, dtype=int) for shape in self.model.state_shapes().values()])
        states = self.batch * (steps + 1) * int(row) * runtime.real_dtype().itemsize
        taken = {**self.params, **({} if self.control is None else {"control": self.control})}
        copies = [values for name, values in taken.items() if not np.may_share_memory(values, self._given[name])]
        return states + sum([values.nbytes for values in (*self.sums.values(), *copies)])

    def segment(self, steps: int) -> Arrays:
        """See `Engine`."""
        shapes = self.model.state_shapes().items()
        return {name: arena.empty((self.batch, steps + 1, *shape), runtime.real_dtype()) for name, shape in shapes}

    def load(self, segment: Arrays, state: Arrays) -> None:
        """See `Engine`."""
        for name, values in state.items():
            segment[name][:, 0] = values

    def read(self, segment: Arrays, rows: slice | list[int]) -> Arrays:
        """See `Engine`."""
        return {name: np.array(values[:, rows], order="C") for name, values in segment.items()}

    def gradients(self) -> Arrays:
        """See `Engine`."""
        sums, self.sums = self.sums, self._zeros()
        found = {}
        for name in self.needs:
            shared = self._given[name].ndim == len(self._shapes[name])
            found[name] = sums[name].sum(axis=0) if shared else sums[name]
        return found

    def push(self, segment: Arrays, *, first: int, steps: int, tangent: Arrays) -> Arrays:
        """See `Engine`. Errors: MissingJvp where the subclass has none."""
        raise MissingJvp(
            f"{type(self).__name__} has no push, so no tangent can go through its rollouts. Use reverse mode."
        )

    def _of_members(self, name: str, values: Any) -> Array:
        shape = (self.batch, *self._shapes[name])
        return np.ascontiguousarray(np.broadcast_to(values, shape), runtime.real_dtype())

    def _zeros(self) -> Arrays:
        return {name: np.zeros((self.batch, *self._shapes[name]), runtime.real_dtype()) for name in self._given}
