"""The kernels that this process compiled, or read from the compiler's cache on disk, and the time that took."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter


@dataclass
class Compilation:
    """Kernels and the time [s] to compile them, for launches on the CPU."""

    kernels: int = 0
    seconds: float = 0.0

    def __sub__(self, before: Compilation) -> Compilation:
        return Compilation(self.kernels - before.kernels, self.seconds - before.seconds)

    def __str__(self) -> str:
        return f"{self.kernels} kernel{'' if self.kernels == 1 else 's'} compiled in {self.seconds:.1f} s"


_done = Compilation()


def compiled() -> Compilation:
    """Return what was compiled so far."""
    return Compilation(_done.kernels, _done.seconds)


@contextmanager
def counted() -> Iterator[None]:
    """Count the kernel that is compiled within a `with` block."""
    began = perf_counter()
    try:
        yield
    finally:
        _done.kernels += 1
        _done.seconds += perf_counter() - began
