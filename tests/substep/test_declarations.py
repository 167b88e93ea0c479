"""Declarations that do not fit raise at once: they name the function, what must hold, what was found, and a remedy."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.autograd.errors import InputError, MissingJvp
from simphys.autograd.kernels.runtime import ti
from simphys.autograd.proof.gradcheck import dot_product_test
from simphys.numerics.element import element_of
from simphys.rollout import rollout
from simphys.substep import edges, element, faces, pairs, per_element, total
from simphys.substep.draft import NotDeclared
from simphys.substep.read_step import read_step

from ..helpers.any_model import make_model


@element
def grow(x, k):
    return k * x


@grow.adjoint
def adj_grow(x, k, adj):
    return k * adj, x * adj


OWN = {"x": "position", "k": "rate"}
Grow = per_element(grow, over="nodes", own=OWN)
MODEL = SimpleNamespace(ends=np.array([[0, 1], [1, 2]]))


def test_an_adjoint_takes_the_inputs_and_an_adjoint_for_each_result() -> None:
    @element
    def pair(x, k):
        return k * x, k + x

    with pytest.raises(InputError, match=r"test_declarations.py:\d+, adj_pair: the adjoint of pair takes .*2 adjoints"):

        @pair.adjoint
        def adj_pair(x, k, adj):
            return k * adj, x * adj


def test_an_adjoint_returns_a_value_for_each_input_that_varies() -> None:
    @element
    def shift(x, k):
        return k + x

    @shift.adjoint
    def adj_shift(x, k, adj):
        return adj

    with pytest.raises(InputError, match="adj_shift: it returns an adjoint for each of x, k: 2 values; found 1"):
        per_element(shift, over="nodes", own=OWN)
    per_element(shift, over="nodes", own={"x": "position"}, constant={"k": "rate"})


def test_a_tangent_takes_a_tangent_of_each_input_that_varies() -> None:
    @element
    def shift(x, k):
        return k + x

    @shift.adjoint
    def adj_shift(x, k, adj):
        return adj, adj

    with pytest.raises(InputError, match=r"jvp_shift: the tangent of shift takes \(x, k\) and then, in order, any of"):

        @shift.tangent
        def jvp_shift(x, k, dk, dx):
            return dk + dx

    @shift.tangent
    def jvp_of_x(x, k, dx):
        return dx

    with pytest.raises(InputError, match="jvp_of_x: it takes a tangent for each of x, k; found x"):
        per_element(shift, over="nodes", own=OWN)


def test_an_element_without_an_adjoint_is_not_declared() -> None:
    @element
    def shift(x):
        return x

    with pytest.raises(InputError, match=r"element shift: an element has an adjoint; found none. Add @shift.adjoint"):
        per_element(shift, over="nodes", own={"x": "position"})
    with pytest.raises(InputError, match="its first argument is an element function"):
        per_element(np.sin, over="nodes", own={"x": "position"})


@pytest.mark.parametrize("own", [{"x": "position"}, {**OWN, "z": "depth"}])
def test_every_parameter_has_an_array_and_every_array_a_parameter(own: dict[str, str]) -> None:
    with pytest.raises(InputError, match=r"PerElement\(grow\): it names an array for each of x, k; found"):
        per_element(grow, over="nodes", own=own)


def test_results_are_named_and_have_the_shape_of_a_parameter() -> None:
    with pytest.raises(InputError, match="names 1 results"):
        per_element(grow, over="nodes", own=OWN, results={"a": "x", "b": "k"})
    with pytest.raises(InputError, match="a has the shape of a parameter; found depth"):
        per_element(grow, over="nodes", own=OWN, results={"a": "depth"})


@pytest.mark.parametrize("unread", [{"k": ("x", "depth")}, {"depth": ("k", "x")}, {"k": ("x", "x")}])
def test_an_unread_parameter_and_the_one_in_its_place_are_of_one_kind(unread: Any) -> None:
    with pytest.raises(InputError, match=r"Edges\(grow\): unread names a parameter, .* found"):
        edges(grow, between={"x": "position"}, own={"k": "rate"}, onto="force", unread=unread)


def test_arrays_of_an_index_set_have_one_length() -> None:
    with pytest.raises(InputError, match="an entry for each of the nodes; found position has 3, rate has 2"):
        Grow.apply(MODEL, tensor(np.ones(3)), tensor(np.ones(2)))


def test_a_sub_step_takes_the_model_and_all_arrays() -> None:
    with pytest.raises(InputError, match="Grow: it takes the model, and position, rate; found 2 arguments"):
        Grow.apply(MODEL, tensor(np.ones(3)))
    with pytest.raises(InputError, match=r"rate is a Tensor; found 2\.0"):
        Grow.apply(MODEL, tensor(np.ones(3)), 2.0)


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        ([[0, 1], [1, 5]], r"`ends` of the model lies in 0 ... 2; found 0 ... 5"),
        ([0, 1], r"`ends` of the model is integers of shape \(2, 2\)"),
        ([[0.0, 1.0]], r"`ends` of the model is integers of shape \(1, 2\); found float64"),
    ],
)
def test_relations_lie_within_their_index_set(ends: Any, message: str) -> None:
    @element
    def attract(d):
        return 2.0 * d

    @attract.adjoint
    def adj_attract(d, adj):
        return 2.0 * adj

    attraction = edges(attract, between={"d": "position"}, onto="force")
    with pytest.raises(InputError, match=message):
        attraction.apply(SimpleNamespace(ends=np.array(ends)), tensor(np.ones((3, 2))))


def test_a_tangent_that_no_element_has_is_refused_by_name() -> None:
    @element
    def settle(x, k):
        y = x
        while y > k:
            y = y - k
        return y

    @settle.adjoint
    def adj_settle(x, k, adj):
        return adj, 0.0 * adj

    Settle = per_element(settle, over="nodes", own=OWN)

    def step(model: Any, params: Any, state: Any, control: None = None) -> Any:
        return model.State(Settle.apply(model, state.position, params.rate))

    start, model = tensor(np.ones(3), requires_grad=True), make_model(step, {"rate": (3,)}, {"position": (3,)})
    params = model.Params(tensor(np.ones(3)))
    with pytest.raises(MissingJvp, match=r"settle has no tangent: .*:\d+: `while y > k:` .* Add @settle\.tangent, or"):
        dot_product_test(lambda x: rollout(model, params, model.State(x), steps=2).final.position, start)


def test_all_declarations_of_a_function_let_the_same_vary() -> None:
    """Its adjoint and its tangent are those of these inputs."""

    @element
    def scale(x, k):
        return k * x

    @scale.adjoint
    def adj_scale(x, k, adj):
        return k * adj

    per_element(scale, over="nodes", own={"x": "position"}, constant={"k": "factor"})
    with pytest.raises(InputError, match=r"adj_scale: all its declarations let x vary; found k"):
        per_element(scale, over="nodes", own={"k": "rate"}, constant={"x": "place"})


def test_the_rules_are_read_from_the_source() -> None:
    @element
    def bend(x, k, c):
        if c > 0:
            x = k * x
        return x, k

    rules = element_of(bend, "here").forward
    assert rules.results == (frozenset({"x", "k", "c"}), frozenset({"k"}))
    assert rules.reads((False, True)) == {"k"}

    @element
    def drain(x, k, c):
        r = ti.sqrt(x.dot(x))
        q = k * r
        return q * x, c * r, 0.5 * (k - c)

    vanishing = element_of(drain, "here").forward.vanishing
    assert vanishing(["k"]) == (True, False, False)
    assert vanishing(["k", "c"]) == (True, True, True)
    assert vanishing([]) == (False, False, False)


def test_branches_return_the_same_number_of_values() -> None:
    with pytest.raises(InputError, match="element odd: it returns 2 values; found 1"):

        @element
        def odd(x):
            if x > 0:
                return x, x
            return x


def test_what_cannot_be_recorded_says_so() -> None:
    def step(model: Any, params: Any, state: Any, control: None = None) -> Any:
        return model.State(state.position.data)

    with pytest.raises(NotDeclared, match="the numbers of a value"):
        read_step(make_model(step, {"rate": (3,)}, {"position": (3,)}), step, controlled=False)


@element
def push(d):
    return -d


@push.adjoint
def adj_push(d, force, adj_force):
    return -adj_force + 0 * force


PUSHES = {
    "edges": lambda: edges(push, between={"d": "position"}, onto="force"),
    "faces": lambda: faces(push, between={"d": "level"}, onto="gain"),
    "pairs": lambda: pairs(push, between={"d": "position"}, onto="force", over="nodes"),
    "total": lambda: total(push, own={"d": "position"}, over="nodes"),
}


@pytest.mark.parametrize("kind", PUSHES)
def test_rules_do_not_take_results_that_their_elements_add_up_to(kind: str) -> None:
    with pytest.raises(InputError, match=r"no rule takes the results: .* found push has one that does"):
        PUSHES[kind]()
