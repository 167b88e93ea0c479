"""Nested steps, fused steps and rollouts of every kind agree in values and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, runtime, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.rollout import rollout

from . import chains, sphericals

STEPS = 12
ALL = pytest.mark.parametrize("integrator", ["rk4", "variational"])
KINDS = pytest.mark.parametrize("kind", ["chain", "spherical"])
Result = dict[str, np.ndarray]


def made(kind: str, integrator: str, **options: Any) -> tuple[Any, Any, Any]:
    return (
        sphericals.spherical(integrator, **options) if kind == "spherical" else chains.chain(3, integrator, **options)
    )


def torques(kind: str, steps: int, batch: int | None = None) -> Tensor:
    return sphericals.torques(steps, batch) if kind == "spherical" else chains.torques(steps, 3, batch)


def of(kind: str) -> Any:
    return sphericals if kind == "spherical" else chains


def evaluate(kind: str, case: Any, *, torque: Tensor | None, along: bool = True, **options: Any) -> Result:
    """Compute all states, and the gradient of a random weighted sum over all of them, or over the last one."""
    model, *given = case
    tensors = [tensor(each.data, requires_grad=True) for each in of(kind).leaves(*given)]
    params, state = of(kind).unpacked(*tensors)
    if torque is not None:
        torque = tensor(torque.data, requires_grad=True)
    result = rollout(model, params, state, steps=STEPS, control=torque, **options)
    random = np.random.default_rng(1)
    total: Tensor = tensor(0.0)
    for name in state.names():
        final = getattr(result.final, name)
        total = total + (random.normal(size=final.shape).astype(final.dtype) * final).sum()
        if along:
            states = getattr(result, name)
            total = total + (random.normal(size=states.shape).astype(states.dtype) * states).sum()
    total.backward()
    values = result.states.arrays()
    inputs = dict(zip(of(kind).NAMES, tensors, strict=True)) | ({} if torque is None else {"torque": torque})
    for name, x in inputs.items():
        assert x.grad is not None
        values[f"gradient by {name}"] = x.grad.data
    return values


def assert_same(found: Result, expected: Result, relative: float) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        atol = relative * float(np.abs(value).max())
        np.testing.assert_allclose(found[name], value, rtol=0, atol=atol, err_msg=name)


@ALL
@KINDS
def test_all_modes_give_the_same_states_and_gradients(kind: str, integrator: str) -> None:
    case = made(kind, integrator)
    for torque in (torques(kind, STEPS), None):
        nested = evaluate(kind, case, torque=torque, mode="nested")
        assert all(value.any() for value in nested.values())
        assert_same(evaluate(kind, case, torque=torque), nested, 1e-12)
        assert_same(evaluate(kind, case, torque=torque, mode="step"), nested, 1e-12)
    nested = evaluate(kind, case, torque=None, along=False, mode="nested")
    assert_same(evaluate(kind, case, torque=None, along=False), nested, 1e-12)


@ALL
@KINDS
def test_a_batch_is_its_members(kind: str, integrator: str) -> None:
    for batched in (of(kind).NAMES, ("rate", "mass"), ("length", "gravity")):
        case = made(kind, integrator, batch=3, batched=batched)
        for torque in (torques(kind, STEPS, 3), torques(kind, STEPS), None):
            nested = evaluate(kind, case, torque=torque, mode="nested")
            assert_same(evaluate(kind, case, torque=torque), nested, 1e-12)


@pytest.mark.parametrize(("kind", "integrator"), [("chain", "rk4"), ("spherical", "variational")])
def test_members_are_shared_out_among_threads(kind: str, integrator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case, torque = made(kind, integrator, batch=3), torques(kind, STEPS)
    serial = evaluate(kind, case, torque=torque)
    monkeypatch.setattr(runtime, "parallel", lambda _: True)
    assert_same(evaluate(kind, case, torque=torque), serial, 0.0)


@ALL
@KINDS
def test_checkpoints_change_no_bit(kind: str, integrator: str) -> None:
    case, torque = made(kind, integrator), torques(kind, STEPS)
    for keep in ([STEPS], [0, 3, 8]):
        plan = rollout(*case, steps=STEPS, control=torque, keep=keep).plan
        assert plan is not None
        memory = plan.predicted_bytes * 9 // 10
        again = rollout(*case, steps=STEPS, control=torque, keep=keep, memory=memory).plan
        assert again is not None and again.blocks > 1
        stored = evaluate(kind, case, torque=torque, keep=keep)
        assert_same(evaluate(kind, case, torque=torque, keep=keep, memory=memory), stored, 0.0)


@ALL
@KINDS
def test_the_derivative_over_the_horizon_is_right(kind: str, integrator: str) -> None:
    model, params, state = made(kind, integrator, batch=2, batched=("rate", "length"))

    def moved(torque: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
        params, state = of(kind).unpacked(*inputs)
        result = rollout(model, params, state, steps=4, control=torque)
        return *result.states.tensors(), *result.final.tensors()

    inputs = torques(kind, 4), *of(kind).leaves(params, state)
    gradcheck(moved, inputs, tolerance=1e-6, mode="projected")
    dot_product_test(moved, inputs, tolerance=1e-12)


@pytest.mark.gpu
@KINDS
@ALL
def test_fused_and_nested_agree_on_any_device(kind: str, integrator: str) -> None:
    case, torque = made(kind, integrator, batch=2, batched=("rate",)), torques(kind, STEPS)
    nested = evaluate(kind, case, torque=torque, mode="nested")
    near = 1e-12 if runtime.real_dtype() == np.float64 else 1e-3
    assert_same(evaluate(kind, case, torque=torque), nested, near)
