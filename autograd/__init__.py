"""Reverse-mode differentiation for hand-written kernels, in PyTorch's vocabulary."""

from __future__ import annotations

from . import _guard  # noqa: F401 - first: refuses to be imported under another name

# The Tensor comes before the Functions, which its operators import in turn.
# isort: off
from .tensor import Tensor, tensor

# isort: on
from . import ops
from .errors import GraphError, InputError, StorageError
from .function import Context, Function
from .graph import backward, grad
from .launch import Kernel, kernel
from .mode import enable_grad, is_grad_enabled, no_grad

__all__ = [
    "Context",
    "Function",
    "GraphError",
    "InputError",
    "Kernel",
    "StorageError",
    "Tensor",
    "backward",
    "enable_grad",
    "grad",
    "is_grad_enabled",
    "kernel",
    "no_grad",
    "ops",
    "tensor",
]
