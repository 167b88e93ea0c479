"""Cost of the checks of a rollout for a blow-up: f32, one thread.

Runs with and without checks alternate. The checks are also timed by themselves, which has less noise.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from simphys.autograd import runtime
from simphys.rollout.run import Monitor, Sweep

from ..measuring import apart, markdown, turns
from . import lattices

CASES = {"pendulum": 29_000, "robots": 682, "robots:256": 682, "cloth": 256}
"""Steps by case: a factory of `lattices`, with its batch members."""
NAMES = {
    "pendulum": "one spring",
    "robots": "lattice of 32 nodes",
    "robots:256": "256 of these in a batch",
    "cloth": "lattice of 16,384 nodes",
}


class Looks(NamedTuple):
    """Minima [s] of forward alone and of the gradient; `share` is the checks' median fraction of forward."""

    case: str
    steps: int
    forward_s: float
    forward_without_s: float
    gradient_s: float
    gradient_without_s: float
    share: float


def measure(case: str, steps: int, repetitions: int) -> Looks:
    """Measure one case."""
    runtime.init(precision="f32", threads=1)
    name, _, members = case.partition(":")
    of = getattr(lattices, name)(*[int(members)] if members else [])
    forward: Callable[[], object] = functools.partial(lattices.forward, of, steps)
    gradient: Callable[[], object] = functools.partial(lattices.gradient, of, steps)
    ways = {"forward": forward, "without": _without(forward)}
    gradients = {"gradient": gradient, "without": _without(gradient)}
    forward_s, forward_without_s = map(min, turns(ways, repetitions).values())
    gradient_s, gradient_without_s = map(min, turns(gradients, repetitions).values())
    share = statistics.median(_shares(forward, repetitions))
    return Looks(case, steps, forward_s, forward_without_s, gradient_s, gradient_without_s, share)


def _without(run: Callable[[], object]) -> Callable[[], None]:
    """Wrap a run such that it has no checks, and each block runs in one piece."""

    def advance(_watch: Monitor, *arguments: Any, **options: Any) -> Any:
        return Sweep._advance(*arguments, **options)

    def unwatched() -> None:
        with _instead(Monitor, "advance", advance):
            run()

    return unwatched


def _shares(run: Callable[[], object], repetitions: int) -> Iterator[float]:
    """Measure the fraction of the time spent in checks."""
    look, spent = Monitor._check, 0.0

    def timed(*arguments: Any) -> None:
        nonlocal spent
        start = time.perf_counter()
        look(*arguments)
        spent += time.perf_counter() - start

    with _instead(Monitor, "_check", timed):
        for _ in range(repetitions):
            spent, start = 0.0, time.perf_counter()
            run()
            yield spent / (time.perf_counter() - start)


@contextmanager
def _instead(of: type, name: str, method: Callable[..., Any]) -> Iterator[None]:
    own = getattr(of, name)
    setattr(of, name, method)
    try:
        yield
    finally:
        setattr(of, name, own)


def collect(*, repetitions: int) -> list[Looks]:
    """Measure each case in a separate process."""
    return [
        Looks(*apart(f"rollout.blow_up_checks.measure({case!r}, {steps}, {repetitions})"))
        for case, steps in CASES.items()
    ]


def table(rows: Sequence[Looks]) -> str:
    """Format the results as a Markdown table."""
    head = ["system", "steps", "forward ms", "without looks", "added", "gradient ms", "without looks", "added"]
    return markdown([*head, "looks' own clock, part of forward"], [_cells(row) for row in rows])


def _cells(row: Looks) -> list[str]:
    cells = [NAMES[row.case], f"{row.steps:,}"]
    for seconds, without in ((row.forward_s, row.forward_without_s), (row.gradient_s, row.gradient_without_s)):
        cells += [f"{seconds * 1e3:.2f}", f"{without * 1e3:.2f}", f"{seconds / without - 1:+.1%}"]
    return [*cells, f"{row.share:.1%}"]
