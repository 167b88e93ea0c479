"""The divergence of a velocity and its correction, bound to arrays on the device; for equations see divergence.py."""

import functools
import math
from functools import partial
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels import device
from simphys.autograd.kernels.runtime import ti
from simphys.numerics.poisson import Poisson
from simphys.substep import Chain, Entries, KernelCall, Launch, Target

from . import cell_differences, divergence
from .model import Smoke


@functools.cache
def clear_kernel(real: Any) -> Any:
    @no_type_check
    @kernel
    def clear(
        places: ti.types.ndarray(dtype=ti.i32, ndim=1),
        count: ti.i32,
        target: ti.types.ndarray(dtype=real, ndim=1),
        begin: ti.i32,
    ):
        """Set the entries at these places to zero."""
        for n in range(count):
            target[begin + places[n]] = 0.0

    return clear


class Differences:
    """The divergence b of a velocity [dim, *faces], and its correction by z.

    Either includes "all" faces, or only those that are "free", that is, not at closed or inflow sides.
    """

    def __init__(self, model: Smoke, system: Poisson, b: Any, z: Any) -> None:
        real = runtime.real_dtype()
        self._b, self._z = b, z
        faces, length = (1, *model.faces)[-3:], max(system.cells) + 1
        sizes = np.array([*faces, np.prod(faces), length], np.int32)
        weights = {"all": np.ones((3, length), real), "free": np.ones((3, length), real)}
        entries = np.arange(model.dim * math.prod(model.faces), dtype=np.int32).reshape(model.dim, *model.faces)
        beyond = [np.zeros(0, np.int32)]
        for axis, (n, pair) in enumerate(zip(system.cells, system.ends, strict=True)):
            for face, end in zip((0, n), pair, strict=True):
                weights["free"][axis + 3 - system.dim, face] = end != "closed"
            if model.faces[axis] > n:
                beyond += [np.take(entries[a], n, axis).reshape(-1) for a in range(system.dim) if a != axis]
        self._beyond = np.unique(np.concatenate(beyond))
        on_gpu = runtime.settings().on_gpu
        loops = cell_differences if on_gpu else divergence
        self._loops = partial(getattr(loops, model.grid), runtime.real(), system.dim)
        grid = device.to_device(system.grid), device.to_device(sizes)
        self._places = {name: (*grid, device.to_device(values.reshape(-1))) for name, values in weights.items()}
        self._cells = (math.prod(system.cells),) if on_gpu else ()
        self._faces = (math.prod(model.faces),) if on_gpu else ()

    def divergence(self, faces: str, velocity: Entries) -> Launch:
        """Launch that computes b = D u from these faces."""
        loop = self._loops(adds=False).divergence
        return KernelCall(loop, *self._cells, *self._places[faces], velocity.numbers, self._b, moving=[(velocity, 0)])

    def correct(self, faces: str, velocity: Entries, target: Target) -> Launch:
        """Launch that computes u - D^T z at these faces, with 0 beyond a component's own faces.

        The target may be the velocity itself.
        """
        to = target.entries
        given = *self._faces, *self._places[faces], self._z, velocity.numbers, to.numbers
        correct = KernelCall(self._loops(adds=target.adds).correct, *given, moving=[(velocity, 0), (to, 0)])
        if target.adds or not self._beyond.size:
            return correct
        places = device.to_device(self._beyond), self._beyond.size
        return Chain(correct, KernelCall(clear_kernel(runtime.real()), *places, to.numbers, moving=[(to, 0)]))
