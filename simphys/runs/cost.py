"""Time and memory that a run took, measured in its process and recorded."""

from __future__ import annotations

import sys
import time

from simphys.autograd.kernels.compilation import compiled
from simphys.record import RunRecorder


class Cost:
    """Measures from its creation on, and adds what it measured to the recording."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._before = compiled()

    def write(self, recorder: RunRecorder) -> None:
        """Record the time [s], the part of it in which kernels were compiled [s], and the peak memory [B].

        The peak is that of the process since its start. It is left out where the system does not tell it.
        """
        attrs: dict[str, object] = {
            "seconds": time.perf_counter() - self._began,
            "compile_seconds": (compiled() - self._before).seconds,
        }
        if (peak := peak_memory()) is not None:
            attrs["peak_memory"] = peak
        recorder.write("cost", attrs=attrs)


def peak_memory() -> int | None:
    """Return the largest resident size of this process so far [B]; None where the system does not tell it."""
    if sys.platform == "win32":
        return None
    import resource

    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(size) if sys.platform == "darwin" else int(size) * 1024
