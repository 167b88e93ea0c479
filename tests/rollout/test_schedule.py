import functools
import itertools
from collections import Counter

import pytest

from simphys.autograd.errors import InputError
from simphys.rollout import schedule
from simphys.rollout.schedule import Advance, Free, Record, Restore, Reverse, Store

CASES = [(blocks, checkpoints) for blocks in range(2, 61) for checkpoints in range(1, 9)]


@functools.cache
def fewest(blocks: int, checkpoints: int) -> int:
    """Smallest number of recomputed blocks, by dynamic programming over the position of the next checkpoint."""
    if blocks == 1:
        return 0
    if checkpoints == 1:
        return blocks * (blocks - 1) // 2
    return min(m + fewest(m, checkpoints) + fewest(blocks - m, checkpoints - 1) for m in range(1, blocks))


@functools.cache
def fewest_stores(blocks: int, checkpoints: int) -> int:
    """Smallest number of stored states, without the first, among the schedules that recompute the fewest blocks."""
    if blocks == 1 or checkpoints == 1:
        return 0
    return min(
        fewest_stores(m, checkpoints) + fewest_stores(blocks - m, checkpoints - 1) + (blocks - m > 1)
        for m in range(1, blocks)
        if m + fewest(m, checkpoints) + fewest(blocks - m, checkpoints - 1) == fewest(blocks, checkpoints)
    )


class Run:
    """Executes a schedule with block numbers as states, and counts."""

    def __init__(self, blocks: int, checkpoints: int) -> None:
        self.present = 0
        self.stored: set[int] = set()
        self.recorded: list[int] = []
        self.most_stored = 0
        self.stores = 0
        self.reversed: list[int] = []
        self.computed: Counter[int] = Counter()
        for action in schedule.forward(blocks, checkpoints):
            self.do(action)
        self.after_forward = len(self.stored)
        assert self.recorded == [blocks - 1]
        for action in schedule.reverse(blocks, checkpoints):
            self.do(action)

    def do(self, action: schedule.Action) -> None:
        match action:
            case Store(block):
                assert self.present == block and block not in self.stored
                self.stored.add(block)
                self.stores += 1
                self.most_stored = max(self.most_stored, len(self.stored))
            case Restore(block):
                assert block in self.stored
                self.present = block
            case Free(block):
                self.stored.remove(block)
            case Advance(first, last):
                assert self.present == first < last
                self.computed.update(range(first, last))
                self.present = last
            case Record(block):
                assert self.present == block and not self.recorded
                self.computed[block] += 1
                self.recorded.append(block)
                self.present = block + 1
            case Reverse(block):
                assert self.recorded.pop() == block
                self.reversed.append(block)


def test_every_block_is_reversed_once_in_reverse_order_and_all_memory_is_freed() -> None:
    for blocks, checkpoints in CASES:
        run = Run(blocks, checkpoints)
        assert run.reversed == list(reversed(range(blocks)))
        assert not run.stored and not run.recorded


def test_the_checkpoints_are_never_exceeded_and_all_in_use_after_the_forward_sweep() -> None:
    for blocks, checkpoints in CASES:
        run = Run(blocks, checkpoints)
        assert run.most_stored == run.after_forward == min(checkpoints, blocks - 1)


def test_the_blocks_recomputed_are_those_of_the_closed_form_and_the_fewest_possible() -> None:
    for blocks, checkpoints in CASES:
        computed = Run(blocks, checkpoints).computed.total()
        assert computed - blocks == schedule.count_recomputed(blocks, checkpoints) == fewest(blocks, checkpoints)


def test_no_optimal_schedule_stores_fewer_states() -> None:
    for blocks, checkpoints in CASES:
        assert Run(blocks, checkpoints).stores == 1 + fewest_stores(blocks, checkpoints)


def test_the_last_block_is_computed_once_and_no_block_more_than_r_plus_one_times() -> None:
    for repetitions in range(1, 6):
        blocks = (repetitions + 3) * (repetitions + 2) * (repetitions + 1) // 6  # the most for 3 checkpoints
        computed = Run(blocks, 3).computed
        assert computed[blocks - 1] == 1
        assert max(computed.values()) == repetitions + 1


def test_a_checkpoint_per_block_gives_uniform_segments() -> None:
    assert list(schedule.forward(3, 2)) == [Store(0), Advance(0, 1), Store(1), Advance(1, 2), Record(2)]
    assert list(schedule.reverse(3, 2)) == [
        Reverse(2),
        *(Restore(1), Free(1), Record(1), Reverse(1)),
        *(Restore(0), Free(0), Record(0), Reverse(0)),
    ]
    assert schedule.count_recomputed(3, 2) == 2
    assert list(schedule.reverse(3, 7)) == list(schedule.reverse(3, 2))


def test_one_block_stores_everything() -> None:
    assert list(schedule.forward(1, 0)) == [Record(0)]
    assert list(schedule.reverse(1, 0)) == [Reverse(0)]
    assert schedule.count_recomputed(1, 0) == 0


def test_one_checkpoint_starts_anew_for_every_block() -> None:
    assert list(schedule.reverse(3, 1)) == [
        Reverse(2),
        *(Restore(0), Advance(0, 1), Record(1), Reverse(1)),
        *(Restore(0), Free(0), Record(0), Reverse(0)),
    ]


@pytest.mark.parametrize("checkpoints", [1, 2, 30, 1000])
def test_a_million_blocks_need_no_deep_recursion(checkpoints: int) -> None:
    sweep = list(schedule.forward(10**6, checkpoints))
    assert sweep[-1] == Record(10**6 - 1)
    assert sum(isinstance(action, Store) for action in sweep) == checkpoints
    begun = list(itertools.islice(schedule.reverse(10**6, checkpoints), 10_000))
    reversals = [action.block for action in begun if isinstance(action, Reverse)]
    assert reversals == list(range(10**6 - 1, 10**6 - 1 - len(reversals), -1))
    assert len(reversals) > 1_000


def test_the_closed_form_for_a_million_blocks() -> None:
    assert schedule.count_recomputed(10**6, 1) == 10**6 * (10**6 - 1) // 2
    assert schedule.count_recomputed(10**6, 10**6) == 10**6 - 1
    middle = (
        500_000  # twice as many as there are checkpoints: one repetition more for all but the checkpoints + 1 last ones
    )
    assert schedule.count_recomputed(10**6, middle) == (10**6 - 1) + (10**6 - middle - 1)


@pytest.mark.parametrize(("blocks", "checkpoints"), [(0, 1), (2, 0), (5, -1)])
def test_an_impossible_schedule_is_an_error(blocks: int, checkpoints: int) -> None:
    for ask in (schedule.forward, schedule.count_recomputed):
        with pytest.raises(InputError, match="Give"):
            ask(blocks, checkpoints)
