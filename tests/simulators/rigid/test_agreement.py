"""Nested steps, fused steps and all kinds of rollouts are the same physics: values and gradients agree."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.rollout import plan, rollout
from simphys.simulators.rigid import Box, Plane, RigidBodies

from .systems import (
    NAMES,
    System,
    assert_close,
    chain,
    controls,
    copy_leaves,
    leaves,
    system,
    tumbling_in_plane,
    tumbling_in_space,
    unpack,
    weights,
)  # fmt: skip

STEPS = 12


def variational(case: System) -> System:
    model, params, state = case
    return dataclasses.replace(model, integrator="variational"), params, state


Result = dict[str, np.ndarray]

CASES: dict[str, Callable[[], System]] = {
    "boxes and a sphere": tumbling_in_plane,
    "compliant": functools.partial(tumbling_in_plane, "compliant"),
    "capsule and box, by variational steps": lambda: variational(tumbling_in_space()),
    "chain": chain,
    "chain with a network": functools.partial(chain, controlled=True),
}
ALL = pytest.mark.parametrize("name", CASES)


def evaluate(case: System, *, along: bool = True, steps: int = STEPS, **options: Any) -> Result:
    """Return the states along time, and the gradient of a random sum over all of them, or over the last one only."""
    model, params, state = case
    params, state = copy_leaves(leaves(params, state))
    control = controls(model, steps)
    result = rollout(model, params, state, steps=steps, control=control, **options)
    total: Tensor = weights(())
    for seed, name in enumerate(state.names()):
        states = getattr(result if along else result.final, name)
        total = total + (weights(states.shape, 2 + seed) * states).sum()
    total.backward()
    values = result.states.arrays() if along else result.final.arrays()
    inputs = dict(zip(NAMES, leaves(params, state), strict=True))
    if control is not None:
        inputs["control"] = control
    for name, x in inputs.items():
        values[f"gradient by {name}"] = np.zeros(x.shape) if x.grad is None else x.grad.data
    return values


def assert_same(found: Result, expected: Result, relative: float) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert_close(found[name], value, relative, name)


@ALL
def test_all_ways_give_the_same_states_and_gradients(name: str) -> None:
    case = CASES[name]()
    nested = evaluate(case, mode="nested")
    assert_same(evaluate(case), nested, 1e-11)
    assert_same(evaluate(case, mode="step"), nested, 1e-11)
    assert_same(evaluate(case, along=False), evaluate(case, along=False, mode="nested"), 1e-11)


def test_all_ways_agree_with_the_gyroscopic_torque_in_kicks() -> None:
    """This concerns steps of semi-implicit Euler in space."""
    shape = ((Box((0.2, 0.15, 0.1)),),)
    model = RigidBodies(3, 0.01, shape, planes=(Plane((0.0, 0.0, 1.0)),), sweeps=8)
    turning = {"angular_velocity": [[1.0, -2.0, 0.5]], "orientation": [[0.95, 0.15, -0.1, 0.2]]}
    case = system(model, state={"position": [[0.0, 0.02, 0.2]], "velocity": [[0.5, 0.2, -1.0]], **turning})
    assert_same(evaluate(case, along=False), evaluate(case, along=False, mode="nested"), 1e-11)


@ALL
def test_checkpoints_change_no_bit(name: str) -> None:
    case = CASES[name]()
    stored = plan(*case, steps=100, control=controls(case[0], 100), keep="final")
    cut = stored.predicted_bytes * 9 // 10
    assert_same(
        evaluate(case, along=False, steps=100, keep="final", memory=cut), evaluate(case, along=False, steps=100), 0.0
    )


@ALL
def test_the_derivative_over_the_horizon_is_right(name: str) -> None:
    model, params, state = CASES[name]()
    control = controls(model, STEPS)

    def final(*inputs: Tensor) -> tuple[Tensor, ...]:
        given, start = unpack(*inputs[: len(NAMES)])
        driven = inputs[-1] if control is not None else None
        return rollout(model, given, start, steps=STEPS, control=driven, keep="final").final.tensors()

    inputs = leaves(params, state) if control is None else (*leaves(params, state), control)
    gradcheck(final, inputs, mode="projected", tolerance=1e-6)
