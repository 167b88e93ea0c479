"""Differentiable operations on Tensors with NumPy's names, broadcasting and promotion; nodes have PyTorch's names.

Operands are Tensors, numbers or arrays; Python numbers do not widen f32. Integer and bool tensors carry no gradient.
Some names are those of builtins (abs, max, min, pow, sum): write `from simphys.autograd import ops` and `ops.sum(x)`.
"""

from .algebra import add, div, mul, neg, pow, square, sub
from .functions import cos, exp, log, sigmoid, sin, softplus, sqrt, tanh
from .indexing import getitem, put
from .linear import matmul, norm
from .numpy_functions import apply_function as apply_function
from .numpy_functions import apply_ufunc as apply_ufunc
from .operands import plain as plain
from .piecewise import abs, clip, maximum, minimum, where
from .reductions import max, mean, min, sum
from .shaping import astype, broadcast_to, clone, concatenate, reshape, stack, transpose

__all__ = [
    "abs",
    "add",
    "astype",
    "broadcast_to",
    "clip",
    "clone",
    "concatenate",
    "cos",
    "div",
    "exp",
    "getitem",
    "log",
    "matmul",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mul",
    "neg",
    "norm",
    "pow",
    "put",
    "reshape",
    "sigmoid",
    "sin",
    "softplus",
    "sqrt",
    "square",
    "stack",
    "sub",
    "sum",
    "tanh",
    "transpose",
    "where",
]
