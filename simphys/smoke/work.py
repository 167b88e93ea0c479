"""Arrays to work with, used again: the system takes about 0.3 ms to hand out a fresh MB."""

from __future__ import annotations

import numpy as np

from ..autograd import runtime
from ..simulator import Array, Shape


class Work:
    """Arrays by name and shape. Whoever asks for one must be done with what it asked for by the same name before."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, Shape], Array] = {}

    def array(self, name: str, shape: Shape) -> Array:
        """It holds zeros at first, then what was last written to it."""
        if (name, shape) not in self._kept:
            self._kept[name, shape] = np.zeros(shape, runtime.real_dtype())
        return self._kept[name, shape]

    def zeros(self, name: str, shape: Shape) -> Array:
        """An array of zeros."""
        found = self.array(name, shape)
        found.fill(0)
        return found
