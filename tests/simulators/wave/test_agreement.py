"""Nested steps, fused steps and rollouts of every kind compute the same values and gradients.

They do the same arithmetic, at most in another order, so results differ only by rounding.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from simphys.autograd import Tensor, runtime
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.wave.model import Wave

from .systems import LINE, PLANE, SPACE, TORUS, Case, assert_same, case, evaluate, tolerance, weighted_sum

STEPS = 7
ALL_STATES = pytest.mark.parametrize("all_states", [False, True], ids=["final", "all states"])
MODELS = pytest.mark.parametrize("model", [LINE, PLANE, SPACE, TORUS], ids=["line", "plane", "space", "torus"])


@ALL_STATES
@MODELS
def test_all_ways_give_the_same_states_and_gradients(model: Wave, all_states: bool) -> None:
    given = case(model, STEPS)
    nested = evaluate(given, all_states=all_states, mode="nested")
    silent = set() if all_states else {"gradient by received"}  # the initial readings do not influence the final state
    assert {name for name, value in nested.items() if value.size and not value.any()} == silent
    assert_same(evaluate(given, all_states=all_states), nested, 1e-12)
    assert_same(evaluate(given, all_states=all_states, mode="step"), nested, 1e-12)


def test_parallel_loops_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    given = case(PLANE, STEPS, batch=2, batched=("height", "source_position"))
    expected = evaluate(given)
    monkeypatch.setattr(runtime, "PARALLEL_WORK_US", 0.0)
    monkeypatch.setattr(runtime, "parallel", lambda work_us: True)
    assert_same(evaluate(given), expected, 1e-12)


@pytest.mark.parametrize(
    "batched",
    [("source_position",), ("speed",), ("control", "receiver_position"), ("height", "previous", "source_velocity")],
    ids=" ".join,
)
def test_a_batch_is_its_members(batched: tuple[str, ...]) -> None:
    given = case(PLANE, STEPS, batch=3, batched=batched)
    assert_same(evaluate(given), evaluate(given, mode="nested"), 1e-12)


@pytest.mark.gpu
def test_fused_and_nested_agree_on_any_device() -> None:
    small = replace(PLANE, order=2, boundaries=("zero", "absorbing", "free", "free"))  # quick to compile
    given = case(small, 2, batch=2, batched=("source_position", "height"))
    assert_same(evaluate(given), evaluate(given, mode="nested"), tolerance(1e-12, 2e-5))


THREADS = """
import sys, zlib
from simphys.autograd import Tensor, runtime
runtime.init(threads=int(sys.argv[1]))
runtime.PARALLEL_WORK_US = 0.0
from tests.simulators.wave.systems import PLANE, case, evaluate
given = case(PLANE, 7, batch=2, batched=("source_position",))
for _ in range(2):
    print([zlib.crc32(value.tobytes()) for value in evaluate(given).values()])
"""


def test_neither_a_second_run_nor_the_number_of_threads_changes_a_bit() -> None:
    root = Path(__file__).parents[3]
    printed = []
    for threads in (1, 2):
        command = [sys.executable, "-P", "-c", THREADS, str(threads)]
        environment = {**os.environ, "PYTHONPATH": str(root)}
        done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        printed += done.stdout.splitlines()
    assert len(printed) == 4 and len(set(printed)) == 1


# --- the derivative over the horizon


def derivative_is_right(given: Case) -> None:
    """Check the gradient of a loss on all states along random directions, and tangents against adjoints."""

    def loss(*leaves: Tensor) -> Tensor:
        return weighted_sum(given.at(*leaves).rollout())

    gradcheck(loss, given.leaves, mode="projected", repeats=1)

    def states(*leaves: Tensor) -> tuple[Tensor, ...]:
        trajectory = given.at(*leaves).rollout()
        return tuple([x for x in (*trajectory.states.tensors(), *trajectory.final.tensors()) if x.size])

    dot_product_test(states, given.leaves, tolerance=1e-12)


@MODELS
def test_the_derivative_over_the_horizon_is_right(model: Wave) -> None:
    derivative_is_right(case(model, 5))


@pytest.mark.parametrize("batched", [("source_position", "control"), ("speed", "height")], ids=" ".join)
def test_the_derivative_of_a_batch_is_right(batched: tuple[str, ...]) -> None:
    derivative_is_right(case(PLANE, 4, batch=2, batched=batched))
