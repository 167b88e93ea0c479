"""Cost of `deterministic=True` for w1c's lattice (256 steps, f32), and a check of its promise over thread counts.

On one thread, springs scatter to their nodes by default. With determinism, or on several threads, nodes gather.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from simphys.autograd import runtime

from ..measuring import apart, markdown, turns
from .lattices import cloth, gradient, gradients

STEPS = 256
THREADS = (1, 2)


class Deterministic(NamedTuple):
    """Minima [s] over alternating repetitions."""

    threads: int
    default_s: float
    deterministic_s: float
    default: str
    deterministic: str
    """Hash of the gradients, to compare them."""


def measure(threads: int, steps: int, repetitions: int) -> Deterministic:
    """Measure both settings."""
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
    """Measure each number of threads in a separate process."""
    return [
        Deterministic(*apart(f"rollout.deterministic.measure({count}, {STEPS}, {repetitions})", threads=count))
        for count in threads
    ]


def table(rows: Sequence[Deterministic]) -> str:
    """Format a Markdown table, and state if all thread counts agree."""
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
