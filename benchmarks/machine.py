"""The machine and this process (Linux): cores, processor, pinning, memory, kernel compilers."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

LIBRARY_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


COMPILERS = ("quadrants", "taichi")


def compilers() -> list[str]:
    """The kernel compilers that are installed."""
    return [name for name in COMPILERS if (found := find_spec(name)) and found.origin]


def confine(threads: int) -> None:
    """Limit this process, and libraries imported from now on, to `threads` threads; pin a single one to one core."""
    for name in LIBRARY_THREADS:
        os.environ[name] = str(threads)
    if threads == 1:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def resident_mb() -> float:
    """Current memory of this process [MB]."""
    return _status("VmRSS")


def peak_mb() -> float:
    """Largest memory of this process since the last `reset_peak` [MB]."""
    return _status("VmHWM")


def reset_peak() -> None:
    """Reset `peak_mb` to the memory that is resident now."""
    Path("/proc/self/clear_refs").write_text("5")


def describe() -> str:
    """Describe cores and processor in one line."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    widest = next((name for name in ("avx512f", "avx2", "avx") if name in flags), "no AVX")
    return f"{os.cpu_count()} cores of {models[0] if models else 'an unnamed processor'} ({widest})"


def _status(field: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    raise KeyError(field)
