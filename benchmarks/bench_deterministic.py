"""What `deterministic=True` costs w1c's lattice (256 steps, f32), and whether it holds across thread counts.

On one thread springs scatter into their nodes, unless it is asked for: then, and on more threads, nodes gather.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from simphys.autograd import runtime

from .lattices import cloth, gradient, gradients
from .measuring import apart, markdown, turns

STEPS = 256
THREADS = (1, 2)


class Deterministic(NamedTuple):
    """Minima [s] of repetitions that take turns."""

    threads: int
    default_s: float
    deterministic_s: float
    default: str
    deterministic: str
    """What tells gradients apart, a hash."""


def measure(threads: int, steps: int, repetitions: int) -> Deterministic:
    """Both ways."""
    runtime.init(precision="f32", threads=threads)
    of = cloth()

    def digest(*, deterministic: bool) -> str:
        gradient(of, steps, deterministic=deterministic)
        return hashlib.sha256(b"".join(gradients(of))).hexdigest()[:8]

    hashes = [digest(deterministic=chosen) for chosen in (False, True)]
    ways = {
        "default": lambda: gradient(of, steps),
        "deterministic": lambda: gradient(of, steps, deterministic=True),
    }
    best = {name: min(seconds) for name, seconds in turns(ways, repetitions).items()}
    return Deterministic(threads, best["default"], best["deterministic"], *hashes)


def collect(*, repetitions: int, threads: Sequence[int] = THREADS) -> list[Deterministic]:
    """In processes of their own."""
    return [
        Deterministic(*apart(f"bench_deterministic.measure({count}, {STEPS}, {repetitions})", threads=count))
        for count in threads
    ]


def table(rows: Sequence[Deterministic]) -> str:
    """Markdown, and in words whether all thread counts agree."""
    head = ["threads", "gradient ms", "deterministic ms", "added", "gradients", "deterministic gradients"]
    lines = markdown(
        head,
        [
            [
                str(row.threads),
                f"{row.default_s * 1e3:.0f}",
                f"{row.deterministic_s * 1e3:.0f}",
                f"{row.deterministic_s / row.default_s - 1:+.0%}",
                row.default,
                row.deterministic,
            ]
            for row in rows
        ],
    )
    same = len({row.deterministic for row in rows}) == 1
    return f"{lines}\n\nDeterministic gradients are {'bitwise equal' if same else 'NOT equal'} on all thread counts."
