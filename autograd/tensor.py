"""`Tensor`: an array with a gradient, a place in the graph, and arithmetic."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, final

import numpy as np
import numpy.typing as npt

from .errors import InputError
from .kernels import runtime
from .kernels.memory import Array as Array
from .kernels.memory import Memory
from .node import AccumulateGrad, Edge, Node, RemovableHandle

TensorHook = Callable[["Tensor"], "Tensor | None"]


@final
class Tensor(Memory):
    """An array in a differentiable computation.

    `data` is the memory, C-contiguous and locked against writing; use `with x.writable() as a:` to change it, which
    raises the version. Arithmetic follows NumPy's broadcasting and promotion; scalars of Python do not widen a dtype.
    NumPy's functions of Tensors give Tensors (`np.sin(x)`), where `ops` has them, and so do methods (`x.sin()`).
    """

    __slots__ = ("_edge", "grad")

    grad: Tensor | None
    _edge: Edge | None  # the node that made it and the number of that output; for a leaf its accumulator
    __hash__ = object.__hash__

    def __init__(self, array: Array) -> None:
        """Take over `array` (C-contiguous, owning its memory) and lock it; one that a bound launch writes is copied."""
        Memory.__init__(self, array)
        self._edge = self.grad = None

    # --- properties and values

    @property
    def requires_grad(self) -> bool:
        """True if gradients flow to this Tensor."""
        return self._edge is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    @property
    def grad_fn(self) -> Node | None:
        """The node that made this Tensor; None for a leaf."""
        edge = self._edge
        return None if edge is None or edge[0].is_accumulator else edge[0]

    @property
    def output_index(self) -> int:
        """Number of the output of its node that this Tensor is."""
        return 0 if self._edge is None else self._edge[1]

    @property
    def is_leaf(self) -> bool:
        """True if no recorded operation made this Tensor: gradients of leaves are kept in `.grad`."""
        return self.grad_fn is None

    def numpy(self) -> Array:
        """The values as a read-only view."""
        return self.data

    def item(self) -> float:
        """The value of a Tensor of one element."""
        return self.data.item()

    def __float__(self) -> float:
        return float(self.data.item())

    def __len__(self) -> int:
        return len(self.data)

    def __bool__(self) -> bool:
        return bool(self.data)

    def __repr__(self) -> str:
        origin = f", grad_fn={self.grad_fn!r}" if self.grad_fn else ", requires_grad=True" if self.requires_grad else ""
        return f"tensor({np.array2string(self.data, separator=', ', threshold=20)}{origin})"

    # --- copies

    def __copy__(self) -> Tensor:
        """The same memory and version; of a leaf a leaf of its own, of a result the same place in the graph."""
        alias = self.detach()
        if self.is_leaf:
            return alias.requires_grad_(self.requires_grad)
        alias._edge = self._edge
        return alias

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        """A leaf of its own, with the gradient that this one has. InputError for a result of recorded operations."""
        result = _leaf(*self._leaf_parts("copy.deepcopy"))
        if self.grad is not None:
            result.grad = self.grad.detach().__deepcopy__(memo)
        return result

    def __reduce__(self) -> tuple[Any, ...]:
        return _leaf, self._leaf_parts("pickle")

    def _leaf_parts(self, source: str) -> tuple[Array, bool]:
        """Values and `requires_grad` of a leaf."""
        if not self.is_leaf:
            constraint = "a copy is a leaf, and this is a result of recorded operations"
            raise InputError(source, constraint, repr(self.grad_fn), "Use clone(), or detach() before.")
        return self.data, self.requires_grad

    # --- place in the graph

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Request the gradient with respect to this leaf (in place; returns itself)."""
        if requires_grad and self.data.dtype.kind != "f":
            raise InputError(
                "Tensor.requires_grad_",
                "only floating-point tensors have gradients",
                str(self.dtype),
                "Convert it first.",
            )
        if not self.is_leaf:
            raise InputError(
                "Tensor.requires_grad_", "only leaves can change it", repr(self.grad_fn), "Use detach() first."
            )
        if requires_grad != self.requires_grad:
            self._edge = (AccumulateGrad(self), 0) if requires_grad else None
        return self

    def clone(self) -> Tensor:
        """A differentiable copy."""
        return ops.clone(self)

    def retain_grad(self) -> None:
        """Keep the gradient of this non-leaf in `.grad` at the next backward."""
        if self.grad_fn is not None:
            self.grad_fn.hooks.retained[self.output_index] = weakref.ref(self)

    def register_hook(self, hook: TensorHook) -> RemovableHandle:
        """Call `hook(gradient)` when backward has the gradient with respect to this Tensor, before it flows on.

        The hook may return another Tensor of the same shape and dtype in its place.
        Errors: InputError for a Tensor that does not require a gradient.
        """
        if self._edge is None:
            remedy = "Set requires_grad=True on it, or on a leaf that it is computed from."
            raise InputError("Tensor.register_hook", "the Tensor requires a gradient", repr(self), remedy)
        node, index = self._edge
        return node.hooks.on_tensor(index, hook)

    def backward(
        self,
        gradient: Tensor | npt.ArrayLike | None = None,
        *,
        retain_graph: bool | None = None,
        create_graph: bool = False,
    ) -> None:
        """Add to `.grad` of every leaf the gradient of sum(gradient * self); a scalar needs no `gradient`."""
        _backward((self,), (gradient,), retain_graph=retain_graph, create_graph=create_graph)

    # --- arithmetic (the rules are in ops/)

    def __add__(self, other: Any) -> Tensor:
        return ops.add(self, other)

    def __radd__(self, other: Any) -> Tensor:
        return ops.add(other, self)

    def __sub__(self, other: Any) -> Tensor:
        return ops.sub(self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return ops.sub(other, self)

    def __mul__(self, other: Any) -> Tensor:
        return ops.mul(self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return ops.mul(other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return ops.div(self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return ops.div(other, self)

    def __pow__(self, other: Any) -> Tensor:
        return ops.pow(self, other)

    def __rpow__(self, other: Any) -> Tensor:
        return ops.pow(other, self)

    def __matmul__(self, other: Any) -> Tensor:
        return ops.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return ops.matmul(other, self)

    def __neg__(self) -> Tensor:
        return ops.neg(self)

    def __abs__(self) -> Tensor:
        return ops.abs(self)

    def __getitem__(self, index: Any) -> Tensor:
        return ops.getitem(self, index)

    def __eq__(self, other: object) -> Any:
        return self._compare(np.equal, other)

    def __ne__(self, other: object) -> Any:
        return self._compare(np.not_equal, other)

    def _compare(self, compare: np.ufunc, other: object) -> Any:
        """Elementwise, but for what is no number or array: that is not equal as a whole."""
        if not isinstance(other, Tensor | np.ndarray | np.generic | int | float | list | tuple):
            return NotImplemented
        return Tensor(np.asarray(compare(self.data, ops.plain(other))))

    def __lt__(self, other: Any) -> Tensor:
        return Tensor(np.asarray(self.data < ops.plain(other)))

    def __le__(self, other: Any) -> Tensor:
        return Tensor(np.asarray(self.data <= ops.plain(other)))

    def __gt__(self, other: Any) -> Tensor:
        return Tensor(np.asarray(self.data > ops.plain(other)))

    def __ge__(self, other: Any) -> Tensor:
        return Tensor(np.asarray(self.data >= ops.plain(other)))

    # --- PyTorch's methods

    def abs(self) -> Tensor:
        return ops.abs(self)

    def clamp(self, min: Any = None, max: Any = None) -> Tensor:
        """The elements limited to min ... max, see `ops.clip`."""
        return ops.clip(self, min, max)

    def clip(self, min: Any = None, max: Any = None) -> Tensor:
        """The same as `clamp`."""
        return ops.clip(self, min, max)

    def cos(self) -> Tensor:
        return ops.cos(self)

    def exp(self) -> Tensor:
        return ops.exp(self)

    def log(self) -> Tensor:
        return ops.log(self)

    def pow(self, exponent: Any) -> Tensor:
        return ops.pow(self, exponent)

    def sigmoid(self) -> Tensor:
        return ops.sigmoid(self)

    def sin(self) -> Tensor:
        return ops.sin(self)

    def sqrt(self) -> Tensor:
        return ops.sqrt(self)

    def square(self) -> Tensor:
        return ops.square(self)

    def tanh(self) -> Tensor:
        return ops.tanh(self)

    def sum(self, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Tensor:
        return ops.sum(self, axis, keepdims=keepdims)

    def mean(self, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Tensor:
        return ops.mean(self, axis, keepdims=keepdims)

    def max(self, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Tensor:
        return ops.max(self, axis, keepdims=keepdims)

    def min(self, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Tensor:
        return ops.min(self, axis, keepdims=keepdims)

    def reshape(self, *shape: int | tuple[int, ...]) -> Tensor:
        """The elements in another shape: `reshape(2, 3)` or `reshape((2, 3))`; one length may be -1."""
        return ops.reshape(self, shape[0] if len(shape) == 1 else shape)

    def astype(self, dtype: npt.DTypeLike) -> Tensor:
        """A copy in another dtype; the gradient comes back in this one."""
        return ops.astype(self, dtype)

    @property
    def T(self) -> Tensor:
        return ops.transpose(self)

    @property
    def mT(self) -> Tensor:
        """The Tensor with its last two axes exchanged."""
        return ops.transpose(self, (*range(self.ndim - 2), self.ndim - 1, self.ndim - 2))

    # --- NumPy

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        """The read-only view for `np.asarray`. InputError where a gradient would be lost: use `numpy()`."""
        if self._edge is not None:
            remedy = "Use x.numpy() for its values alone, or ops for a differentiable operation."
            raise InputError("numpy.asarray", "a Tensor that requires a gradient is not an array", repr(self), remedy)
        return np.array(self.data, dtype, copy=copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return ops.apply_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, inputs: Any, options: Any) -> Any:
        return ops.apply_function(function, inputs, options)


def _leaf(array: Array, requires_grad: bool) -> Tensor:
    """A leaf over a copy of an array."""
    return Tensor(np.array(array, order="C")).requires_grad_(requires_grad)


def wrap(array: Array) -> Tensor:
    """`Tensor(array)` without the cost of a constructor, for the results of nodes."""
    array.setflags(False)  # type: ignore[call-arg]
    result = _new(Tensor)
    result.data = array
    result._edge = result._version = result.grad = None
    result._shared = False
    return result


_new = object.__new__


def tensor(
    values: npt.ArrayLike,
    *,
    requires_grad: bool = False,
    dtype: npt.DTypeLike | None = None,
    share: bool = False,
) -> Tensor:
    """A leaf Tensor over a copy of `values`; reals take the precision of `runtime.init` (f64 if not called).

    With share=True it uses the memory of the array `values` itself, in its dtype. Nothing then guards against writes of
    the array's owner between forward and backward (anomaly mode finds them by checksums).
    Shape: that of `values`. Errors: InputError for a gradient of integers, and for memory that cannot be shared.
    """
    if share:
        result = Tensor.over("tensor", values)  # type: ignore[arg-type]  # it checks its argument
        if dtype is not None and result.dtype != dtype:
            remedy = "Leave dtype out, or copy: share=False."
            raise InputError("tensor", "shared memory keeps its dtype", f"{result.dtype}, dtype={dtype}", remedy)
    else:
        array = np.asarray(values)
        if dtype is None and array.dtype.kind == "f":
            dtype = runtime.real_dtype()
        result = Tensor(np.array(array, dtype=dtype, order="C", copy=True))
    return result.requires_grad_() if requires_grad else result


def connect(operations: Any, backward: Callable[..., None]) -> None:
    """Set the arithmetic of Tensors (the package ops) and their `backward`, both of which build on this class."""
    global ops, _backward
    ops, _backward = operations, backward


ops: Any
_backward: Callable[..., None]
