"""Plan of a rollout's backward pass, made before it runs: the states to store, given the memory, at the least cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from ..autograd.errors import InputError
from ..autograd.look.html import html_table
from . import schedule
from .budget import format_size

Kind = Literal["all", "segments", "binomial", "stateless", "rebuilt"]
Strategy = Literal["stored", "stateless", "rebuilt"]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The states that a rollout stores, and its forward and reverse sweeps as actions of `schedule`.

    It stores every state ("all"), the state at the start of each block of steps ("segments") or of some blocks
    ("binomial"). Or it stores no state, because backward needs none ("stateless") or recomputes the states backward in
    time ("rebuilt").
    """

    steps: int
    """Number of steps of the horizon."""
    block: int
    """Steps in a block; the last block may be shorter."""
    checkpoints: int
    """States that are stored at once, including the initial one; 0 if every state is stored."""
    predicted_bytes: int
    """Peak memory [B] of forward and backward."""
    strategy: Strategy = "stored"
    """Source of the states in the reverse sweep."""
    rolls: bool = False
    """True if the segment holds one state at a time, which nothing but the next step and the end reads."""

    @property
    def kind(self) -> Kind:
        """Kind of the plan, by the states that it stores."""
        if self.strategy != "stored":
            return self.strategy
        if self.blocks == 1:
            return "all"
        return "segments" if self.checkpoints == self.blocks - 1 else "binomial"

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return -(-self.steps // self.block)

    @property
    def recomputed_steps(self) -> int:
        """Number of steps that the reverse sweep computes again. Exact: a shorter last block is never among them."""
        if self.strategy != "stored":
            return self.steps if self.strategy == "rebuilt" else 0
        return self.block * schedule.count_recomputed(self.blocks, self.checkpoints)

    def span(self, block: int) -> tuple[int, int]:
        """Return (first step, number of steps) of a block."""
        first = block * self.block
        return first, min(self.block, self.steps - first)

    def forward(self) -> Iterator[schedule.Action]:
        """Actions of the forward sweep. At its end all checkpoints are stored, and the last block is recorded."""
        if self.strategy != "stored":
            return iter([schedule.Advance(0, self.blocks)])
        return schedule.forward(self.blocks, self.checkpoints)

    def reverse(self) -> Iterator[schedule.Action]:
        """Actions of the reverse sweep, which follows the forward sweep and frees its checkpoints."""
        if self.strategy != "stored":
            return iter([schedule.Reverse(block) for block in reversed(range(self.blocks))])
        return schedule.reverse(self.blocks, self.checkpoints)

    def describe(self) -> str:
        """Describe the plan in one line."""
        predicted = f"{format_size(self.predicted_bytes)} predicted"
        if self.strategy != "stored":
            stored = "no state stored" if self.strategy == "stateless" else "states computed backward in time"
            return f"{self.strategy}: {stored}, blocks of {_count(self.block, 'step')}, {predicted}, {_cost(self)}"
        if self.kind == "all":
            return f"all: {_count(self.steps, 'step')} stored, {predicted}, nothing recomputed"
        stored = f"{_count(self.checkpoints, 'checkpoint')}, blocks of {_count(self.block, 'step')}"
        return f"{self.kind}: {stored}, {predicted}, {_cost(self)}"

    __str__ = describe

    def _repr_html_(self) -> str:
        rows = [
            ("kind", self.kind),
            ("steps", f"{self.steps:,}, in blocks of {self.block:,}"),
            ("checkpoints", str(self.checkpoints)),
            ("predicted peak", format_size(self.predicted_bytes)),
            ("steps computed again", f"{self.recomputed_steps:,}"),
        ]
        return html_table("Plan of a rollout's backward pass", ("", ""), rows)


def make_plan(
    *, steps: int, memory: int | None, checkpoint_bytes: int, segment_bytes: Callable[[int], int], fixed_bytes: int
) -> Plan:
    """Make the plan that recomputes the fewest steps within `memory` [B]; None means no limit, and stores all states.

    `checkpoint_bytes`: size of one stored state. `segment_bytes(k)`, which grows with k: size of the states of a block
    of k steps and of the workspace of its reversal. `fixed_bytes`: everything else. With N blocks of k steps and c
    checkpoints the peak is fixed_bytes + c checkpoint_bytes + segment_bytes(k), and k t(N, c) steps are recomputed (see
    `schedule`).

    The smallest k that makes N blocks, ceil(steps / N), is the best one for this N. There are fewer than
    2 sqrt(steps) such k, and each is tried with as many checkpoints as fit. Errors: InputError with the smallest budget
    that would do.
    """

    def plan(block: int, checkpoints: int) -> Plan:
        predicted = fixed_bytes + checkpoints * checkpoint_bytes + segment_bytes(block)
        return Plan(steps=steps, block=block, checkpoints=checkpoints, predicted_bytes=predicted)

    everything = plan(steps, 0)
    if memory is None or everything.predicted_bytes <= memory:
        return everything
    best: tuple[int, int, int] | None = None  # recomputed steps, block, checkpoints
    for blocks, block in _divisions(steps):
        room = memory - fixed_bytes - segment_bytes(block)
        checkpoints = min(room // checkpoint_bytes, blocks - 1)
        if checkpoints < 1:
            break  # longer blocks take more
        recomputed = block * schedule.count_recomputed(blocks, checkpoints)
        if best is None or recomputed <= best[0]:  # prefer longer blocks at equal cost
            best = recomputed, block, checkpoints
    if best is not None:
        return plan(*best[1:])
    least = min(everything, plan(1, 1), key=_peak)
    quick = min([everything, *(plan(block, blocks - 1) for blocks, block in _divisions(steps))], key=_peak)
    enough = " or ".join([f"memory={each.predicted_bytes} ({_cost(each)})" for each in dict.fromkeys([least, quick])])
    raise InputError(
        "rollout, memory",
        f"the budget holds the fixed part ({format_size(fixed_bytes)}), a checkpoint and a block of one step",
        f"{memory} bytes",
        f"Give at least {enough}; a shorter horizon or fewer kept states take less.",
    )


def _divisions(steps: int) -> Iterator[tuple[int, int]]:
    """Iterate over (N, smallest k that makes N blocks) for all N > 1, in ascending order of k."""
    block = 1
    while block < steps:
        blocks = -(-steps // block)
        yield blocks, block
        block = -(-steps // (blocks - 1))  # the smallest k that makes at most blocks - 1 blocks


def _peak(plan: Plan) -> int:
    return plan.predicted_bytes


def _cost(plan: Plan) -> str:
    each = plan.recomputed_steps / plan.steps
    number = f"{each:.2g}" if each < 99.5 else f"{each:.0f}"
    return f"{number} recomputation{'' if number == '1' else 's'} a step"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
