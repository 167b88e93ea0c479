"""Memory shared with NumPy and, by DLPack, with other array libraries.

A Tensor's memory is locked, so that what backward reads is what forward wrote. Memory with a second owner cannot be
guarded in that way: whoever shares it must not write to it between forward and backward. Such a Tensor is marked, and
anomaly mode compares checksums of it. Everything here copies unless it is asked to share.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..tensor import Array, Tensor

_CPU = (1, 0)
"""DLPack's device type and number of the CPU."""
_VERSIONED = (1, 0)
"""The first version of DLPack that can say that memory is read-only."""
_NUMPY_IS_VERSIONED = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


class ExportError(InputError, BufferError):
    """Memory that cannot be handed out as asked; a BufferError too, as the DLPack protocol wants it."""


def share(array: Array) -> Tensor:
    """A leaf Tensor over the memory of `array`, which stays writable for its owner: unguarded.

    `writable()` and kernels write to the same memory; neither detach() nor saving for backward copies it. Results of
    operations own theirs. Shape and dtype: those of `array`.
    Errors: InputError unless it is a C-contiguous, writable NumPy array of real numbers.
    """
    if type(array) not in (np.ndarray, np.memmap):
        constraint = "a NumPy array is shared, and no subclass but a memory map"
        raise InputError("share", constraint, type(array).__name__, "Copy it: tensor(values).")
    return _over("share", array)


def from_dlpack(external: Any, *, share: bool = False) -> Tensor:
    """A leaf Tensor with the values of an array of another library (PyTorch, JAX, ...): a copy.

    With share=True its memory is shared, unguarded, as by `tensor(array, share=True)`. That needs NumPy 2.1, and an
    owner that says, by DLPack 1.0, that the memory may be written to. Shape and dtype: those of `external`.
    Errors: InputError when its owner does not export it (so), or it is not memory of the CPU that NumPy understands.
    """
    try:
        array = np.from_dlpack(external, copy=False) if share and _NUMPY_IS_VERSIONED else np.from_dlpack(external)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        constraint = f"an array in memory of the CPU{' that can be shared' if share else ''}, exported by DLPack"
        found = f"{type(external).__name__}: {error}"
        remedy = "Move it to the CPU, detach it, " + ("or copy it: share=False." if share else "or convert its dtype.")
        raise InputError("from_dlpack", constraint, found, remedy) from error
    if share:
        return _over("from_dlpack", array)
    _check_dtype("from_dlpack", array.dtype)
    return Tensor(array.copy())


def dlpack(
    tensor: Tensor,
    *,
    stream: None = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """`Tensor.__dlpack__`: a capsule for `np.from_dlpack(tensor)`, `torch.from_dlpack(tensor)` and the like.

    They get a copy, which is theirs to write to. With copy=False they get the memory itself, flagged read-only:
    NumPy heeds the flag, PyTorch (2.13) does not, so that the Tensor counts as shared from then on.
    Errors: ExportError, a BufferError, for a Tensor that requires a gradient, another device than the CPU, or
    copy=False towards a consumer (or by a NumPy before 2.1) that does not know the flag.
    """
    who = "Tensor.__dlpack__"
    if tensor.requires_grad:
        constraint = "other libraries do not see the graph of a tensor that requires a gradient"
        raise ExportError(who, constraint, tensor, "Export tensor.detach().")
    if stream is not None or dl_device not in (None, _CPU):
        found = f"dl_device={dl_device}, stream={stream}"
        raise ExportError(who, f"device {_CPU} (the CPU), which has no stream", found, "Import it to the CPU first.")
    knows_flag = _NUMPY_IS_VERSIONED and max_version is not None and max_version >= _VERSIONED
    version: dict[str, Any] = {"max_version": max_version} if knows_flag else {}
    if copy is not False:
        return tensor.data.copy().__dlpack__(**version)
    if not knows_flag:
        found = f"max_version={max_version}, NumPy {np.__version__}"
        constraint = "memory is shared with consumers of DLPack 1.0, which can be read-only"
        raise ExportError(who, constraint, found, "Let it be copied (copy=None).")
    tensor._shared = True
    return tensor.data.__dlpack__(**version)


def dlpack_device(tensor: Tensor) -> tuple[int, int]:
    """`Tensor.__dlpack_device__`: the CPU."""
    return _CPU


def _over(who: str, array: Array) -> Tensor:
    """A Tensor over memory that another owns."""
    _check_dtype(who, array.dtype)
    if not (array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative):
        found = f"{array.dtype.str} with strides {array.strides} for shape {array.shape}"
        constraint = "shared memory is C-contiguous, aligned and of native byte order"
        raise InputError(who, constraint, found, "Let it be copied, or share np.ascontiguousarray(array).")
    if not array.flags.writeable:  # a kernel would not ask; with a memory map the process would end
        remedy = "Let it be copied; np.memmap(..., mode='c') gives a memory map of one's own to write to."
        raise InputError(who, "shared memory is writable, since kernels write to it", "a read-only array", remedy)
    tensor = Tensor(array.view(np.ndarray))
    tensor._shared = True
    return tensor


def _check_dtype(who: str, dtype: npt.DTypeLike) -> None:
    if np.dtype(dtype).kind not in "fiub":
        raise InputError(who, "elements are floats, integers or booleans", str(dtype), "Convert it first.")
