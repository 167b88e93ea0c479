"""`Tensor`: an array with a gradient, the node that made it, and a version that guards what backward will read."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, final

import numpy as np
import numpy.typing as npt

from .errors import InputError
from .kernels import runtime
from .mode import switch
from .node import AccumulateGrad, Edge, Node, RemovableHandle

Array = npt.NDArray[Any]
TensorHook = Callable[["Tensor"], "Tensor | None"]


@final
class Tensor:
    """An array in a differentiable computation.

    `data` is the memory, C-contiguous and locked against writing; use `with x.writable() as a:` to change it, which
    raises the version. Arithmetic follows NumPy's broadcasting and promotion; scalars of Python do not widen a dtype.
    NumPy's functions of Tensors give Tensors (`np.sin(x)`), where `ops` has them.
    """

    grad: Tensor | None = None
    _edge: Edge | None = None  # the node that it comes from, and which of its outputs it is; of a leaf its accumulator
    _version: list[int] | None = None  # [how often written to, switch.writes then], one list for all aliases
    _shared = False  # whether others may write to the memory
    __hash__ = object.__hash__

    def __init__(self, array: Array) -> None:
        """Take over `array` (C-contiguous, owning its memory) and lock it. Users call `tensor(...)`, which copies."""
        array.setflags(False)  # type: ignore[call-arg]  # write=False, which by name takes 0.2 us more
        self.data = array

    # --- what it is

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.data.dtype

    @property
    def ndim(self) -> int:
        return self.data.ndim

    @property
    def size(self) -> int:
        return self.data.size

    @property
    def version(self) -> int:
        """How often the memory was written to since the Tensor was made."""
        return self._version[0] if self._version else 0

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to this Tensor."""
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
        """Which output of its node this Tensor is."""
        return 0 if self._edge is None else self._edge[1]

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made this Tensor: gradients of leaves are kept in `.grad`."""
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

    # --- its place in the graph

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Ask for the gradient with respect to this leaf (in place; returns itself)."""
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

    def detach(self) -> Tensor:
        """A Tensor over the same memory and version, cut from the graph."""
        if self._version is None:
            self._version = [0, 0]
        alias = Tensor(self.data)
        alias._version = self._version
        if self._shared:
            alias._shared = True
        return alias

    def clone(self) -> Tensor:
        """A differentiable copy."""
        return ops.clone(self)

    def retain_grad(self) -> None:
        """Keep the gradient of this non-leaf in `.grad` at the next backward."""
        if self.grad_fn is not None:
            self.grad_fn.hooks.retained[self.output_index] = weakref.ref(self)

    def register_hook(self, hook: TensorHook) -> RemovableHandle:
        """Call `hook(gradient)` whenever the gradient with respect to this Tensor is known, before it flows on.

        The hook may return another Tensor of the same shape and dtype in its place. Errors: InputError when this
        Tensor does not require a gradient.
        """
        if self._edge is None:
            remedy = "Set requires_grad=True on it, or on what it is computed from."
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

    # --- writing

    @contextmanager
    def writable(self) -> Iterator[Array]:
        """The values as a writable view for the length of the `with` block; raises the version.

        Errors: InputError on a Tensor that was computed while recording, since backward would use the old derivative.
        """
        if self.grad_fn is not None and switch.enabled:
            raise InputError(
                "Tensor.writable",
                "a computed tensor is not written in place",
                repr(self.grad_fn),
                "Write to detach().clone(), or inside no_grad().",
            )
        self.raise_version()
        self.data.flags.writeable = True
        view = self.data.view()
        self.data.flags.writeable = False
        try:
            yield view
        finally:
            view.flags.writeable = False

    def raise_version(self) -> None:
        """Tell that a kernel wrote to `data`."""
        switch.writes += 1
        if self._version is None:
            self._version = [0, 0]
        self._version[0] += 1
        self._version[1] = switch.writes

    # --- arithmetic (the rules live in ops/)

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

    def __lt__(self, other: Any) -> Tensor:
        return Tensor(np.asarray(self.data < ops.plain(other)))

    def __le__(self, other: Any) -> Tensor:
        return Tensor(np.asarray(self.data <= ops.plain(other)))

    def __gt__(self, other: Any) -> Tensor:
        return Tensor(np.asarray(self.data > ops.plain(other)))

    def __ge__(self, other: Any) -> Tensor:
        return Tensor(np.asarray(self.data >= ops.plain(other)))

    def sum(self, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Tensor:
        return ops.sum(self, axis, keepdims=keepdims)

    def mean(self, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Tensor:
        return ops.mean(self, axis, keepdims=keepdims)

    def max(self, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Tensor:
        return ops.max(self, axis, keepdims=keepdims)

    def min(self, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Tensor:
        return ops.min(self, axis, keepdims=keepdims)

    def reshape(self, *shape: int | tuple[int, ...]) -> Tensor:
        """In another shape of the same size: `reshape(2, 3)` or `reshape((2, 3))`; one length may be -1."""
        return ops.reshape(self, shape[0] if len(shape) == 1 else shape)

    def astype(self, dtype: npt.DTypeLike) -> Tensor:
        """In another dtype; the gradient comes back in this one."""
        return ops.astype(self, dtype)

    @property
    def T(self) -> Tensor:
        return ops.transpose(self)

    @property
    def mT(self) -> Tensor:
        """With the last two axes exchanged."""
        return ops.transpose(self, (*range(self.ndim - 2), self.ndim - 1, self.ndim - 2))

    # --- NumPy

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        """What `np.asarray` takes: a read-only view. InputError where a gradient would be lost: use `numpy()`."""
        if self._edge is not None:
            remedy = "Use x.numpy() for its values alone, or ops for a differentiable operation."
            raise InputError("numpy.asarray", "a Tensor that requires a gradient is not an array", repr(self), remedy)
        return np.array(self.data, dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        """What `from_dlpack` of other libraries takes; see `sharing.dlpack`."""
        from .bridges.sharing import dlpack

        return dlpack(self, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        from .bridges.sharing import dlpack_device

        return dlpack_device(self)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return ops.apply_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, inputs: Any, options: Any) -> Any:
        return ops.apply_function(function, inputs, options)


def wrap(array: Array) -> Tensor:
    """`Tensor(array)`, without the cost of a constructor: for what is made at every node."""
    array.setflags(False)  # type: ignore[call-arg]
    result = _new(Tensor)
    result.data = array
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

    With share=True it lies over the very memory of the array `values`, in its dtype: nothing is copied, and nothing
    guards against writes of the array's owner between forward and backward (anomaly mode notices them by checksums).
    Shape: that of `values`. Errors: InputError when a gradient is asked for integers, or such memory cannot be shared.
    """
    from .bridges import sharing

    if share:
        result = sharing.share(values)  # type: ignore[arg-type]  # it says what it takes
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
    """Give Tensors their arithmetic (the package ops) and their `backward`, which both build on this class."""
    global ops, _backward
    ops, _backward = operations, backward


ops: Any
_backward: Callable[..., None]
