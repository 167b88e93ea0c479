"""Memory budgets of a rollout, as users write them: "all", "2GB", a fraction of the free memory, or bytes."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

import numpy as np

from ..autograd.errors import InputError

_PREFIXES = ("", "k", "M", "G", "T")
_UNITS = {(prefix + "B").lower(): 1000**power for power, prefix in enumerate(_PREFIXES)}
_UNITS |= {(prefix + "iB").lower(): 1024**power for power, prefix in enumerate(_PREFIXES) if prefix}
_REMEDY = 'Write "all", a size such as "2GB", "500 MB" or "1.5GiB", a float in (0, 1] of the free memory, or bytes.'

_MEMINFO = Path("/proc/meminfo")
_STATM = Path("/proc/self/statm")
_CONTAINER = Path("/sys/fs/cgroup")


def parse(memory: object) -> int | None:
    """Convert a budget to bytes; None for "all", which means no limit.

    A string has a unit (kB, MB, GB, TB in powers of 1000, KiB, MiB, GiB, TiB in powers of 1024, in any case). A float
    in (0, 1] is a fraction of the memory that is free now. An int, even 1, is a number of bytes. Errors: InputError.
    """
    if isinstance(memory, str):
        return None if memory.strip().lower() == "all" else _of_text(memory)
    if isinstance(memory, int | np.integer) and not isinstance(memory, bool) and memory > 0:
        return int(memory)
    if isinstance(memory, float | np.floating) and 0 < memory <= 1:
        return int(float(memory) * measure_free())
    raise InputError("memory", "the budget is a size", memory, _REMEDY)


def measure_free() -> int:
    """Bytes that are available without swapping, within a container's limit. Errors: InputError if unknown."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB$", _MEMINFO.read_text(), re.MULTILINE)
        if found:
            return min([int(found[1]) * 1024, *_left_to_container(), *_left_to_process()])
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError) as error:
        raise InputError(
            "memory",
            "a fraction needs the size of the free memory, which this system does not report",
            repr(error),
            'Give the budget as a size, such as "2GB".',
        ) from None


def format_size(size: float) -> str:
    """Format a number of bytes to two or three digits: 1.7 kB, 214 MB."""
    power = 0
    while size >= 999.5 and power < len(_PREFIXES) - 1:
        size, power = size / 1000, power + 1
    return f"{size:.{0 if size >= 9.95 or power == 0 else 1}f} {_PREFIXES[power]}B"


def _of_text(memory: str) -> int:
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-zA-Z]+)\s*", memory)
    factor = _UNITS.get(found[2].lower()) if found else None
    size = math.floor(float(found[1]) * factor) if found and factor else 0
    if size < 1:
        raise InputError("memory", "the budget is a size with a unit", memory, _REMEDY)
    return size


def _left_to_process() -> list[int]:
    """Bytes left below the limit of this process's address space (ulimit -v), if there is one."""
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return []
    return [max(0, limit - int(_STATM.read_text().split()[0]) * resource.getpagesize())]


def _left_to_container() -> list[int]:
    """Bytes left below a container's limit (cgroup v2), if there is one; reclaimable file pages count as free."""
    try:
        limit = (_CONTAINER / "memory.max").read_text().strip()
        used = int((_CONTAINER / "memory.current").read_text())
        dropped = re.search(r"^inactive_file (\d+)$", (_CONTAINER / "memory.stat").read_text(), re.MULTILINE)
    except FileNotFoundError:
        return []
    return [] if limit == "max" else [max(0, int(limit) - used + (int(dropped[1]) if dropped else 0))]
