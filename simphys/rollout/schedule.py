"""Optimal binomial schedule: the blocks of steps that a reverse sweep recomputes, and the stored states it starts from.

The horizon is divided into blocks 0 ... N-1. A checkpoint is a stored state at the start of a block; **the initial
state is one of the c checkpoints**. Besides the checkpoints there is memory for all states of one block, which its
reversal reads. After the forward sweep it holds the last block; every other block is recomputed from a checkpoint
before it.

With repetition number r, the smallest for which N <= β(c, r), where β(c, r) = (c+r)! / (c! r!), the fewest blocks that
must be recomputed are

    t(N, c) = r N - β(c+1, r-1)

and a reversal that attains it takes checkpoints of the first block, then of block m, where

    m = N - β(c-1, r-1) - β(c-2, r-1), but at least β(c, r-2) and at most β(c, r-1),

reverses blocks m ... N-1 with the other c-1 checkpoints, and then blocks 0 ... m-1 with all c. Among the optimal
choices, this m stores the fewest states. No block is computed more than r + 1 times in total.

Two well-known schedules are special cases: c = N-1 gives uniform segments (each block but the last is recomputed once),
and N = 1, c = 0 stores every state and recomputes nothing.

Source: A. Griewank, A. Walther, Algorithm 799: revolve, ACM Transactions on Mathematical Software 26 (2000) 19-45. Its
count of forward steps, without those that are reversed at once, is the t above: an executor that sweeps forward and
then recomputes each block before its reversal computes N + t blocks.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from ..autograd.errors import InputError


@dataclass(frozen=True, slots=True)
class _OfBlock:
    block: int


class Store(_OfBlock):
    """Copy the current state, at the start of `block`, into a checkpoint."""


class Restore(_OfBlock):
    """Make the checkpoint at the start of `block` the current state."""


class Free(_OfBlock):
    """Delete the checkpoint at the start of `block`: it is not restored again."""


@dataclass(frozen=True, slots=True)
class Advance:
    """Advance from the start of block `first`, the current state, to the start of block `last`; store no states."""

    first: int
    last: int


class Record(_OfBlock):
    """Advance through `block` from the current state, and keep all its states until the block is reversed."""


class Reverse(_OfBlock):
    """Reverse the recorded `block`; its states are then not needed any more."""


Action = Store | Restore | Free | Advance | Record | Reverse


def forward(blocks: int, checkpoints: int) -> Iterator[Action]:
    """The forward sweep: it ends with the last block recorded and all checkpoints in use; of too many, blocks - 1 are.

    Errors: InputError for less than one block, or no checkpoint for more than one block.
    """
    _check(blocks, checkpoints)
    return _descend([], 0, blocks, checkpoints)


def reverse(blocks: int, checkpoints: int) -> Iterator[Action]:
    """The reverse sweep, from the state in which `forward` ends: all blocks from the last to the first."""
    _check(blocks, checkpoints)
    stored: list[int] = []
    for _ in _descend(stored, 0, blocks, checkpoints):
        pass  # fills `stored` with the blocks that have checkpoints
    yield Reverse(blocks - 1)
    for block in reversed(range(blocks - 1)):
        nearest = stored[-1]
        yield Restore(nearest)
        if nearest == block:
            yield Free(stored.pop())
            yield Record(block)
        else:
            yield from _descend(stored, nearest, block + 1, checkpoints)
        yield Reverse(block)


def count_recomputed(blocks: int, checkpoints: int) -> int:
    """Number of blocks t(N, c) that the reverse sweep computes again; the last block is never among them."""
    _check(blocks, checkpoints)
    r = _repetitions(blocks, checkpoints)
    return r * blocks - _beta(checkpoints + 1, r - 1)


def _descend(stored: list[int], first: int, end: int, checkpoints: int) -> Iterator[Action]:
    """Advance from the current state at `first`, take the checkpoints for the reversal, and record block end - 1.

    `stored` lists the blocks of all checkpoints in use; the last of them may be `first` itself.
    """
    while end - first > 1:
        if not (stored and stored[-1] == first):
            stored.append(first)
            yield Store(first)
        middle = first + _split(end - first, checkpoints - len(stored) + 1)
        yield Advance(first, middle)
        first = middle
    yield Record(first)


@functools.lru_cache(maxsize=1024)  # the same few arguments recur all the time
def _split(blocks: int, checkpoints: int) -> int:
    """Find block m of the next checkpoint; the first of `checkpoints` is at the start of these `blocks` >= 2."""
    r = _repetitions(blocks, checkpoints)
    m = blocks - _beta(checkpoints - 1, r - 1) - _beta(checkpoints - 2, r - 1)
    return min(max(m, _beta(checkpoints, r - 2), 1), _beta(checkpoints, r - 1))


def _repetitions(blocks: int, checkpoints: int) -> int:
    """Find the smallest r with β(checkpoints, r) >= blocks; by bisection, as r = blocks - 1 with one checkpoint."""
    high = 1
    while _beta(checkpoints, high) < blocks:
        high *= 2
    return bisect_left(range(high), blocks, key=lambda r: _beta(checkpoints, r))


def _beta(c: int, r: int) -> int:
    """Largest number of blocks that c checkpoints and r repetitions can reverse.

    β(c, r) = (c+r)! / (c! r!), zero if c or r is negative.
    """
    return math.comb(c + r, r) if c >= 0 and r >= 0 else 0


def _check(blocks: int, checkpoints: int) -> None:
    if blocks < 1:
        raise InputError("schedule", "there is at least one block", blocks, "Give blocks >= 1.")
    if checkpoints < min(1, blocks - 1):
        constraint = "the initial state of more than one block is a checkpoint"
        raise InputError("schedule", constraint, checkpoints, "Give checkpoints >= 1.")
