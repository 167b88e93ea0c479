"""Cost per call of `pipe` and `compose` compared with nested calls, for functions that return their argument."""

from __future__ import annotations

import statistics
import timeit
from collections.abc import Iterable

from ..measuring import apart, markdown, summary

COUNTS = (1, 3, 5)
SETUP = """
from simphys.autograd import compose, pipe
def f(x): return x
x = 1.0
composed = compose({functions})
"""

Times = dict[str, list[float]]
"""Microseconds per call, one for each repetition, by name of the call."""


def calls(count: int) -> dict[str, str]:
    """List the ways to apply `count` functions to x, and the call that makes the composed one."""
    functions = ", ".join(["f"] * count)
    return {
        "nested": "f(" * count + "x" + ")" * count,
        "pipe": f"pipe(x, {functions})",
        "composed": "composed(x)",
        "compose": f"compose({functions})",
    }


def measure(loops: int, repetitions: int) -> list[Times]:
    """Measure each of COUNTS; the ways alternate, with `loops` calls each time."""
    found = []
    for count in COUNTS:
        setup = SETUP.format(functions=", ".join(["f"] * count))
        timers = {name: timeit.Timer(call, setup) for name, call in calls(count).items()}
        times: Times = {name: [] for name in timers}
        for _ in range(repetitions):
            for name, timer in timers.items():
                times[name].append(timer.timeit(loops) / loops * 1e6)
        found.append(times)
    return found


def collect(*, loops: int, repetitions: int = 51) -> list[Times]:
    """Measure all ways in a separate process."""
    return [dict(times) for times in apart(f"graph.calls.measure({loops}, {repetitions})")]


def table(found: list[Times]) -> str:
    """Format microseconds per call as a Markdown table; for pipe and compose, minus the nested call's."""
    head = ["functions", "nested us", "pipe less nested us", "composed less nested us", "making it, compose(...) us"]
    return markdown(head, _rows(found))


def _rows(found: list[Times]) -> Iterable[list[str]]:
    for count, times in zip(COUNTS, found, strict=True):
        extra = [less(times[name], times["nested"]) for name in ("pipe", "composed")]
        yield [str(count), summary(times["nested"], 3), *extra, summary(times["compose"])]


def less(times: list[float], others: list[float]) -> str:
    """Format the median of the differences per repetition, with the difference of the minima in parentheses."""
    differences = [a - b for a, b in zip(times, others, strict=True)]
    return f"{statistics.median(differences):.3f} ({min(times) - min(others):.3f})"
