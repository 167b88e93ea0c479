"""Routines: functions over named arrays; their derivatives, nested and generated; and declarations that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, linearize
from simphys.autograd.errors import InputError, MissingJvp
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.rollout.engine import plan

from ..helpers import roots
from ..helpers.contract import System, assert_same, evaluate
from ..helpers.roots import FIELDS, Find, Roots, make_roots
from ..helpers.rounding import assert_equal_but_for_rounding

STEPS = 4


def find(*inputs: Tensor) -> Any:
    return Find.apply(Roots(), *inputs)[0]


def leaves() -> tuple[Tensor, ...]:
    _, params, state = make_roots()
    return *state.tensors(), *params.tensors()


def test_its_derivatives_are_right() -> None:
    gradcheck(find, leaves(), tolerance=1e-8)
    dot_product_test(find, leaves(), tolerance=1e-12)


def test_it_runs_its_function_and_hides_the_tape() -> None:
    place, stiffness, push, unused = leaves()
    root, positive = Find.apply(Roots(), place, stiffness, push, unused)
    y, k = root.data, stiffness.data[:, None]
    assert_equal_but_for_rounding(y + k * y**3, place.data + 1.5 * push.data, ulps=100)
    np.testing.assert_array_equal(positive.data, (y > 0).sum(axis=1))
    assert not positive.requires_grad


def test_a_tangent_that_follows_from_the_source_is_that_by_hand() -> None:
    derived, inputs = roots.declare(FIELDS._replace(moving=("guess",)), tangent=None), leaves()
    directions = [np.random.default_rng(5).standard_normal(x.shape) for x in inputs]
    by_hand, found = [linearize([each.apply(Roots(), *inputs)[0]], inputs)(*directions)[0] for each in (Find, derived)]
    assert_equal_but_for_rounding(found, by_hand, ulps=100)
    assert np.abs(found).min() > 1e-3


def test_what_moves_and_is_read_has_room_for_its_tangent() -> None:
    derived, inputs = roots.declare(tangent=None), leaves()
    with pytest.raises(MissingJvp, match="guess has no room for its tangent"):
        linearize([derived.apply(Roots(), *inputs)[0]], inputs)


@pytest.mark.parametrize("members", [(), (2,)], ids=["one", "two members"])
def test_generated_engines_agree_with_the_nested_graph(members: tuple[int, ...]) -> None:
    expected = evaluate(System(*make_roots(*members)), STEPS, mode="nested")
    for options in ({}, {"deterministic": False}, {"mode": "step"}, {"memory": "3kB"}):
        assert_same(evaluate(System(*make_roots(*members)), STEPS, **options), expected, 1e-12)


def test_a_long_step_with_a_routine_is_right_in_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its loops are kernels of their own, each of which goes through one step at a time."""
    expected = evaluate(System(*make_roots(2)), STEPS, mode="nested")
    monkeypatch.setattr(plan, "LONG", 0)
    assert_same(evaluate(System(*make_roots(2)), STEPS), expected, 1e-12)


def test_models_of_different_sizes_have_results_of_theirs() -> None:
    place, stiffness, push, unused = leaves()
    few = Find.apply(Roots(n=2), place[:2], stiffness[:2], push, unused)[0]
    assert_equal_but_for_rounding(few.data, find(place, stiffness, push, unused).data[:2], ulps=100)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"choices": ("slope",)}, r"slope is an input or a result"),
        ({"moving": ("root",)}, r"root is on the tape or in the workspace"),
        ({"work": ("slope",)}, r"slope has one meaning"),
    ],
)
def test_declarations_that_do_not_fit(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        roots.declare(FIELDS._replace(**changes))


def test_models_and_arrays_that_do_not_fit() -> None:
    place, *others = leaves()
    with pytest.raises(InputError, match=r"place has the shape \[3, 2\]; found \[2, 2\]"):
        Find.apply(Roots(), place[:2], *others)
    with pytest.raises(InputError, match=r"speed has a shape"):
        roots.declare(FIELDS._replace(work=("guess", "speed"))).apply(Roots(), place, *others)
    with pytest.raises(InputError, match=r"mass is a constant of the model"):
        roots.declare(of_model=("n", "solver", "mass")).apply(Roots(), place, *others)
