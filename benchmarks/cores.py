"""What several cores of this machine do at most: rates of as many processes as cores, beside that of one alone.

Two "cores" of a rented machine may be one core with two threads of hardware, which does arithmetic no faster.
"""

from __future__ import annotations

import functools
import multiprocessing
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from . import roofline

MIB = 2**20


def make_copy(size: int) -> Callable[[], object]:
    """Make a copy of arrays that take as many bytes together."""
    x, y = np.ones(size // 8, np.float32), np.zeros(size // 8, np.float32)
    return functools.partial(np.copyto, y, x)


WORK: Mapping[str, Callable[[], Callable[[], object]]] = {
    "multiply-adds in registers": lambda: roofline.bind_multiply_adds()[0],
    "copies within 0.5 MB": functools.partial(make_copy, MIB // 2),
    "copies within 256 MB": functools.partial(make_copy, 256 * MIB),
}


def find_speed_ups(processes: int, seconds: float = 1.0) -> dict[str, float]:
    """Measure for some time how much more as many processes do than one alone, for each kind of work."""
    return {name: sum(measure(name, processes, seconds)) / sum(measure(name, 1, seconds)) for name in WORK}


def measure(work: str, processes: int, seconds: float) -> list[float]:
    """Measure the calls a second of each of several processes that work at the same time."""
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(processes)
    with context.Pool(processes, _keep_barrier, (start,)) as pool:
        return pool.starmap(_count, [(work, seconds)] * processes, chunksize=1)


_shared: dict[str, Any] = {}


def _keep_barrier(barrier: Any) -> None:
    _shared["start"] = barrier


def _count(work: str, seconds: float) -> float:
    call = WORK[work]()
    call()
    _shared["start"].wait()
    begin, calls = time.perf_counter(), 0
    while (spent := time.perf_counter() - begin) < seconds:
        call()
        calls += 1
    return calls / spent
