"""Repetition in a list of nodes: where a loop made the same nodes, joined in the same way, over and over.

Nodes are compared by a key (name, shapes) and by where their inputs come from. Two successive steps of a loop agree if
each input moves on by a constant stride: by one step where it comes from the same or an earlier step, by none where
all steps share it, by anything constant where each step takes the next of a list. The first step, which is shown, may
take anything from before it, as it does where others take from the step before them.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

LEAST = 5
"""Fewer repetitions than this are not worth folding."""

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
    """Repetitions whose hidden parts do not overlap, in order; those inside the shown steps of others are included.

    For each node in the order of computation: its key, which must also tell the number of its inputs; the number of
    the first value that it makes (its results are numbered from there on, without gaps, as other nodes' are); and the
    numbers of the values that it takes, negative for none. Steps with a node that is to be `shown` are not hidden.
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
    """The repetition within nodes [low, high) that hides most; of several, one that hands on least between steps."""
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
    for start, stop in _runs(steady, (LEAST - 3) * period):  # one of the steps may be the first, found below
        start, end = low + start, low + stop + 2 * period
        folds = [
            Fold(begin, period, (end - begin) // period)
            for begin in range(max(low, start - period), start + period)
            if _may_begin(listing, begin, start, period)
        ]
        longest = max(fold.steps for fold in folds)
        if longest >= LEAST:
            whole = [fold for fold in folds if fold.steps == longest]  # where a loop's body starts:
            yield min(whole, key=lambda fold: (_handed_on(listing, fold), (end - fold.start) % period))


def _may_begin(listing: _Listing, begin: int, steady: int, period: int) -> bool:
    """Whether nodes [begin, steady) differ from those of the next step only in what they take from before."""
    here = listing.sources[listing.first_input[begin] : listing.first_input[max(begin, steady)]]
    after = [listing.first_input[begin + period], listing.first_input[max(begin, steady) + period]]
    later = [listing.first_input[begin + 2 * period], listing.first_input[max(begin, steady) + 2 * period]]
    following = listing.sources[after[0] : after[1]]
    kept_on = following - here == listing.sources[later[0] : later[1]] - following
    own = listing.first_value[begin]
    return bool(np.all(kept_on | (here < own)))


def _handed_on(listing: _Listing, fold: Fold) -> int:
    """How many values a step takes from the steps before it: least where it starts as its loop's body does."""
    begin, end, after = (fold.start + step * fold.period for step in (2, 3, 4))
    taken = listing.sources[listing.first_input[begin] : listing.first_input[end]]
    moved = listing.sources[listing.first_input[end] : listing.first_input[after]] != taken
    return len(set(taken[moved & (taken < listing.first_value[begin])].tolist()))


def _runs(true: npt.NDArray[np.bool_], least: int) -> list[tuple[int, int]]:
    """The stretches [start, stop) of at least `least` values that are all true."""
    ends = np.flatnonzero(np.diff(np.concatenate([[0], true.astype(np.int8), [0]]))).reshape(-1, 2)
    return [(start, stop) for start, stop in ends[ends[:, 1] - ends[:, 0] >= least].tolist()]
