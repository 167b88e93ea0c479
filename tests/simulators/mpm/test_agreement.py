"""Nested steps, fused steps and rollouts of every kind compute the same values and gradients.

They do the same arithmetic, vectorized or not, so results differ only by rounding.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.diagnose.check import check
from simphys.rollout import rollout
from simphys.simulators.mpm import fused
from simphys.simulators.mpm.collider import Collider

from .systems import Array, Case, assert_close, system, tolerance, weights

STEPS = 6
CASES: dict[str, Any] = {
    "plane": functools.partial(system, 2, laws=("snow", "fluid"), steps=STEPS),
    "colliders": functools.partial(
        system,
        2,
        laws=("fluid",),
        actuators=1,
        steps=STEPS,
        colliders=(Collider("sphere", (0.12,), "sticking"), Collider("box", (0.08, 0.1), "friction")),
    ),
}
"""Systems to compare, only few as each is compiled: laws, actuators and walls in 2-D; driven colliders.

Nested and fused steps call the same functions of a law. Other laws and 3-D are covered by certificates of shipped
scenes (test_certificates.py: liquid, walker): all ways to run, derivatives over the horizon, and sub-steps.
"""
EACH = pytest.mark.parametrize("name", CASES)


def evaluate(case: Case, *, all_states: bool = True, of: int | None = None, **options: Any) -> dict[str, Array]:
    """Return the states over time, and the gradient of a random sum over all of them or over the last one.

    With `of`, the weights are those of this member in a batch of two.
    """
    case = case.fresh()
    result = rollout(case.model, case.params, case.state, steps=STEPS, control=case.control, **options)
    total: Tensor = weights(())
    for seed, name in enumerate(case.state.names()):
        for states in (getattr(result.final, name), getattr(result, name) if all_states else None):
            if states is not None and states.size:
                w = weights(states.shape if of is None else (2, *states.shape), seed)
                total = total + ((w if of is None else w[of]) * states).sum()
    total.backward()
    values = {name: x for name, x in result.states.arrays().items() if x.size}
    for name, x in case.leaves().items():
        assert x.grad is not None
        values[f"gradient by {name}"] = x.grad.data
    return values


def assert_same(found: dict[str, Array], expected: dict[str, Array], relative: float) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert_close(found[name], value, relative, name)


@pytest.mark.parametrize("all_states", [False, True], ids=["final", "all states"])
@EACH
def test_all_ways_give_the_same_states_and_gradients(name: str, all_states: bool) -> None:
    case = CASES[name]()
    nested = evaluate(case, all_states=all_states, mode="nested")
    unread = [key for key, value in nested.items() if not value.any()]
    assert unread == []
    assert_same(evaluate(case, all_states=all_states), nested, 1e-11)
    assert_same(evaluate(case, all_states=all_states, mode="step"), nested, 1e-11)


@EACH
def test_a_batch_is_its_members(name: str) -> None:
    case = CASES[name](batch=2)
    whole = evaluate(case, all_states=False)
    for b in range(2):
        alone = case.using({key: tensor(x.data[b]) for key, x in case.inputs().items()})
        found = evaluate(alone, all_states=False, of=b)
        for key, value in found.items():
            np.testing.assert_array_equal(whole[key][b], value, err_msg=key)


@pytest.mark.parametrize("batched", [("position", "young_modulus", "control"), ("mass", "gravity", "deformation")])
def test_members_may_share_inputs(batched: tuple[str, ...]) -> None:
    case = CASES["plane"](batch=2, batched=batched)
    assert_same(evaluate(case), evaluate(case, mode="nested"), 1e-11)


@EACH
def test_checkpoints_change_no_bit(name: str) -> None:
    case = CASES[name]()
    options: dict[str, Any] = {"steps": STEPS, "control": case.control, "keep": "final"}
    whole = rollout(case.model, case.params, case.state, **options).plan
    assert whole is not None
    memory = whole.predicted_bytes - 1
    plan = rollout(case.model, case.params, case.state, **options, memory=memory).plan
    assert plan is not None and plan.blocks > 1
    stored = evaluate(case, all_states=False, keep="final")
    assert_same(evaluate(case, all_states=False, keep="final", memory=memory), stored, 0.0)


def final(case: Case, steps: int, mode: Any = "fused") -> Any:
    """Return a function from inputs in the order of `leaves` to the last state."""
    names = tuple(case.leaves())

    def of(*inputs: Tensor) -> list[Tensor]:
        given = case.using(dict(zip(names, inputs, strict=True)))
        control = None if given.control is None else given.control[:steps]
        result = rollout(given.model, given.params, given.state, steps=steps, control=control, mode=mode)
        return [x for x in result.final.tensors() if x.size]

    return of


def test_the_gradient_over_the_horizon_is_right_for_sand_which_no_scene_has() -> None:
    """Check only the nested step, whose kernels compile fastest; the fused step has the same table of laws."""
    case = system(2, laws=("drucker_prager",), actuators=0)
    gradcheck(final(case, 3, "nested"), tuple(case.leaves().values()), mode="projected", repeats=1, tolerance=1e-6)


def test_the_derivative_over_the_horizon_is_right() -> None:
    """Check adjoints and tangents. Certificates of scenes (press, squeeze) cover colliders."""
    case = CASES["plane"]()
    gradcheck(final(case, 3), tuple(case.leaves().values()), mode="projected", repeats=1, tolerance=1e-6)
    dot_product_test(final(case, 3), tuple(case.leaves().values()), tolerance=1e-11)


def test_the_certificate_of_a_small_system_passes() -> None:
    case = CASES["plane"]()
    found = check(case.model, case.params, case.state, steps=STEPS, control=case.control)
    assert [each.title for each in found.statements if not each.passed] == []


@pytest.mark.gpu
def test_fused_and_nested_agree_on_any_device() -> None:
    case = CASES["plane"]()
    assert_same(evaluate(case), evaluate(case, mode="nested"), tolerance(1e-11, 2e-3))


def test_blocks_of_particles_are_filled_and_emptied_whole_and_in_part() -> None:
    case = CASES["plane"](particles=37)  # two whole blocks and a part
    assert fused.Variant.block == 16
    assert_same(evaluate(case), evaluate(case, mode="nested"), 1e-11)


THREADS = """
import sys, zlib
from simphys.autograd import runtime
runtime.init(threads=int(sys.argv[1]), precision="f64")
runtime.PARALLEL_WORK_US = 0.0
from tests.simulators.mpm.systems import system
from tests.simulators.mpm.test_agreement import STEPS, evaluate
case = system(2, laws=("fluid",), particles=101, steps=STEPS, actuators=1)
for _ in range(2):
    print([zlib.crc32(value.tobytes()) for value in evaluate(case, deterministic=True).values()])
"""


def test_neither_a_second_run_nor_the_number_of_threads_changes_a_bit() -> None:
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    printed = []
    for threads in (1, 2):
        command = [sys.executable, "-P", "-c", THREADS, str(threads)]
        done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        printed += done.stdout.splitlines()
    assert len(printed) == 4 and len(set(printed)) == 1
