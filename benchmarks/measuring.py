"""Common parts of benchmarks: separate processes, medians with minima, Markdown tables."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .compare import ROOT
from .graph.chains import Runs

Nodes = Sequence[Sequence[float]]
"""Microseconds per node of [apply, backward, both], one for each repetition."""


def apart(call: str, *, threads: int = 1, **environment: str) -> Any:
    """Evaluate `folder.module.function(...)` of benchmarks in a process limited to `threads`; return it via JSON."""
    program = (
        f"import json; from benchmarks import machine; machine.confine({threads}); "
        f"import benchmarks.{call.partition('(')[0].rpartition('.')[0]}; print(json.dumps(benchmarks.{call}))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],  # importing quadrants gives a warning
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def turns(
    ways: Mapping[str, Callable[[], object]], repetitions: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Measure the seconds of each way in each repetition; the ways alternate, after one call of each as warm-up."""
    for way in ways.values():
        way()
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repetitions):
        for name, way in ways.items():
            start = clock()
            way()
            found[name].append(clock() - start)
    return found


def joined(rounds: Iterable[Runs]) -> Runs:
    """Merge the repetitions of all rounds."""
    all_runs: Runs = {}
    for runs in rounds:
        for name, repetitions in runs.items():
            all_runs.setdefault(name, []).extend(repetitions)
    return all_runs


def summary(values: Sequence[float], digits: int = 2) -> str:
    """Format the median, with the minimum in parentheses."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f})"


def cells(nodes: Nodes) -> list[str]:
    """Format apply, backward and both."""
    return [summary(column) for column in zip(*nodes, strict=True)]


def less(nodes: Nodes, others: Nodes) -> list[str]:
    """Format apply, backward and both: the difference of the medians, with that of the minima in parentheses."""
    pairs = zip(zip(*nodes, strict=True), zip(*others, strict=True), strict=True)
    return [f"{statistics.median(a) - statistics.median(b):.2f} ({min(a) - min(b):.2f})" for a, b in pairs]


def ratio(nodes: Nodes, others: Nodes) -> str:
    """Ratio of the medians of apply and backward together."""
    return f"{_both(nodes) / _both(others):.2f}"


def _both(nodes: Nodes) -> float:
    return statistics.median([node[2] for node in nodes])


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table."""
    return "\n".join(["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)])
