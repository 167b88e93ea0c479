"""Arrays of other libraries as Tensors, by DLPack; `Tensor.__dlpack__` exports them the other way."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from ..kernels.memory import NUMPY_IS_VERSIONED, check_dtype
from ..tensor import Tensor


def from_dlpack(external: Any, *, share: bool = False) -> Tensor:
    """A leaf Tensor with the values of an array of another library (PyTorch, JAX, ...): a copy.

    With share=True its memory is shared, unguarded, as by `tensor(array, share=True)`. That needs NumPy 2.1, and an
    owner that declares the memory writable, by DLPack 1.0. Shape and dtype: those of `external`.
    Errors: InputError when its owner does not export it (so), or it is not memory of the CPU that NumPy understands.
    """
    try:
        array = np.from_dlpack(external, copy=False) if share and NUMPY_IS_VERSIONED else np.from_dlpack(external)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        constraint = f"an array in memory of the CPU{' that can be shared' if share else ''}, exported by DLPack"
        found = f"{type(external).__name__}: {error}"
        remedy = "Move it to the CPU, detach it, " + ("or copy it: share=False." if share else "or convert its dtype.")
        raise InputError("from_dlpack", constraint, found, remedy) from error
    if share:
        return Tensor.over("from_dlpack", array)
    check_dtype("from_dlpack", array.dtype)
    return Tensor(array.copy())
