"""Cost of a memory budget for a rollout of w1c's lattice, f32, on one thread: predicted and measured peak, time.

The measured peak is relative to the resident memory after import, initialization and warm-up. Each budget has a
separate process, in which runs with the budget and with all states stored alternate.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from simphys.autograd import runtime
from simphys.rollout import plan

from .. import machine
from ..measuring import apart, markdown, turns
from .lattices import cloth, gradient, gradients

BUDGETS: dict[int, tuple[float, ...]] = {256: (1.0, 0.3, 0.1), 4096: (1.0, 0.3, 0.1, 0.03)}
"""Budgets by horizon, relative to storing all states. 3 % of 256 steps is less than the parameters alone need."""
LONG_STEPS = 100_000
LONG_BUDGET = "256MB"


class Budget(NamedTuple):
    """Results for a budget and a horizon."""

    steps: int
    part: float
    """Budget relative to the prediction for storing all states."""
    plan: str
    predicted_mb: float
    measured_mb: float
    recomputed: float
    """Recomputed steps per step of the horizon."""
    seconds: float
    everything_s: float
    """Time with all states stored."""
    bitwise: bool
    """True if the gradients are bitwise equal to those with all states stored."""


def measure(steps: int, part: float, repetitions: int) -> Budget:
    """Measure the memory of the first gradient, and minimal times."""
    runtime.init(precision="f32", threads=1)
    of = cloth()
    gradient(of, 2)
    everything = plan(of.model, of.params, of.start, steps=steps, keep="final").predicted_bytes
    memory = int(part * everything)
    machine.reset_peak()
    before = machine.resident_mb()
    chosen = gradient(of, steps, memory=memory).plan
    measured = _megabytes(machine.peak_mb() - before)
    assert chosen is not None
    found = gradients(of)
    gradient(of, steps)
    same = gradients(of) == found
    ways = {"budget": lambda: gradient(of, steps, memory=memory), "everything": lambda: gradient(of, steps)}
    best = {name: min(seconds) for name, seconds in turns(ways, repetitions).items()}
    return Budget(
        steps,
        part,
        chosen.kind,
        chosen.predicted_bytes / 1e6,
        measured,
        chosen.recomputed_steps / steps,
        best["budget"],
        best["everything"],
        same,
    )


def collect(*, repetitions: int, budgets: Mapping[int, Iterable[float]] = BUDGETS) -> list[Budget]:
    """Measure each budget in a separate process."""
    calls = [f"rollout.memory.measure({steps}, {part}, {repetitions})" for steps in budgets for part in budgets[steps]]
    return [Budget(*apart(call)) for call in calls]


def table(rows: Iterable[Budget]) -> str:
    """Format the results as a Markdown table."""
    head = ["steps", "budget", "plan", "predicted MB", "measured MB", "measured / predicted"]
    head += ["recomputed a step", "gradient s", "time / store-everything", "gradients"]
    return markdown(head, [_cells(row) for row in rows])


def _megabytes(kernel_mb: float) -> float:
    """Convert mebibytes, as counted by the kernel, to megabytes of 10^6 bytes, as in budgets."""
    return kernel_mb * 2**20 / 1e6


def _cells(row: Budget) -> list[str]:
    return [
        f"{row.steps:,}",
        f"{row.part:.0%}",
        row.plan,
        f"{row.predicted_mb:.1f}",
        f"{row.measured_mb:.1f}",
        f"{row.measured_mb / row.predicted_mb:.2f}",
        f"{row.recomputed:.2f}",
        f"{row.seconds:.2f}",
        f"{row.seconds / row.everything_s:.2f}",
        "bitwise equal" if row.bitwise else "differ",
    ]


def measure_long(steps: int, memory: str) -> dict[str, Any]:
    """Measure one gradient of a horizon that does not fit into memory."""
    runtime.init(precision="f32", threads=1)
    of = cloth()
    gradient(of, 2)
    everything = plan(of.model, of.params, of.start, steps=steps, keep="final").predicted_bytes
    machine.reset_peak()
    before, start = machine.resident_mb(), time.perf_counter()
    chosen = gradient(of, steps, memory=memory).plan
    return {
        "seconds": time.perf_counter() - start,
        "measured_mb": _megabytes(machine.peak_mb() - before),
        "everything_mb": everything / 1e6,
        "plan": str(chosen),
    }


def collect_long(*, steps: int = LONG_STEPS, memory: str = LONG_BUDGET) -> dict[str, Any]:
    """Measure the long horizon in a separate process."""
    found: dict[str, Any] = apart(f"rollout.memory.measure_long({steps}, {memory!r})")
    return found


def long_text(found: dict[str, Any]) -> str:
    """Describe the result in a sentence."""
    return (
        f"{found['plan']}. Measured: {found['measured_mb']:.0f} MB, {found['seconds']:.0f} s. "
        f"Store-everything would take {found['everything_mb']:,.0f} MB."
    )
