"""Copies of values between PyTorch and Tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from ..tensor import Tensor


def to_torch_value(x: Tensor) -> Any:
    """Copy a Tensor to torch."""
    import torch

    return torch.from_numpy(x.data.copy())


def from_torch_value(source: str, x: Any) -> Tensor:
    """Copy a tensor of torch. Errors: InputError for one that NumPy cannot hold."""
    found = f"{x.dtype} on {x.device}"
    if x.device.type != "cpu":
        raise InputError(source, "tensors of torch lie on the CPU", found, "Move it there: x.cpu().")
    try:
        array = np.array(x.numpy(force=True), order="C")
    except TypeError as error:  # bfloat16, or a layout that NumPy lacks
        raise InputError(source, "NumPy has the tensor's dtype and layout", str(error), "Convert it first.") from error
    if array.dtype.kind == "c":
        raise InputError(source, "tensors are real", found, "Use torch.view_as_real.")
    return Tensor(array)
