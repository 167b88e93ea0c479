"""Storage for the states of several steps: particles on the device, the few colliders on the host.

Each field of the particles is one flat array per batch member, which kernels take. On a CPU it is a view of one NumPy
array [B, rows, ...]; on a GPU it is a separate array.
"""

import functools
from collections.abc import Collection
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, no_type_check

import numpy as np

from simphys.autograd import kernel, runtime
from simphys.autograd.errors import InputError
from simphys.autograd.kernels.runtime import ti
from simphys.simulator import Array, Arrays, arena

from .arrays import flatten_nonempty
from .environment import POSES

if TYPE_CHECKING:
    from .model import MPM

PARTICLE_FIELDS = ("position", "velocity", "affine", "deformation", "plastic")

LARGEST = 2**31
"""Limit of the number of entries of an array, as kernels have 32-bit indices."""


@functools.cache
@no_type_check
def kernels(real: Any) -> SimpleNamespace:
    """Kernels that copy rows of `size` numbers from and to flat arrays on a GPU, and that add adjoints anywhere."""
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @kernel
    def put_row(given: reals, size: ti.i32, row: ti.i32, values: reals):
        for k in range(size):
            values[row * size + k] = given[k]

    @kernel
    def take_rows(values: reals, size: ti.i32, wanted: ints, count: ti.i32, taken: reals):
        for k in range(count * size):
            taken[k] = values[wanted[k // size] * size + k % size]

    @kernel
    def add_loss_row(running: reals, size: ti.i32, row: ti.i32, dense: reals):
        """Add the direct loss derivative by the state of a row to the running adjoint, and store the total."""
        for k in range(size):
            running[k] = running[k] + dense[row * size + k]
            dense[row * size + k] = running[k]

    return SimpleNamespace(put_row=put_row, take_rows=take_rows, add_loss_row=add_loss_row)


class Segment:
    """The states of `rows` steps of B batch members.

    `poses` holds the poses of colliders, [B, rows, K, ...]. `particles` holds, for each batch member, the arrays that
    kernels take, in the order of PARTICLE_FIELDS.
    """

    def __init__(self, model: "MPM", batch: int, rows: int) -> None:
        shapes, dtype = model.state_shapes(), runtime.real_dtype()
        self.rows = rows
        self._shapes = {name: shapes[name] for name in PARTICLE_FIELDS}
        self._sizes = {name: int(np.prod(shape)) for name, shape in self._shapes.items()}
        largest = rows * max(self._sizes.values())
        if largest >= LARGEST:
            remedy = "Limit the memory of the rollout (memory=, runtime.memory), which divides it into segments."
            constraint = f"must hold fewer than {LARGEST} numbers per field"
            raise InputError("mpm: states of a segment", constraint, largest, remedy)
        self.poses = {name: np.empty((batch, rows, *shapes[name]), dtype) for name in POSES}
        self._host: Arrays | None = None
        if not runtime.settings().on_gpu:
            self._host = {n: arena.empty((batch, rows, *shape), dtype) for n, shape in self._shapes.items()}
            self.particles = [[flatten_nonempty(self._host[name][b]) for name in PARTICLE_FIELDS] for b in range(batch)]
        else:
            sizes = [max(rows * size, 1) for size in self._sizes.values()]
            self.particles = [[runtime.device_array((size,)) for size in sizes] for _ in range(batch)]

    def load(self, state: Arrays) -> None:
        """Store the state, with fields [B, ...], as row 0."""
        for name in POSES:
            self.poses[name][:, 0] = state[name]
        for place, name in enumerate(PARTICLE_FIELDS):
            if self._host is not None:
                self._host[name][:, 0] = state[name]
            elif self._sizes[name]:
                for b, member in enumerate(self.particles):
                    given = runtime.to_device(np.ascontiguousarray(state[name][b], runtime.real_dtype()).reshape(-1))
                    kernels(runtime.real()).put_row(given, self._sizes[name], 0, member[place])

    def read(self, rows: slice | list[int], names: Collection[str] | None = None) -> Arrays:
        """Copy rows, with fields [B, rows, ...]: all of them, or those named."""
        wanted = [name for name in (*PARTICLE_FIELDS, *POSES) if names is None or name in names]
        found = {name: np.array(values[:, rows], order="C") for name, values in self.poses.items() if name in wanted}
        for place, name in enumerate(PARTICLE_FIELDS):
            if name not in wanted:
                continue
            if self._host is not None:
                found[name] = np.array(self._host[name][:, rows], order="C")
            else:
                found[name] = np.stack([self._take_rows(member[place], name, rows) for member in self.particles])
        return {name: found[name] for name in wanted}

    def _take_rows(self, values: Any, name: str, rows: slice | list[int]) -> Array:
        wanted, size = np.arange(self.rows, dtype=np.int32)[rows], self._sizes[name]
        shape = (len(wanted), *self._shapes[name])
        if not size:
            return np.zeros(shape, runtime.real_dtype())
        taken = runtime.device_array((len(wanted) * size,))
        kernels(runtime.real()).take_rows(values, size, runtime.to_device(wanted), len(wanted), taken)
        return runtime.to_host(taken, shape)


class RunningAdjoint:
    """The running adjoint of a batch member's particles: initially that of the last state, then of each earlier state.

    `arrays` holds the arrays that kernels take, in the order of PARTICLE_FIELDS.
    """

    def __init__(self, adjoint: Arrays, b: int) -> None:
        self._adjoint = {name: adjoint[name][b] for name in PARTICLE_FIELDS}
        self.is_dense = adjoint["position"].shape[1] > 1
        self._sizes = [values[0].size for values in self._adjoint.values()]
        self._shapes = [values[0].shape for values in self._adjoint.values()]
        self.arrays = [runtime.to_device(flatten_nonempty(values[-1].copy())) for values in self._adjoint.values()]
        dense = self._adjoint.values() if self.is_dense else ()
        self._dense = [runtime.to_device(flatten_nonempty(values)) for values in dense]

    def add_loss_row(self, row: int) -> None:
        """Add the direct loss derivative by the state of `row` to the adjoint that later states propagate to it.

        Without a row for each state, there is nothing to add.
        """
        for running, dense, size in zip(self.arrays, self._dense, self._sizes, strict=False):
            if size:
                kernels(runtime.real()).add_loss_row(running, size, row, dense)

    def finish(self) -> None:
        """Write the results back to the adjoint given at the start."""
        for place, given in enumerate(self._adjoint.values()):
            if not self._sizes[place]:
                continue
            if not self.is_dense:
                given[0] = runtime.to_host(self.arrays[place], self._shapes[place])
            else:
                found = runtime.to_host(self._dense[place], given.shape)
                if not np.shares_memory(found, given):
                    given[...] = found
