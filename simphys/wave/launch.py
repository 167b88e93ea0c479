"""Launches over arrays of the host that share memory: numbers as they are read, and in blocks as they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd import runtime


def bound(kernel: Any, *arguments: Any) -> Callable[..., None]:
    """`kernel.bind(*arguments)`, where arrays with two axes are of vectors.

    A GPU works on a copy of each array, and what comes back comes whole: what a kernel did not write is not there, and
    what it wrote is lost where the same memory comes back as another argument. So there each copy begins as its array
    is, and only what has changed comes back.
    """
    if not runtime.settings().on_gpu:
        return kernel.bind(*arguments)
    arrays = {name: x for name, x in zip(kernel.parameters, arguments, strict=False) if isinstance(x, np.ndarray)}

    def copied(*rest: float) -> None:
        copies = {name: runtime.to_device(x, vector=x.ndim > 1) for name, x in arrays.items()}
        before = {name: arrays[name].copy() for name in kernel.written}
        kernel(*[copies.get(name, x) for name, x in zip(kernel.parameters, arguments, strict=False)], *rest)
        for name, old in before.items():
            new = runtime.to_host(copies[name], old.shape)
            np.copyto(arrays[name], new, where=new != old)

    return copied
