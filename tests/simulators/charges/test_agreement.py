"""Nested steps, fused steps and rollouts of every kind agree in values and gradients.

They do the same arithmetic, vectorized or not, so their results differ by rounding only.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, runtime, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.rollout import rollout, run
from simphys.simulators.charges import Charges, Params, State, engine

from .systems import NAMES, assert_close, fields, fresh, leaves, system, tolerance, unpacked, weights

STEPS = 12
BOTH = pytest.mark.parametrize("integrator", ["semi_implicit_euler", "velocity_verlet"])
Case = tuple[Charges, Params, State]
Result = dict[str, np.ndarray]


def evaluate(case: Case, *, field: Tensor | None = None, along: bool = True, **options: Any) -> Result:
    """Compute all states, and the gradient of a random weighted sum over all of them, or over the last one."""
    model, params, state = case
    params, state = fresh(leaves(params, state))
    if field is not None:
        field = tensor(field.data, requires_grad=True)
    result = rollout(model, params, state, steps=STEPS, control=field, **options)
    total: Tensor = weights(())
    for seed, name in enumerate(state.names()):
        final = getattr(result.final, name)
        total = total + (weights(final.shape, seed) * final).sum()
        if along:
            states = getattr(result, name)
            total = total + (weights(states.shape, 2 + seed) * states).sum()
    total.backward()
    values = result.states.arrays()
    inputs = dict(zip(NAMES, leaves(params, state), strict=True))
    if field is not None:
        inputs["field"] = field
    for name, x in inputs.items():
        assert x.grad is not None
        values[f"gradient by {name}"] = x.grad.data
    return values


def assert_same(found: Result, expected: Result, relative: float) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert_close(found[name], value, relative, name)


@BOTH
@pytest.mark.parametrize("along", [False, True], ids=["final", "along time"])
@pytest.mark.parametrize(("dim", "bodies"), [(1, 3), (2, 21), (3, 5)])
def test_all_modes_give_the_same_states_and_gradients(
    dim: int, bodies: int, along: bool, integrator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, field = system(dim, bodies=bodies, integrator=integrator, seed=dim), fields(STEPS, dim)
    nested = evaluate(case, field=field, along=along, mode="nested")
    assert all(value.any() for value in nested.values())
    assert_same(evaluate(case, field=field, along=along), nested, 1e-12)
    assert_same(evaluate(case, field=field, along=along, mode="step"), nested, 1e-12)
    monkeypatch.setattr(runtime, "PARALLEL_WORK_US", 0.0)  # one launch per step
    assert_same(evaluate(case, field=field, along=along), nested, 1e-12)


@BOTH
def test_without_a_field_too(integrator: str) -> None:
    case = system(2, integrator=integrator)
    assert_same(evaluate(case), evaluate(case, mode="nested"), 1e-12)


@BOTH
@pytest.mark.parametrize("launches", ["all steps", "each step"])
@pytest.mark.parametrize("batched", [NAMES, ("charge", "velocity"), ("position", "coupling", "softening"), ("mass",)])
def test_a_batch_is_its_members(
    batched: tuple[str, ...], launches: str, integrator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, field = system(2, batch=3, batched=batched, integrator=integrator), fields(STEPS, 2, 3)
    nested = evaluate(case, field=field, mode="nested")
    if launches == "each step":
        monkeypatch.setattr(runtime, "PARALLEL_WORK_US", 0.0)
    assert_same(evaluate(case, field=field), nested, 1e-12)
    assert_same(evaluate(case, field=fields(STEPS, 2)), evaluate(case, field=fields(STEPS, 2), mode="nested"), 1e-12)


@BOTH
@pytest.mark.parametrize("keep", [[STEPS], [0, 3, 8]], ids=["final", "some steps"])
def test_checkpoints_change_no_bit(integrator: str, keep: list[int]) -> None:
    case, field = system(2, integrator=integrator), fields(STEPS, 2)
    whole = rollout(*case, steps=STEPS, control=field, keep=keep).plan
    assert whole is not None
    memory = whole.predicted_bytes * 9 // 10
    plan = rollout(*case, steps=STEPS, control=field, keep=keep, memory=memory).plan
    assert plan is not None and plan.blocks > 1
    stored = evaluate(case, field=field, keep=keep)
    assert_same(evaluate(case, field=field, keep=keep, memory=memory), stored, 0.0)


@BOTH
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_derivative_over_the_horizon_is_right(dim: int, integrator: str) -> None:
    model, params, state = system(dim, bodies=4, integrator=integrator, dt=0.1)

    def final(field: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
        params, state = unpacked(*inputs)
        result = rollout(model, params, state, steps=5, control=field)
        return result.position, result.velocity, *result.final.tensors()

    inputs = fields(5, dim), *leaves(params, state)
    gradcheck(final, inputs, tolerance=1e-6)
    dot_product_test(final, inputs, tolerance=1e-12)


@BOTH
def test_the_derivative_of_a_batch_is_right(integrator: str) -> None:
    model, params, state = system(2, bodies=3, batch=2, batched=("position", "charge"), integrator=integrator, dt=0.1)

    def final(field: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
        params, state = unpacked(*inputs)
        return rollout(model, params, state, steps=4, control=field).final.tensors()

    inputs = fields(4, 2), *leaves(params, state)
    gradcheck(final, inputs, tolerance=1e-6)
    dot_product_test(final, inputs, tolerance=1e-12)


@pytest.mark.gpu
@pytest.mark.parametrize("bodies", [5, 40])  # one thread per system, and one per body
@BOTH
def test_fused_and_nested_agree_on_any_device(bodies: int, integrator: str) -> None:
    batch = system(3, bodies=bodies, batch=2, batched=("position", "charge"), integrator=integrator)
    field = fields(STEPS, 3)
    nested = evaluate(batch, field=field, mode="nested")
    assert_same(evaluate(batch, field=field), nested, tolerance(1e-12, 2e-4))


def test_members_are_shared_out_where_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    case = system(2, batch=engine.MANY_MEMBERS, batched=("position",))
    expected = evaluate(case, mode="nested")
    monkeypatch.setattr(runtime, "PARALLEL_WORK_US", 0.0)
    assert_same(evaluate(case), expected, 1e-12)


THREADS = """
import sys, zlib
from simphys.autograd import runtime
runtime.init(threads=int(sys.argv[1]), precision=sys.argv[2])
from tests.simulators.charges.systems import fields, system
from tests.simulators.charges.test_agreement import STEPS, evaluate
plane = system(2, bodies=150), fields(STEPS, 2)
space = system(3, bodies=20, batch=9, integrator="velocity_verlet"), fields(STEPS, 3, 9)
for runtime.PARALLEL_WORK_US in (0.0, 250.0):  # one launch per step, or one for all
    for _ in range(2):
        found = [evaluate(case, field=field, deterministic=True) for case, field in (plane, space)]
        print([zlib.crc32(value.tobytes()) for result in found for value in result.values()])
"""


@pytest.mark.parametrize("precision", ["f64"])
def test_neither_a_second_run_nor_the_number_of_threads_changes_a_bit(precision: str) -> None:
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    printed = []
    for threads in (1, 2):
        command = [sys.executable, "-P", "-c", THREADS, str(threads), precision]
        done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout.splitlines())
    each, all_steps = printed[0][:2], printed[0][2:]
    assert each[0] == each[1] and all_steps[0] == all_steps[1]
    assert printed[0] == printed[1]


@BOTH
@pytest.mark.parametrize("launches", ["all steps", "each step"])
def test_checks_for_a_blow_up_along_the_way_change_no_bit(
    integrator: str, launches: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each segment is a new launch, which must continue with the field of its own first step."""
    if launches == "each step":
        monkeypatch.setattr(runtime, "PARALLEL_WORK_US", 0.0)
    case, field = system(2, integrator=integrator), fields(STEPS, 2)
    seldom = evaluate(case, field=field)
    monkeypatch.setattr(run, "FIRST_NUMBERS", 0)
    monkeypatch.setattr(run, "FIRST_CHECK", 3)
    assert_same(evaluate(case, field=field), seldom, 0.0)
