import re

import pytest

from simphys.autograd.errors import InputError
from simphys.rollout.plan import Plan, _divisions, make_plan
from simphys.rollout.schedule import Action, Advance, Free, Record, Restore, Reverse, Store, count_recomputed

STATE = 80
"""Size of a stored state [B]."""
FIXED = 1000


def segment(steps: int) -> int:
    """Size of the states of a block and of the workspace of its reversal [B]."""
    return 3 * STATE * (steps + 1) + 16


def planned(steps: int, memory: int | None) -> Plan:
    return make_plan(steps=steps, memory=memory, checkpoint_bytes=STATE, segment_bytes=segment, fixed_bytes=FIXED)


class Run:
    """Executes a plan, counting bytes and steps."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.checkpoints: dict[int, int] = {}
        self.steps_computed = 0
        self.steps_reversed: list[int] = []
        self.peak = 0
        for action in plan.forward():
            self.do(action)
        self.forward_steps = self.steps_computed
        for action in plan.reverse():
            self.do(action)

    def do(self, action: Action) -> None:
        match action:
            case Store(block):
                self.checkpoints[block] = STATE
            case Free(block):
                del self.checkpoints[block]
            case Advance(first, last):
                for block in range(first, last):
                    self.compute(block)
            case Record(block):
                self.compute(block)
            case Reverse(block):
                first, steps = self.plan.span(block)
                self.steps_reversed += reversed(range(first, first + steps))
            case Restore(block):
                assert block in self.checkpoints
        self.peak = max(self.peak, FIXED + sum(self.checkpoints.values()) + segment(self.plan.block))

    def compute(self, block: int) -> None:
        self.steps_computed += self.plan.span(block)[1]


EVERYTHING = FIXED + segment(997)
BUDGETS = [EVERYTHING * percent // 100 for percent in (3, 4, 5, 7, 10, 20, 50, 99)]


@pytest.mark.parametrize("memory", [*BUDGETS, EVERYTHING, None])
def test_predicted_memory_and_steps_are_those_counted(memory: int | None) -> None:
    plan = planned(997, memory)
    run = Run(plan)
    assert run.steps_reversed == list(reversed(range(997)))
    assert run.forward_steps == 997
    assert run.steps_computed - run.forward_steps == plan.recomputed_steps
    assert run.peak == plan.predicted_bytes
    assert memory is None or plan.predicted_bytes <= memory


@pytest.mark.parametrize("memory", BUDGETS)
def test_no_other_block_and_number_of_checkpoints_recomputes_less(memory: int) -> None:
    plan = planned(997, memory)
    best = min(
        block * count_recomputed(blocks, min(checkpoints, blocks - 1))
        for block in range(1, 997)
        for blocks in [-(-997 // block)]
        for checkpoints in [(memory - FIXED - segment(block)) // STATE]
        if checkpoints >= 1
    )
    assert plan.recomputed_steps == best


def test_fewer_blocks_are_preferred_at_equal_cost() -> None:
    plan = make_plan(
        steps=10, memory=12, checkpoint_bytes=1, segment_bytes=lambda steps: 2 * (steps + 1), fixed_bytes=0
    )
    assert (plan.block, plan.checkpoints) == (4, 2)
    assert plan.recomputed_steps == 2 * count_recomputed(5, 4) == 8


def test_more_memory_never_costs_more_and_goes_from_binomial_over_segments_to_all() -> None:
    found = [planned(997, memory) for memory in range(FIXED + segment(1) + STATE, EVERYTHING + 200, 200)]
    costs = [plan.recomputed_steps for plan in found]
    assert costs == sorted(costs, reverse=True)
    kinds = [plan.kind for plan in found]
    assert list(dict.fromkeys(kinds)) == ["binomial", "segments", "all"]


def test_without_a_limit_everything_is_stored() -> None:
    plan = planned(10**6, None)
    assert (plan.kind, plan.block, plan.checkpoints, plan.recomputed_steps) == ("all", 10**6, 0, 0)
    assert plan.predicted_bytes == FIXED + segment(10**6)


def test_a_plan_in_one_line() -> None:
    assert str(planned(10, None)) == "all: 10 steps stored, 3.7 kB predicted, nothing recomputed"
    few = Plan(steps=100, block=25, checkpoints=3, predicted_bytes=2 * 10**6)
    assert few.describe() == "segments: 3 checkpoints, blocks of 25 steps, 2.0 MB predicted, 0.75 recomputations a step"
    fewer = Plan(steps=1000, block=50, checkpoints=4, predicted_bytes=214 * 10**6)
    assert fewer.recomputed_steps == 50 * (3 * 20 - 21)
    assert str(fewer) == "binomial: 4 checkpoints, blocks of 50 steps, 214 MB predicted, 1.9 recomputations a step"
    fewest = Plan(steps=1001, block=1, checkpoints=1, predicted_bytes=1)
    assert str(fewest) == "binomial: 1 checkpoint, blocks of 1 step, 1 B predicted, 500 recomputations a step"


@pytest.mark.parametrize("steps", [1, 2, 3, 1000])
def test_too_little_memory_is_an_error_whose_remedies_work(steps: int) -> None:
    with pytest.raises(InputError) as raised:
        planned(steps, FIXED)
    remedies = [int(size) for size in re.findall(r"memory=(\d+)", raised.value.remedy)]
    assert remedies
    for memory in remedies:
        assert planned(steps, memory).predicted_bytes == memory
    with pytest.raises(InputError):
        planned(steps, remedies[0] - 1)
    assert planned(steps, remedies[-1]).recomputed_steps < steps


def test_the_second_remedy_is_the_least_memory_with_at_most_one_recomputation_a_step() -> None:
    with pytest.raises(InputError) as raised:
        planned(1000, FIXED)
    _, memory = (int(size) for size in re.findall(r"memory=(\d+)", raised.value.remedy))
    assert planned(1000, memory).kind == "segments"
    assert planned(1000, memory - 1).kind == "binomial"


def test_all_divisions_of_a_horizon_are_tried() -> None:
    for steps in range(1, 200):
        least = {-(-steps // block): block for block in reversed(range(1, steps))}
        expected = [(blocks, block) for blocks, block in sorted(least.items(), reverse=True) if blocks > 1]
        assert list(_divisions(steps)) == expected


@pytest.mark.parametrize("memory", [FIXED + segment(1) + 20 * STATE, 10**6, 10**8])
def test_a_million_steps_are_planned_from_two_thousand_blocks(memory: int) -> None:
    tried: list[int] = []

    def noted(steps: int) -> int:
        tried.append(steps)
        return segment(steps)

    make_plan(steps=10**6, memory=memory, checkpoint_bytes=STATE, segment_bytes=noted, fixed_bytes=FIXED)
    assert len(tried) <= 2 * 1000 + 2  # fewer than 2 sqrt(steps), the whole horizon, and what was chosen
