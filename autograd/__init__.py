"""Differentiation for hand-written kernels, in PyTorch's vocabulary: the guide is docs/autograd.md.

Tensors and Functions make a graph, which `backward` and `grad` traverse. `kernel` makes compiled kernels, and
`gradcheck` proves adjoints. The folders: kernels/ compiles and launches, ops/ has the operations of Tensors, compose/
puts functions together, look/ shows graphs, proof/ checks gradients, bridges/ exchanges data with other libraries.
"""

from __future__ import annotations

from . import (
    _guard,  # noqa: F401 - first: refuses to be imported under another name
    ops,
)
from .bridges.dlpack import from_dlpack
from .bridges.pytorch import from_torch, to_torch
from .compose.functional import jacobian, jvp, linearize, vjp
from .compose.pipe import checkpoint, combine, compose, pipe
from .compose.second_order import gauss_newton, hvp
from .errors import DeviceMemoryError, GraphError, InputError, MissingJvp, StorageError
from .function import Context, Function
from .graph import backward, grad
from .kernels import runtime
from .kernels.launch import Kernel, kernel
from .kernels.records import RecordType, View, record, stands_for
from .look.anomaly import AnomalyError, detect_anomaly
from .look.compare import compare
from .look.draw import draw, to_dot, to_mermaid, to_text
from .look.graph import Graph
from .look.paths import independent_branches, paths
from .look.profile import profile
from .mode import enable_grad, is_grad_enabled, no_grad
from .proof.gradcheck import GradcheckError, dot_product_test, gradcheck, gradgradcheck
from .tensor import Tensor, connect, tensor

connect(ops, backward)

__all__ = [
    "AnomalyError",
    "Context",
    "DeviceMemoryError",
    "Function",
    "GradcheckError",
    "Graph",
    "GraphError",
    "InputError",
    "Kernel",
    "MissingJvp",
    "RecordType",
    "StorageError",
    "Tensor",
    "View",
    "backward",
    "checkpoint",
    "combine",
    "compare",
    "compose",
    "detect_anomaly",
    "dot_product_test",
    "draw",
    "enable_grad",
    "from_dlpack",
    "from_torch",
    "gauss_newton",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "hvp",
    "independent_branches",
    "is_grad_enabled",
    "jacobian",
    "jvp",
    "kernel",
    "linearize",
    "no_grad",
    "ops",
    "paths",
    "pipe",
    "profile",
    "record",
    "runtime",
    "stands_for",
    "tensor",
    "to_dot",
    "to_mermaid",
    "to_text",
    "to_torch",
    "vjp",
]
