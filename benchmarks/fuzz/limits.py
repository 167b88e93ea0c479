"""Limits of a case: its time, its memory, the length of a message; and what is wrong with how it ended."""

from __future__ import annotations

import resource
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

SECONDS = 10.0
"""Time of the processor that a case may take: other work on the machine does not count."""
COMPILING = 60.0
"""The same for a random step, most of which goes into compiling kernels, and for a random fit."""
BYTES = 1 << 30
"""Memory that a case may take beyond that of what it is a mutation of."""
LONGEST = 2000
"""Characters of a line of a message."""


class TooLong(BaseException):
    """Error that ends a case after SECONDS."""


def seconds_of(target: str) -> float:
    """Return the time that a case of a target may take, by the target's name."""
    return COMPILING if target.startswith(("steps/", "fits/")) else SECONDS


def start_clock() -> None:
    """Make `find_fault` able to end what takes too long."""
    signal.signal(signal.SIGPROF, _stop)


def _stop(*_: Any) -> None:
    raise TooLong


def limit_memory(more: int | None) -> None:
    """Bound the memory of this process to what it has and `more` bytes; None removes the bound."""
    limit = resource.RLIM_INFINITY
    if more is not None:
        with open("/proc/self/statm") as file:
            limit = int(file.read().split()[0]) * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


def find_fault(case: Callable[[], Any], seconds: float = SECONDS) -> str:
    """Run a case; return what is wrong with how it ends, "" for a result or an error of ours."""
    from simphys.autograd.errors import InputError, StorageError

    began = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        case()
    except (InputError, StorageError) as error:
        text = str(error)
        longest = max(map(len, text.splitlines()), default=0)
        return f"a message with a line of {longest} characters: {text[:300]}" if longest > LONGEST else ""
    except TooLong:
        return f"more than {seconds:g} s:\n{traceback.format_exc(limit=-4)}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:300]}\n{traceback.format_exc(limit=-4)[:1500]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "" if time.process_time() - began < 5 * seconds else "far more than its time"


def run_interruptibly(work: Callable[[], Any]) -> None:
    """Do work of any length, interrupted after SECONDS. Errors: RuntimeError if it does not stop then."""
    began = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    with suppress(TooLong):
        work()
    signal.setitimer(signal.ITIMER_PROF, 0)
    if (took := time.process_time() - began) > 3 * SECONDS:
        raise RuntimeError(f"it stopped {took - SECONDS:.0f} s after it was interrupted")
