"""`Tensor`: an array with a gradient, the node that made it, and a version that guards what backward will read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .errors import InputError
from .mode import switch

if TYPE_CHECKING:
    from .function import Context

Array = npt.NDArray[Any]


class Tensor:
    """An array in a differentiable computation.

    `data` is the memory, C-contiguous and locked against writing; use `with x.writable() as a:` to change it, which
    raises the version. Arithmetic follows NumPy's broadcasting and promotion; scalars of Python do not widen a dtype.
    """

    grad: Tensor | None = None
    grad_fn: Context | None = None
    output_index = 0
    requires_grad = False
    _accumulator: Context | None = None
    __array_ufunc__ = None  # NumPy leaves `array * tensor` to __rmul__
    __hash__ = object.__hash__

    def __init__(self, array: Array) -> None:
        """Take over `array` (C-contiguous, owning its memory) and lock it. Users call `tensor(...)`, which copies."""
        array.setflags(False)  # type: ignore[call-arg]  # write=False, which by name takes 0.2 us more
        self.data = array
        self._version = [0]

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
        return self._version[0]

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
        self.requires_grad = requires_grad
        return self

    def detach(self) -> Tensor:
        """A Tensor over the same memory and version, cut from the graph."""
        alias = Tensor(self.data)
        alias._version = self._version
        return alias

    def clone(self) -> Tensor:
        """A differentiable copy."""
        return ops.clone(self)

    def retain_grad(self) -> None:
        """Keep the gradient of this non-leaf in `.grad` at the next backward."""
        if self.grad_fn is not None:
            retained = self.grad_fn._retained
            if retained is None:
                retained = self.grad_fn._retained = {}
            retained[self.output_index] = self

    def backward(self, gradient: Tensor | npt.ArrayLike | None = None, *, retain_graph: bool = False) -> None:
        """Add to `.grad` of every leaf the gradient of sum(gradient * self); a scalar needs no `gradient`."""
        from .graph import backward

        backward((self,), (gradient,), retain_graph=retain_graph)

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
        self._version[0] += 1
        self.data.flags.writeable = True
        view = self.data.view()
        self.data.flags.writeable = False
        try:
            yield view
        finally:
            view.flags.writeable = False

    def raise_version(self) -> None:
        """Tell that a kernel wrote to `data`."""
        self._version[0] += 1

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
        return ops.reshape(self, shape[0] if len(shape) == 1 else shape)  # type: ignore[arg-type]

    @property
    def T(self) -> Tensor:
        return ops.transpose(self)


def tensor(values: npt.ArrayLike, *, requires_grad: bool = False, dtype: npt.DTypeLike | None = None) -> Tensor:
    """A leaf Tensor over a copy of `values`; reals take the precision of `runtime.init` (f64 if not called).

    Shape: that of `values`. Errors: InputError when a gradient is asked for integers.
    """
    from . import runtime

    array = np.asarray(values)
    if dtype is None and array.dtype.kind == "f":
        dtype = runtime.real_dtype()
    result = Tensor(np.array(array, dtype=dtype, order="C", copy=True))
    return result.requires_grad_() if requires_grad else result


from . import ops  # noqa: E402 - the rules need the class that they extend
