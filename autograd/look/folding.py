"""Repetition in a list of nodes: stretches where a loop made the same nodes, joined in the same way.

Nodes are compared by a key (name, shapes) and by the sources of their inputs. Two successive steps of a loop agree if
each input moves on by a constant stride. The stride is one step for an input from the same or an earlier step, none for
one that all steps share, and any constant where each step takes the next element of a list. The first step is shown, so
it may take any input from before the loop, where later steps take one from the step before.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

LEAST = 5
"""Least number of repetitions that are folded."""

Integers = npt.NDArray[np.int64]


class Fold(NamedTuple):
    """`steps` repetitions of `period` nodes from node `start` on; all but the first and the last are hidden."""

    start: int
    period: int
    steps: int

    @property
    def hidden(self) -> range:
        return range(self.start + self.period, self.start + (self.steps - 1) * self.period)


class _Listing(NamedTuple):
    """Nodes as arrays; the inputs of node i are `sources[first_input[i] : first_input[i + 1]]`."""

    keys: Integers
    first_value: Integers
    sources: Integers
    first_input: Integers


def find_folds(
    keys: Sequence[Hashable],
    first_values: Sequence[int],
    inputs: Sequence[Sequence[int]],
    shown: Collection[int] = (),
) -> list[Fold]:
    """Find repetitions whose hidden parts do not overlap, in order; also inside the shown steps of others.

    Each node, in the order of computation, has a key, which must differ for different numbers of inputs; the number of
    its first result (results are numbered without gaps, over all nodes); and the numbers of its inputs, negative for
    none. A step with a node in `shown` is not hidden.
    """
    codes: dict[Hashable, int] = {}
    listing = _Listing(
        np.array([codes.setdefault(key, len(codes)) for key in keys], np.int64),
        np.array(first_values, np.int64),
        np.array([value for each in inputs for value in each], np.int64),
        np.cumsum([0, *map(len, inputs)], dtype=np.int64),
    )
    folds = []
    waiting = [(0, len(keys))]
    while waiting:
        low, high = waiting.pop()
        fold = _largest(listing, low, high)
        if fold is not None:
            start, period, steps = fold
            named = {(node - start) // period for node in shown if start <= node < start + steps * period}
            ends = sorted({0, *named, steps - 1})
            folds += [
                Fold(start + first * period, period, last - first + 1)
                for first, last in itertools.pairwise(ends)
                if last - first + 1 >= LEAST
            ]
            waiting += [(start + step * period, start + (step + 1) * period) for step in ends]
            waiting += [(low, start), (start + steps * period, high)]
    return sorted(folds)


def _largest(listing: _Listing, low: int, high: int) -> Fold | None:
    """The repetition in nodes [low, high) that hides most; of several, one that passes fewest values between steps."""
    best, most = None, 0
    for period in range(1, (high - low) // LEAST + 1):
        if high - low - 2 * period <= most:
            break
        same = listing.keys[low : high - period] == listing.keys[low + period : high]
        for start, stop in _runs(same, (LEAST - 1) * period):
            for fold in _steady(listing, low + start, low + stop, period):
                if len(fold.hidden) > most:
                    best, most = fold, len(fold.hidden)
    return best


def _steady(listing: _Listing, low: int, high: int, period: int) -> Iterator[Fold]:
    """Repetitions in nodes [low, high + period), whose keys repeat, that are also joined in the same way."""
    first = listing.first_input
    stride = listing.sources[first[low + period] : first[high + period]] - listing.sources[first[low] : first[high]]
    changes = stride[: first[high - period] - first[low]] != stride[first[low + period] - first[low] :]
    changed_before = np.concatenate([[0], np.cumsum(changes)])
    steady = np.diff(changed_before[first[low : high - period + 1] - first[low]]) == 0
    for start, stop in _runs(steady, (LEAST - 3) * period):  # one of the steps may be the first, which is added below
        start, end = low + start, low + stop + 2 * period
        folds = [
            Fold(begin, period, (end - begin) // period)
            for begin in range(max(low, start - period), start + period)
            if _may_begin(listing, begin, start, period)
        ]
        longest = max(fold.steps for fold in folds)
        if longest >= LEAST:
            whole = [fold for fold in folds if fold.steps == longest]  # where a loop's body starts:
            yield min(whole, key=lambda fold: (_count_passed(listing, fold), (end - fold.start) % period))


def _may_begin(listing: _Listing, begin: int, steady: int, period: int) -> bool:
    """True if nodes [begin, steady) differ from those of the next step only in inputs from before the loop."""
    here = listing.sources[listing.first_input[begin] : listing.first_input[max(begin, steady)]]
    after = [listing.first_input[begin + period], listing.first_input[max(begin, steady) + period]]
    later = [listing.first_input[begin + 2 * period], listing.first_input[max(begin, steady) + 2 * period]]
    following = listing.sources[after[0] : after[1]]
    kept_on = following - here == listing.sources[later[0] : later[1]] - following
    own = listing.first_value[begin]
    return bool(np.all(kept_on | (here < own)))


def _count_passed(listing: _Listing, fold: Fold) -> int:
    """Number of values that a step takes from the steps before it: least if it starts as the loop's body does."""
    begin, end, after = (fold.start + step * fold.period for step in (2, 3, 4))
    taken = listing.sources[listing.first_input[begin] : listing.first_input[end]]
    moved = listing.sources[listing.first_input[end] : listing.first_input[after]] != taken
    return len(set(taken[moved & (taken < listing.first_value[begin])].tolist()))


def _runs(true: npt.NDArray[np.bool_], least: int) -> list[tuple[int, int]]:
    """The stretches [start, stop) of at least `least` values that are all true."""
    ends = np.flatnonzero(np.diff(np.concatenate([[0], true.astype(np.int8), [0]]))).reshape(-1, 2)
    return [(start, stop) for start, stop in ends[ends[:, 1] - ends[:, 0] >= least].tolist()]
