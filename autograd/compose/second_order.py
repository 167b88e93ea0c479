"""Products with second derivatives, without forming a matrix: Hessian times vector, and Gauss-Newton times vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..graph import grad
from ..tensor import Array, Tensor
from .functional import Result, Tensors, as_array_like, linearize, record, tuple_of

Vectors = npt.ArrayLike | Sequence[npt.ArrayLike | None]


def hvp(fn: Callable[..., Tensor], inputs: Tensors, vectors: Vectors) -> tuple[Tensor, Any]:
    """(value, H v) of the scalar `value = fn(*inputs)`, H its Hessian with respect to all inputs together.

    For a Tensor `inputs`, the vector and H v are arrays of its shape. For a sequence, `vectors` is a sequence of such
    arrays (None for zero), and H v is a tuple. Reverse over reverse: the recorded gradient is differentiated along v.
    Errors: InputError unless fn gives one scalar; GraphError for a Function that is differentiable only once.
    """
    leaves, value = record(fn, inputs)
    if not isinstance(value, Tensor) or value.size != 1:
        raise InputError("hvp", "fn gives one scalar", repr(value), "Reduce it by sum(), or use gauss_newton.")
    directions = _directions("hvp", leaves, inputs, vectors)
    zeros = [np.zeros(x.shape, x.dtype) for x in leaves]
    if not value.requires_grad:
        return value, _like(inputs, zeros)
    gradients = grad(value, leaves, create_graph=True, allow_unused=True)
    pairs = [
        (g, v)
        for g, v in zip(gradients, directions, strict=True)
        if g is not None and g.requires_grad and v is not None
    ]
    if not pairs:  # the gradient does not depend on the inputs
        return value, _like(inputs, zeros)
    products = grad([g for g, _ in pairs], leaves, [v for _, v in pairs], allow_unused=True)
    return value, _like(inputs, [zero if p is None else p.data for p, zero in zip(products, zeros, strict=True)])


def gauss_newton(fn: Callable[..., Result], inputs: Tensors, vectors: Vectors) -> tuple[Result, Any]:
    """(outputs, J^T J v) of `outputs = fn(*inputs)`, J the Jacobian of all outputs by all inputs together.

    For residuals r this is the Gauss-Newton approximation of the Hessian of |r|^2 / 2, times v. It takes one forward
    and one reverse pass over one recorded graph (N. N. Schraudolph, "Fast curvature matrix-vector products for
    second-order gradient descent", Neural Computation 14, 2002). `vectors` as in `hvp`.
    Errors: MissingJvp, a GraphError, for a Function without a jvp.
    """
    leaves, result = record(fn, inputs)
    outputs = [y for y in tuple_of(result) if y.requires_grad]
    products: tuple[Tensor | None, ...] = (None,) * len(leaves)
    if outputs:
        tangents = linearize(outputs, leaves)(*_directions("gauss_newton", leaves, inputs, vectors))
        products = grad(outputs, leaves, tangents, allow_unused=True)
    zeros = [np.zeros(x.shape, x.dtype) for x in leaves]
    return result, _like(inputs, [zero if p is None else p.data for p, zero in zip(products, zeros, strict=True)])


def _like(inputs: Tensors, arrays: Sequence[Array]) -> Any:
    return arrays[0] if isinstance(inputs, Tensor) else tuple(arrays)


def _directions(source: str, leaves: Sequence[Tensor], inputs: Tensors, vectors: Vectors) -> list[Array | None]:
    each: Sequence[npt.ArrayLike | None] = [vectors] if isinstance(inputs, Tensor) else vectors  # type: ignore
    if len(each) != len(leaves):
        raise InputError(source, "there is a vector for each input", f"{len(each)} vectors", "Pass None for zero.")
    return [None if v is None else as_array_like(source, "vector", v, x) for v, x in zip(each, leaves, strict=True)]
