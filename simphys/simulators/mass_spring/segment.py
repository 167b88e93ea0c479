"""Device storage for the states of some steps of a rollout."""

import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import kernel, runtime
from simphys.autograd.errors import InputError
from simphys.autograd.kernels.runtime import ti
from simphys.simulator import Array, Arrays

from .model import MassSpring, State

LARGEST = 2**31 - 1
"""Largest size of an array, since kernels index with 32 bits."""


class Segment:
    """States of `steps` steps for all batch members, first and last included; one row per stage."""

    launch: Callable[..., None]
    """Launch that computes the states; set by the engine."""

    def __init__(self, model: MassSpring, steps: int, *, batch: int) -> None:
        self._model, self._batch = model, batch
        self.rows = count_rows(model, steps)
        numbers = batch * self.rows * model.nodes * model.dim
        if numbers > LARGEST:
            remedy = "Give the rollout a smaller memory budget, which splits it into segments."
            size = numbers * runtime.real_dtype().itemsize
            raise InputError("rollout", f"at most {LARGEST} numbers in one array of states", f"{size:,} bytes", remedy)
        entries = batch * self.rows * model.nodes
        self.x, self.v = (runtime.device_array((entries,), components=model.dim) for _ in range(2))

    def load(self, state: Arrays) -> None:
        """Write the states [B, n, dim] to the first row."""
        for name, memory in self._memory():
            if runtime.settings().on_gpu:
                first = self.rows * np.arange(self._batch, dtype=np.int32)
                self._copy(np.ascontiguousarray(state[name]), np.arange(self._batch, dtype=np.int32), memory, first)
            else:
                self._on_host(memory)[:, 0] = state[name]

    def read(self, rows: slice | Sequence[int], names: Collection[str] | None = None) -> Arrays:
        """Copy the states after some steps, [B, len(rows), n, dim]: both fields, or those named."""
        stages = len(self._model.stages)
        memories = [(name, memory) for name, memory in self._memory() if names is None or name in names]
        if not runtime.settings().on_gpu:
            return {name: copy_rows(self._on_host(memory)[:, ::stages], rows) for name, memory in memories}
        chosen = np.arange(0, self.rows, stages, dtype=np.int32)[rows]
        at = (self.rows * np.arange(self._batch, dtype=np.int32)[:, None] + chosen).reshape(-1)
        found = {}
        for name, memory in memories:
            part = runtime.device_array((at.size * self._model.nodes,), components=self._model.dim)
            self._copy(memory, at, part, np.arange(at.size, dtype=np.int32))
            found[name] = runtime.to_host(part, self._shape(len(chosen))).copy()
        return found

    def _memory(self) -> list[tuple[str, Any]]:
        return list(zip(State.names(), (self.x, self.v), strict=True))

    def _shape(self, rows: int) -> tuple[int, ...]:
        return self._batch, rows, self._model.nodes, self._model.dim

    def _on_host(self, memory: Any) -> Array:
        return runtime.to_host(memory, self._shape(self.rows))

    def _copy(self, source: Any, sources: Array, target: Any, targets: Array) -> None:
        """Copy states, selected by index, to other states, selected likewise."""
        n, dim = self._model.nodes, self._model.dim
        source = source.reshape(-1, dim) if isinstance(source, np.ndarray) else source
        copy_kernel(runtime.real(), dim)(source, sources, target, targets, n, n * len(sources))


@functools.cache
@no_type_check
def copy_kernel(real: Any, dim: int) -> Any:
    """Kernel that copies states of n nodes from one array to another, selected by index in both."""
    vectors = ti.types.ndarray(dtype=ti.types.vector(dim, real), ndim=1)
    ints = ti.types.ndarray(dtype=ti.i32, ndim=1)

    @kernel
    def copy(source: vectors, sources: ints, target: vectors, targets: ints, n: ti.i32, count: ti.i32):
        for y in range(count):
            target[targets[y // n] * n + y % n] = source[sources[y // n] * n + y % n]

    return copy


def count_rows(model: MassSpring, steps: int) -> int:
    """Number of rows that hold the states of `steps` steps."""
    return steps * len(model.stages) + 1


def copy_rows(states: Array, rows: slice | Sequence[int]) -> Array:
    """Copy some rows of states [B, rows, n, dim]."""
    batch, count, *shape = states.shape
    copy = np.empty((batch, np.arange(count)[rows].size, *shape), states.dtype)
    view_items(copy)[:] = view_items(states)[:, rows]
    return copy


def view_items(states: Array) -> Array:
    """View each state as a single item, [B, rows]: strided copies of these are ten times as fast in NumPy."""
    numbers = states.reshape(*states.shape[:2], -1)
    return numbers.view(np.dtype((np.void, numbers.shape[-1] * states.itemsize)))[..., 0]
