"""Nested steps, fused steps and all kinds of rollouts are the same physics: values and gradients agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import MissingJvp, Tensor, runtime, tensor
from simphys.autograd.compose.functional import jvp
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.rollout import rollout
from simphys.simulators.billiards import Billiards, Params, State

from .tables import NAMES, busy, copy_leaves, leaf, leaves, table, unpack

STEPS = 12
Case = tuple[Billiards, Params, State]


def weights(shape: tuple[int, ...], seed: int) -> Tensor:
    return tensor(np.random.default_rng(seed).standard_normal(shape).astype(runtime.real_dtype()))


def evaluate(case: Case, *, along: bool = True, **options: Any) -> dict[str, np.ndarray]:
    """Return the states along time, and the gradient of a random sum over all of them, or over the last one only."""
    model, params, state = case
    params, state = copy_leaves(params, state)
    found = rollout(model, params, state, steps=STEPS, **options)
    total: Any = 0.0
    for seed, name in enumerate(state.names()):
        final = getattr(found.final, name)
        total = total + (weights(final.shape, seed) * final).sum()
        if along:
            states = getattr(found, name)
            total = total + (weights(states.shape, 2 + seed) * states).sum()
    total.backward()
    values = found.states.arrays()
    for name, x in zip(NAMES, leaves(params, state), strict=True):
        values[f"gradient by {name}"] = np.zeros(x.shape) if x.grad is None else x.grad.data
    return values


def assert_same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray], relative: float) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        near = relative * np.abs(value).max(initial=0)
        np.testing.assert_allclose(found[name], value, rtol=0, atol=near, err_msg=name)


@pytest.mark.parametrize("along", [False, True], ids=["final", "along time"])
@pytest.mark.parametrize(("deceleration", "cushions"), [(0.3, True), (0.0, False)])
def test_all_ways_give_the_same_states_and_gradients(along: bool, deceleration: float, cushions: bool) -> None:
    case = busy(deceleration=deceleration, cushions=cushions)
    nested = evaluate(case, along=along, mode="nested")
    without = () if cushions else ("cushion_restitution", "lower", "upper")
    assert all(value.any() for name, value in nested.items() if not name.endswith(without or ("none",)))
    assert_same(evaluate(case, along=along), nested, 1e-12)
    assert_same(evaluate(case, along=along, mode="step"), nested, 1e-12)


def test_less_memory_changes_no_bit() -> None:
    case = busy()
    plan = rollout(*case, steps=STEPS, keep="final").plan
    assert plan is not None
    stored = evaluate(case, along=False, keep="final")
    less = evaluate(case, along=False, keep="final", memory=plan.predicted_bytes - 100)
    for name, value in stored.items():
        np.testing.assert_array_equal(less[name], value, err_msg=name)


def test_a_batch_is_its_members() -> None:
    """Some fields have a batch axis, some are shared: the gradient of a shared field is a sum."""
    model, params, state = busy()
    slower = [state, state.replace(velocity=leaf(0.7 * state.velocity.data))]
    harder = [params, params.replace(mass=leaf(params.mass.data[::-1]))]
    both = (
        model,
        params.replace(mass=leaf(np.stack([each.mass.data for each in harder]))),
        state.replace(velocity=leaf(np.stack([each.velocity.data for each in slower]))),
    )
    together = evaluate(both, along=False, keep="final")
    apart = []
    for member in range(2):
        pick = copy_leaves(harder[member], slower[member])
        final = rollout(model, *pick, steps=STEPS, keep="final").final
        sum(
            ((weights((2, *field.shape), seed)[member] * field).sum() for seed, field in enumerate(final.tensors())),
            start=tensor(0.0),
        ).backward()
        apart.append({name: x.grad.data for name, x in zip(NAMES, leaves(*pick), strict=True) if x.grad is not None})
    for name in NAMES:
        expected = [each[name] for each in apart]
        joined = np.stack(expected) if name in ("mass", "velocity") else sum(expected)
        np.testing.assert_allclose(together[f"gradient by {name}"], joined, rtol=0, atol=1e-12 * np.abs(joined).max())


def test_the_gradient_of_a_motion_is_right() -> None:
    """Check derivatives by every input, through impacts of balls, cushions and a ball that comes to rest."""
    model, params, state = busy()

    def end(*inputs: Tensor) -> tuple[Tensor, ...]:
        final: State = rollout(model, *unpack(*inputs), steps=STEPS, keep="final").final
        return final.tensors()

    gradcheck(end, leaves(params, state), mode="projected", repeats=2, tolerance=1e-7)


def test_tangents_are_refused_by_name() -> None:
    model, params, state = busy()
    with pytest.raises(MissingJvp, match="BilliardsEngine"):
        jvp(
            lambda x: rollout(model, params, state.replace(position=x), steps=3, keep="final").final.position,
            state.position,
            (np.ones(state.position.shape),),
        )


@pytest.mark.gpu
def test_a_motion_is_the_same_in_either_precision() -> None:
    """Two balls collide and one of them hits a cushion; the final state is known."""
    case = table([[0.2, 0.5], [0.5, 0.5]], [[0.5, 0.0], [0.0, 0.0]], restitution=1.0, corners=([0.0, 0.0], [1.0, 1.0]))
    model, params, state = case
    final = rollout(model, params, state, steps=20, keep="final").final
    # They collide after 0.4 s. Then ball 1 travels 0.8 m: 0.45 m to the cushion, from which it returns at 0.35 m/s.
    np.testing.assert_allclose(final.position.data, [[0.4, 0.5], [0.95 - 0.7 * 0.35, 0.5]], atol=2e-6)
    final.position[1, 0].backward()
    assert state.position.grad is not None
    np.testing.assert_allclose(state.position.grad.data[:, 0], [-0.7, 0.0], atol=2e-5)
