"""Rows: in order, in sweeps; their derivatives, nested and generated; and declarations that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.errors import InputError
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.substep import Parameters

from ..helpers import sweeps
from ..helpers.contract import System, assert_same, evaluate
from ..helpers.sweeps import Chain, Solve, declare, make_chain

STEPS = 3


def solve(*inputs: Tensor) -> Any:
    """Apply the sub-step to the state and the parameters, in their order."""
    return Solve.apply(Chain(), *inputs)


def leaves() -> tuple[Tensor, ...]:
    _, params, state = make_chain()
    return *state.tensors(), *params.tensors()


def test_its_derivatives_are_right() -> None:
    gradcheck(solve, leaves(), tolerance=1e-7)
    dot_product_test(solve, leaves(), tolerance=1e-12)


def test_it_is_a_loop_over_sweeps_kinds_and_rows() -> None:
    """The world, -1, has no inverse mass and no velocity, and keeps none."""
    v, joint, contact, w, n, t, b = [np.array(x.data) for x in leaves()]
    v, w = np.vstack([v, np.zeros(2)]), np.append(w, 0.0)
    pressed = set()
    for _ in range(3):
        for k, (i, j) in enumerate(Chain().joints):
            change = b * (t[k] - n[k] @ (v[i] - v[j])) / ((w[i] + w[j]) * (n[k] @ n[k]))
            v[i], v[j] = v[i] + w[i] * change * n[k], v[j] - w[j] * change * n[k]
            joint[k] += change
        for k, (i, j) in enumerate(Chain().contacts):
            change = max(contact[k] - 0.5 * (v[i] - v[j])[1] / (w[i] + w[j]), 0.0) - contact[k]
            v[i, 1], v[j, 1] = v[i, 1] + w[i] * change, v[j, 1] - w[j] * change
            contact[k] += change
            pressed.add(bool(contact[k] > 0))
    assert pressed == {False, True}
    for found, expected in zip(solve(*leaves()), (v[:4], joint, contact), strict=True):
        np.testing.assert_allclose(found.data, expected, rtol=1e-14)


def batch() -> System:
    model, params, state = make_chain()
    velocity, mass = state.velocity.data, params.inverse_mass.data
    leaf = [tensor(np.stack([x, 0.9 * x]), requires_grad=True) for x in (velocity, mass)]
    return System(model, params.replace(inverse_mass=leaf[1]), state.replace(velocity=leaf[0]))


@pytest.mark.parametrize("make", [lambda: System(*make_chain()), batch], ids=["one", "two members"])
def test_generated_engines_agree_with_the_nested_graph(make: Any) -> None:
    expected = evaluate(make(), STEPS, mode="nested")
    for options in ({}, {"deterministic": False}, {"mode": "step"}):
        assert_same(evaluate(make(), STEPS, **options), expected, 1e-11)


def test_no_rows_and_no_sweeps_change_nothing() -> None:
    inputs = leaves()
    for found, given in zip(Solve.apply(Chain(sweeps=0), *inputs), inputs, strict=False):
        np.testing.assert_array_equal(found.data, given.data)


OTHER = Parameters(both={**sweeps.BOTH}, own={"s": "joint impulse"})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kinds": [sweeps.JOINT]}, r"a row reads what is kept; found contact_impulse"),
        (
            {"kinds": [sweeps.JOINT, sweeps.CONTACT._replace(parameters=OTHER)]},
            r"one kind of rows.*joints and contacts",
        ),
        ({"kept": ("joint_impulse",)}, r"replace entries of the state; found s"),
        ({"kinds": [sweeps.CONTACT._replace(replaces=("v_a", "v_b"))]}, r"3 results for v_a, v_b"),
        ({"kinds": [sweeps.CONTACT._replace(parameters=Parameters(own={"s": "s"}))]}, r"nothing for v_a"),
    ],
)
def test_declarations_that_do_not_fit(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        declare(**changes)


def test_models_and_arrays_that_do_not_fit() -> None:
    velocity, *others = leaves()
    with pytest.raises(InputError, match=r"`contacts` of the model lies in 0 ... 3"):
        Solve.apply(Chain(contacts=np.array([[0, 4], [1, 2]])), velocity, *others)
    with pytest.raises(InputError, match=r"has an entry for each of the joints; found shape \(2,\)"):
        Solve.apply(Chain(), velocity, others[0][:2], *others[1:])
    with pytest.raises(InputError, match=r"`sweeps` of the model is a count; found -1"):
        Solve.apply(Chain(sweeps=-1), velocity, *others)
