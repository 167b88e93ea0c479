"""The divergence of a velocity and its correction, bound to arrays on the device; for equations see divergence.py."""

import functools
import math
from collections.abc import Callable
from functools import partial
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels import device
from simphys.autograd.kernels.runtime import ti
from simphys.numerics.poisson import Poisson

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

    Either includes "all" faces, or only those that are "free", that is, not at closed or inflow sides. Launches are
    bound to arrays once, which makes them cheap.
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

    def divergence(self, faces: str, velocity: Any) -> Callable[[int], None]:
        """Bind b = D u from these faces; launched with the first entry of the velocity in its array."""
        bound: Callable[[int], None] = self._loops(adds=False).divergence.bind(
            *self._cells, *self._places[faces], velocity, self._b
        )
        return bound

    def correct(self, faces: str, velocity: Any, target: Any, *, adds: bool = False) -> Callable[[int, int], None]:
        """Bind u - D^T z at these faces, with 0 beyond a component's own faces; set, or added to, a target.

        Launched with the first entry of the velocity, and of the target, which may be the velocity itself.
        """
        correct = self._loops(adds=adds).correct.bind(*self._faces, *self._places[faces], self._z, velocity, target)
        if adds or not self._beyond.size:
            return correct
        clear = clear_kernel(runtime.real()).bind(device.to_device(self._beyond), self._beyond.size, target)

        def launch(begin: int, target_begin: int) -> None:
            correct(begin, target_begin)
            clear(target_begin)

        return launch
