"""Storage for states of some steps: those of particles on the device, those of colliders, which are few, on the host.

Particles' fields are one flat array for each member of the batch, which kernels take: on the CPU a part of one NumPy
array [B, rows, ...], in whose memory they compute; on a GPU an array of its own.
"""

import functools
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, no_type_check

import numpy as np

from simphys.autograd import kernel, runtime
from simphys.autograd.errors import InputError
from simphys.autograd.kernels.runtime import ti
from simphys.simulator import Array, Arrays, arena

from .arrays import flat_or_one

if TYPE_CHECKING:
    from .model import MPM

POSES = ("collider_position", "collider_rotation")
OF_PARTICLES = ("position", "velocity", "affine", "deformation", "plastic")

LARGEST = 2**31
"""Kernels count the entries of an array with 32 bits."""


@functools.cache
@no_type_check
def kernels(real: Any) -> SimpleNamespace:
    """Rows of `size` numbers from and to flat arrays, on a GPU; sums of adjoints, anywhere."""
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @kernel
    def put(given: reals, size: ti.i32, row: ti.i32, values: reals):
        for k in range(size):
            values[row * size + k] = given[k]

    @kernel
    def take(values: reals, size: ti.i32, wanted: ints, count: ti.i32, taken: reals):
        for k in range(count * size):
            taken[k] = values[wanted[k // size] * size + k % size]

    @kernel
    def join(running: reals, size: ti.i32, row: ti.i32, dense: reals):
        """Add the loss's derivative by the state of a row to the running adjoint, and keep the whole."""
        for k in range(size):
            running[k] = running[k] + dense[row * size + k]
            dense[row * size + k] = running[k]

    return SimpleNamespace(put=put, take=take, join=join)


class Segment:
    """The states of `rows` steps of B members.

    `poses`: those of colliders, [B, rows, K, ...]; `particles`: what kernels take of each member, by OF_PARTICLES.
    """

    def __init__(self, model: "MPM", batch: int, rows: int) -> None:
        shapes, dtype = model.state_shapes(), runtime.real_dtype()
        self.rows = rows
        self._shapes = {name: shapes[name] for name in OF_PARTICLES}
        self._sizes = {name: int(np.prod(shape)) for name, shape in self._shapes.items()}
        largest = rows * max(self._sizes.values())
        if largest >= LARGEST:
            remedy = "Limit the memory of the rollout (memory=, runtime.memory), which cuts the horizon."
            raise InputError("mpm: states of a segment", f"fewer than {LARGEST} numbers a field", largest, remedy)
        self.poses = {name: np.empty((batch, rows, *shapes[name]), dtype) for name in POSES}
        self._host: Arrays | None = None
        if not runtime.settings().on_gpu:
            self._host = {n: arena.empty((batch, rows, *shape), dtype) for n, shape in self._shapes.items()}
            self.particles = [[flat_or_one(self._host[name][b]) for name in OF_PARTICLES] for b in range(batch)]
        else:
            sizes = [max(rows * size, 1) for size in self._sizes.values()]
            self.particles = [[runtime.device_array((size,)) for size in sizes] for _ in range(batch)]

    def load(self, state: Arrays) -> None:
        """Make the state, [B, ...] each field, row 0."""
        for name in POSES:
            self.poses[name][:, 0] = state[name]
        for place, name in enumerate(OF_PARTICLES):
            if self._host is not None:
                self._host[name][:, 0] = state[name]
            elif self._sizes[name]:
                for b, member in enumerate(self.particles):
                    given = runtime.to_device(np.ascontiguousarray(state[name][b], runtime.real_dtype()).reshape(-1))
                    kernels(runtime.real()).put(given, self._sizes[name], 0, member[place])

    def read(self, rows: slice | list[int]) -> Arrays:
        """Copies of rows, [B, rows, ...] each field."""
        found = {name: np.array(values[:, rows], order="C") for name, values in self.poses.items()}
        for place, name in enumerate(OF_PARTICLES):
            if self._host is not None:
                found[name] = np.array(self._host[name][:, rows], order="C")
            else:
                found[name] = np.stack([self._take(member[place], name, rows) for member in self.particles])
        return {name: found[name] for name in (*OF_PARTICLES, *POSES)}

    def _take(self, values: Any, name: str, rows: slice | list[int]) -> Array:
        wanted, size = np.arange(self.rows, dtype=np.int32)[rows], self._sizes[name]
        shape = (len(wanted), *self._shapes[name])
        if not size:
            return np.zeros(shape, runtime.real_dtype())
        taken = runtime.device_array((len(wanted) * size,))
        kernels(runtime.real()).take(values, size, runtime.to_device(wanted), len(wanted), taken)
        return runtime.to_host(taken, shape)


class Running:
    """The adjoint of a member's particles on its way back: that of the last state in, of each state before in turn.

    `arrays`: what kernels take, by OF_PARTICLES.
    """

    def __init__(self, adjoint: Arrays, b: int) -> None:
        self._given = {name: adjoint[name][b] for name in OF_PARTICLES}
        self.is_dense = adjoint["position"].shape[1] > 1
        self._sizes = [values[0].size for values in self._given.values()]
        self._shapes = [values[0].shape for values in self._given.values()]
        self.arrays = [runtime.to_device(flat_or_one(values[-1].copy())) for values in self._given.values()]
        self._dense = [runtime.to_device(flat_or_one(values)) for values in self._given.values() if self.is_dense]

    def reach(self, row: int) -> None:
        """The adjoint is that of `row` now, as far as later states tell."""
        for running, dense, size in zip(self.arrays, self._dense, self._sizes, strict=False):
            if size:
                kernels(runtime.real()).join(running, size, row, dense)

    def finish(self) -> None:
        """Write what was found where the adjoint came from."""
        for place, given in enumerate(self._given.values()):
            if not self._sizes[place]:
                continue
            if not self.is_dense:
                given[0] = runtime.to_host(self.arrays[place], self._shapes[place])
            else:
                found = runtime.to_host(self._dense[place], given.shape)
                if not np.shares_memory(found, given):
                    given[...] = found
