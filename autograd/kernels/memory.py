"""`Memory`: an array whose writes are counted, and that can share its memory with arrays of other libraries.

The array is locked against writing, so that backward reads the values of forward. Memory with a second owner
cannot be guarded in that way: its owners must not write to it between forward and backward. It is marked, and anomaly
mode compares checksums of it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..mode import switch

Array = npt.NDArray[Any]

CPU = (1, 0)
"""DLPack's device type and number of the CPU."""
NUMPY_IS_VERSIONED = np.lib.NumpyVersion(np.__version__) >= "2.1.0"
"""True if NumPy speaks DLPack 1.0, the first version that can mark memory as read-only."""
_VERSIONED = (1, 0)


class ExportError(InputError, BufferError):
    """Memory cannot be exported as requested; also a BufferError, as the DLPack protocol demands."""


class Held:
    """Arrays without a version that a bound launch goes on to write: they cannot become Tensors while it lives.

    `ids` has those of all these arrays, and of the arrays that own their memory, with the number of such launches.
    """

    ids: dict[int, int] = {}

    def __init__(self, values: Any, written: Iterable[Array]) -> None:
        self._values = values
        arrays = [each for each in written if isinstance(each, np.ndarray)]  # one of a device becomes no Tensor
        self._written = [array for each in arrays for array in (each, each.base) if isinstance(array, np.ndarray)]
        for array in self._written:
            self.ids[id(array)] = self.ids.get(id(array), 0) + 1

    def __del__(self) -> None:
        for array in self._written:
            self.ids[id(array)] -= 1
            if not self.ids[id(array)]:
                del self.ids[id(array)]


held = Held.ids


class Memory:
    """An array, C-contiguous and locked against writing, with a version that each write raises."""

    __slots__ = ("__weakref__", "_shared", "_version", "data")

    data: Array
    _version: list[int] | None  # [writes, switch.writes then, open blocks], one list for all aliases; None: no writes
    _shared: bool  # True if others may write to the memory

    def __init__(self, array: Array) -> None:
        """Take over `array` (C-contiguous, owning its memory) and lock it; one that a bound launch writes is copied."""
        if id(array) in held:
            array = array.copy()
        array.setflags(False)  # type: ignore[call-arg]  # write=False, which by name takes 0.2 us more
        self.data = array
        self._version = None
        self._shared = False

    @classmethod
    def over(cls, source: str, array: Array) -> Self:
        """Share the memory of `array`, which stays writable for its owner: unguarded.

        `writable()` and kernels write to the same memory.
        Errors: InputError unless it is a C-contiguous, writable NumPy array of real numbers, or a memory map of one.
        """
        if type(array) not in (np.ndarray, np.memmap):
            constraint = "a NumPy array is shared, and no subclass but a memory map"
            raise InputError(source, constraint, type(array).__name__, "Copy it: tensor(values).")
        check_dtype(source, array.dtype)
        if not (array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative):
            found = f"{array.dtype.str} with strides {array.strides} for shape {array.shape}"
            constraint = "shared memory is C-contiguous, aligned and of native byte order"
            raise InputError(source, constraint, found, "Let it be copied, or share np.ascontiguousarray(array).")
        if not array.flags.writeable:  # a kernel would not ask; with a memory map the process would end
            remedy = "Let it be copied; np.memmap(..., mode='c') gives a memory map of one's own to write to."
            raise InputError(
                source, "shared memory is writable, since kernels write to it", "a read-only array", remedy
            )
        memory = cls(array.view(np.ndarray))
        memory._shared = True
        return memory

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
        """Number of writes to the memory."""
        return self._version[0] if self._version else 0

    @property
    def requires_grad(self) -> bool:
        """True if gradients flow to it, as they may to a Tensor."""
        return False

    @property
    def grad_fn(self) -> Any:
        """The node that computed it, if a recorded operation did."""
        return None

    def detach(self) -> Self:
        """Return an alias: the same memory and version, without a gradient."""
        alias = type(self)(self.data)
        alias._version = self._versions()
        if self._shared:
            alias._shared = True
        return alias

    def raise_version(self) -> None:
        """Count a write to `data`."""
        switch.writes += 1
        version = self._versions()
        version[0] += 1
        version[1] = switch.writes

    def _versions(self) -> list[int]:
        if self._version is None:
            self._version = [0, 0, 0]
        return self._version

    @property
    def is_open(self) -> bool:
        """True within a `writable()` block of this memory."""
        return self._version is not None and self._version[2] > 0

    @contextmanager
    def writable(self) -> Iterator[Array]:
        """Give the values as a writable view inside a `with` block; raises the version.

        Errors: InputError for a result that was computed while recording: backward would use the old derivative; at the
        end of the block, if parts of the view are still in use, which nobody could lock.
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
        root = np.asarray(memoryview(self.data))  # type: ignore[arg-type]  # the base of all views that follow
        self.data.flags.writeable = False
        view = root.view()
        references = sys.getrefcount(root)
        version = self._versions()
        version[2] += 1
        switch.open += 1
        try:
            yield view
        finally:
            view.flags.writeable = False
            version[2] -= 1
            switch.open -= 1
        if sys.getrefcount(root) > references:
            raise InputError(
                "Tensor.writable",
                "views of the values end with the block, since they stay writable",
                "one that is still in use",
                "Copy it, or `del` the variable that holds it (of a loop, too) before the block ends.",
            )

    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Export a capsule for `np.from_dlpack(tensor)`, `torch.from_dlpack(tensor)` and the like.

        They get a copy, which they may write to. With copy=False they get the memory itself, flagged read-only: NumPy
        heeds the flag, PyTorch (2.13) does not, so the Tensor counts as shared from then on.
        Errors: ExportError, a BufferError, for a Tensor that requires a gradient, a device other than the CPU, or
        copy=False towards a consumer (or by a NumPy before 2.1) without that flag.
        """
        source = "Tensor.__dlpack__"
        if self.requires_grad:
            constraint = "other libraries do not see the graph of a tensor that requires a gradient"
            raise ExportError(source, constraint, self, "Export tensor.detach().")
        if stream is not None or dl_device not in (None, CPU):
            found = f"dl_device={dl_device}, stream={stream}"
            constraint = f"device {CPU} (the CPU), which has no stream"
            raise ExportError(source, constraint, found, "Import it to the CPU first.")
        has_flag = NUMPY_IS_VERSIONED and max_version is not None and max_version >= _VERSIONED
        version: dict[str, Any] = {"max_version": max_version} if has_flag else {}
        if copy is not False:
            return self.data.copy().__dlpack__(**version)
        if not has_flag:
            found = f"max_version={max_version}, NumPy {np.__version__}"
            constraint = "memory is shared with consumers of DLPack 1.0, which can be read-only"
            raise ExportError(source, constraint, found, "Let it be copied (copy=None).")
        self._shared = True
        return self.data.__dlpack__(**version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU


def check_dtype(source: str, dtype: npt.DTypeLike) -> None:
    """Raise InputError unless elements are real numbers."""
    if np.dtype(dtype).kind not in "fiub":
        raise InputError(source, "elements are floats, integers or booleans", str(dtype), "Convert it first.")
