"""`python -m benchmarks.rollout`: memory budgets, batches, checks for blow-ups, determinism.

`--long` adds a gradient over 100,000 steps of w1c's lattice in 256 MB, which takes minutes.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator

from .. import machine
from . import (
    batch as bench_batch,
)
from . import (
    blow_up_checks as bench_looks,
)
from . import (
    deterministic as bench_deterministic,
)
from . import (
    memory as bench_memory,
)
from .lattices import ROBOT_STEPS

REPETITIONS = 5


def sections(*, repetitions: int, long: bool) -> Iterator[str]:
    """Yield the report in Markdown, section by section."""
    yield from _section(
        "Memory budgets",
        "The gradient of w1c's lattice (16,384 nodes, 64,770 springs, f32, one thread) with the final state alone "
        "kept. A budget is a part of what store-everything is predicted to take; measured is the process's peak less "
        "what is resident before. Times are minima, store-everything taking turns in the same process.",
        bench_memory.table(bench_memory.collect(repetitions=repetitions)),
    )
    if long:
        steps, memory = bench_memory.LONG_STEPS, bench_memory.LONG_BUDGET
        yield from _section(
            f"{steps:,} steps in {memory}",
            f'One gradient over {steps:,} steps of the same lattice, memory="{memory}".',
            bench_memory.long_text(bench_memory.collect_long()),
        )
    yield from _section(
        "Batches",
        f"Lattices of 32 nodes and 94 springs, {ROBOT_STEPS} steps, f32: forward and gradient of all members at once, "
        "of one alone, and of all in a Python loop. Minima; the three take turns. Processor time, of all threads, does "
        "not depend on what else runs.",
        bench_batch.table(bench_batch.collect(steps=ROBOT_STEPS, repetitions=2 * repetitions)),
    )
    yield from _section(
        "Looks for blow-ups",
        "f32, one thread; minima, with and without looks taking turns.",
        bench_looks.table(bench_looks.collect(repetitions=10 * repetitions)),
    )
    yield from _section(
        "Determinism",
        f"The gradient of w1c's lattice over {bench_deterministic.STEPS} steps, f32. Minima, taking turns; gradients "
        "are told by a hash.",
        bench_deterministic.table(bench_deterministic.collect(repetitions=2 * repetitions)),
    )


def _section(title: str, text: str, lines: str) -> Iterable[str]:
    return f"### {title}\n", f"{text}\n", f"{lines}\n"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rollout", description=__doc__)
    parser.add_argument("--reps", type=int, default=REPETITIONS, help="repetitions; of short cases ten times as many")
    parser.add_argument("--long", action="store_true", help="also the gradient over 100,000 steps")
    options = parser.parse_args(arguments)
    print(f"{machine.describe()}; load {os.getloadavg()[0]:.1f} at the start.\n")
    for part in sections(repetitions=options.reps, long=options.long):
        print(part, flush=True)


if __name__ == "__main__":
    main()
