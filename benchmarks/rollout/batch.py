"""Batch of small lattices (32 nodes, 94 springs, 682 steps, f32): forward and gradient, compared with a single one.

Each batch member has its own stiffness, start and velocity. The loop calls a rollout for each member in turn.
Processor time is summed over threads; unlike wall time it does not depend on other processes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from simphys.autograd import runtime

from ..measuring import apart, markdown, turns
from .lattices import gradient, robots

MEMBERS = (1, 16, 64, 256)
THREADS = (1, 2)


class Batch(NamedTuple):
    """Seconds for a number of batch members; minima over alternating repetitions."""

    threads: int
    members: int
    alone_s: float
    batch_s: float
    loop_s: float
    """Time of a Python loop over the members."""
    alone_cpu_s: float
    batch_cpu_s: float


def measure(threads: int, members: int, steps: int, repetitions: int) -> Batch:
    """Measure one member without a batch axis, the batch, and the loop."""
    runtime.init(precision="f32", threads=threads)
    alone, batch = robots(), robots(members)

    def loop() -> None:
        for _ in range(members):
            gradient(alone, steps)

    ways = {"alone": lambda: gradient(alone, steps), "batch": lambda: gradient(batch, steps), "loop": loop}
    alone_s, batch_s, loop_s = map(min, turns(ways, repetitions).values())
    del ways["loop"]
    alone_cpu_s, batch_cpu_s = map(min, turns(ways, repetitions, time.process_time).values())
    return Batch(threads, members, alone_s, batch_s, loop_s, alone_cpu_s, batch_cpu_s)


def collect(
    *, steps: int, repetitions: int, threads: Sequence[int] = THREADS, members: Sequence[int] = MEMBERS
) -> list[Batch]:
    """Measure each case in a separate process."""
    return [
        Batch(*apart(f"rollout.batch.measure({count}, {size}, {steps}, {repetitions})", threads=count))
        for count in threads
        for size in members
    ]


def table(rows: Sequence[Batch]) -> str:
    """Format the results as a Markdown table."""
    head = ["threads", "members", "one alone ms", "batch ms", "batch / one", "loop ms", "loop / batch"]
    head.append("batch / one, processor time")
    return markdown(
        head,
        [
            [
                str(row.threads),
                str(row.members),
                f"{row.alone_s * 1e3:.2f}",
                f"{row.batch_s * 1e3:.1f}",
                f"{row.batch_s / row.alone_s:.1f}",
                f"{row.loop_s * 1e3:.1f}",
                f"{row.loop_s / row.batch_s:.1f}",
                f"{row.batch_cpu_s / row.alone_cpu_s:.1f}",
            ]
            for row in rows
        ],
    )
