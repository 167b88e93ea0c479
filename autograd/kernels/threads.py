"""The number of threads of a CPU: what `threads="auto"` stands for, and which numbers are admitted."""

from __future__ import annotations

import os
from typing import Literal, cast

from ..errors import InputError

Threads = int | Literal["auto"]

MOST_AUTOMATIC = 8
"""Most threads that "auto" takes: launches of most scenes are too short for more, and each needs memory of its own."""

PER_CORE = 4
"""Most threads for each core; MOST_AUTOMATIC may always be asked for, so that scenes run on small machines."""

VARIABLE = "SIMPHYS_THREADS"
"""Environment variable with the number that "auto" stands for, as for processes that share a machine."""


def count_threads(asked: Threads) -> int:
    """Return a number of threads: the one asked for, or for "auto" that of the environment, else of free cores.

    Errors: InputError for a number below 1, or of more threads than could be of use.
    """
    source, found = "runtime.init", cast(object, asked)
    if asked == "auto" and (given := os.environ.get(VARIABLE)):
        source, found = f"environment variable {VARIABLE}", int(given) if given.isdigit() else given
    elif asked == "auto":
        return min(count_cores(), MOST_AUTOMATIC)
    if not isinstance(found, int) or found < 1:
        raise InputError(source, "threads is at least 1", found, "Give the number of CPU threads, or 'auto'.")
    cores = os.cpu_count() or 1
    if found > max(PER_CORE * cores, MOST_AUTOMATIC):
        constraint = f"threads is at most {PER_CORE} times the cores of this machine, {cores}"
        raise InputError(source, constraint, found, "More threads than cores make nothing faster.")
    return found


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux
    return len(affinity(0)) if affinity else os.cpu_count() or 1
