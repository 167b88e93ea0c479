"""Differentiation for hand-written kernels, in PyTorch's vocabulary: the guide is docs/autograd.md.

Tensors and Functions make a graph, which `backward` and `grad` traverse; `kernel` launches what the compiler made;
`gradcheck` proves an adjoint. The rest puts Functions together, looks into graphs and talks to other libraries.
"""

from __future__ import annotations

from . import _guard  # noqa: F401 - first: refuses to be imported under another name

# The Tensor comes before the Functions, which its operators import in turn.
# isort: off
from .tensor import Tensor, tensor

# isort: on
from . import ops, runtime
from .anomaly import AnomalyError, detect_anomaly
from .compare import compare
from .compose import checkpoint, combine, compose, pipe
from .draw import draw, to_dot, to_mermaid, to_text
from .errors import GraphError, InputError, MissingJvp, StorageError
from .function import Context, Function
from .functional import jacobian, jvp, linearize, vjp
from .gradcheck import GradcheckError, dot_product_test, gradcheck, gradgradcheck
from .graph import backward, grad
from .launch import Kernel, kernel
from .mode import enable_grad, is_grad_enabled, no_grad
from .paths import independent_branches, paths
from .profile import profile
from .second_order import gauss_newton, hvp
from .sharing import from_dlpack
from .torch_interop import from_torch, to_torch

__all__ = [
    "AnomalyError",
    "Context",
    "Function",
    "GradcheckError",
    "GraphError",
    "InputError",
    "Kernel",
    "MissingJvp",
    "StorageError",
    "Tensor",
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
    "runtime",
    "tensor",
    "to_dot",
    "to_mermaid",
    "to_text",
    "to_torch",
    "vjp",
]
