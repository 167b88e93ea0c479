"""Steps that anybody may write: fused they are what they are nested, or they are refused with a remedy."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, jvp, ops, tensor
from simphys.autograd.errors import InputError
from simphys.autograd.kernels.runtime import ti
from simphys.rollout import rollout
from simphys.substep import edges, element, operation, pairs, per_element, weighted
from simphys.substep.weighted import Weights

from ..helpers.any_model import assert_fused_is_nested, evaluate_step, make_model

G = 9.81


@element
def multiply(x, k):
    return x * k


@multiply.adjoint
def adj_multiply(x, k, adj):
    return k * adj, x * adj


@multiply.tangent
def jvp_multiply(x, k, dx, dk):
    return dx * k + x * dk


@element
def square(k):
    return k * k


@square.adjoint
def adj_square(k, adj):
    return 2.0 * k * adj


@element
def mix(x, y):
    return x + y * y


@mix.adjoint
def adj_mix(x, y, adj):
    return adj, 2.0 * y * adj


@element
def advance(x, v, h, g):
    return x + g * h * v


@advance.adjoint
def adj_advance(x, v, h, g, adj):
    return adj, g * h * adj


@element
def attract(d):
    return 0.1 * d


@attract.adjoint
def adj_attract(d, adj):
    return 0.1 * adj


Multiply = per_element(multiply, over="things", own={"x": "x", "k": "k"})
Square = per_element(square, over="things", own={"k": "k"})


# --- adjoints in the words of Python


@element
def pull(v, m):
    return v - G * m


@pull.adjoint
def adj_pull(v, m, adj):
    return adj, -G * adj


@element
def annotated(v, m):
    return v * m


@annotated.adjoint
def adj_annotated(v, m, adj):
    by_v: ti.f64 = m * adj
    by_m: ti.f64 = v * adj
    return by_v, by_m


@ti.func
def put(target: ti.template(), value):
    target = value  # noqa: F841 - it is written where the caller has it


@element
def written(v, m):
    return v * m


@written.adjoint
def adj_written(v, m, adj):
    by_v, by_m = 0.0, 0.0
    put(by_v, m * adj)
    put(by_m, v * adj)
    return by_v, by_m


@element
def broken_off(v, m):
    total = 0.0 * v
    for i in range(5):
        if i > m:
            break
        total += v * v
    return total


@broken_off.adjoint
def adj_broken_off(v, m, adj):
    total = 0.0 * v
    for i in range(5):
        if i > m:
            break
        total += 2.0 * v * adj
    return total, 0.0 * m


@pytest.mark.parametrize(
    ("function", "by_v", "by_m"),
    [(pull, 1.0, -G), (annotated, 3.0, 2.0), (written, 3.0, 2.0), (broken_off, 16.0, 0.0)],
    ids=["a captured number", "annotated assignments", "results that a helper writes", "a break by a parameter"],
)
def test_an_adjoint_is_read_as_python_means_it(function: Any, by_v: float, by_m: float) -> None:
    substep = per_element(function, over="things", own={"v": "v", "m": "m"})
    model = make_model(lambda m, p, s, _=None: m.State(substep.apply(m, s.v, p.m)), {"m": (1,)}, {"v": (1,)})
    weight = np.random.default_rng(0).uniform(0.5, 1.5)
    found = assert_fused_is_nested(model, {"m": [3.0], "v": [2.0]}, steps=1)
    np.testing.assert_allclose(found["gradient by v"], weight * by_v, rtol=1e-13)
    np.testing.assert_allclose(found["gradient by m"], weight * by_m, rtol=1e-13)


# --- fields, arrays and index sets in any combination


def step_with_two_sizes(m: Any, p: Any, s: Any, _: Any = None) -> Any:
    return m.State(Multiply.apply(m, s.x, p.k), Multiply.apply(m, s.y, p.q), s.z)


def test_names_of_arrays_and_index_sets_are_any_words() -> None:
    move = per_element(
        advance,
        over="left nodes",
        own={"x": "old position"},
        gathered={"v": ("left nodes", "pick")},
        constant={"h": "time step", "g": "time_step"},
        results={"new position": "x"},
    )

    def step(m: Any, p: Any, s: Any, _: Any = None) -> Any:
        return m.State(move.apply(m, s.x, p.v, np.array([0.1, 0.2]), np.array([3.0, 4.0])))

    model = make_model(step, {"v": (3,)}, {"x": (2,)}, pick=np.array([2, 0]))
    found = assert_fused_is_nested(model, {"v": [1.0, 2.0, 3.0], "x": [0.0, 1.0]}, steps=1)
    np.testing.assert_allclose(found["x"], [0.9, 1.8], rtol=1e-13)


def test_index_sets_of_one_name_may_have_two_sizes() -> None:
    model = make_model(step_with_two_sizes, {"k": (2,), "q": (5,)}, {"x": (2,), "y": (5,), "z": (40,)})
    values = {"k": [2, 2], "q": [1, 2, 3, 4, 5], "x": [1, 2], "y": [1, 2, 3, 4, 5], "z": np.arange(40)}
    assert_fused_is_nested(model, values)


@pytest.mark.parametrize("field", ["the result of a sub-step", "a parameter"])
def test_a_field_of_the_new_state_may_depend_on_parameters_alone(field: str) -> None:
    def step(m: Any, p: Any, s: Any, _: Any = None) -> Any:
        return m.State(Multiply.apply(m, s.x, p.k), p.k if field == "a parameter" else Square.apply(m, p.k))

    model = make_model(step, {"k": (2,)}, {"x": (2,), "y": (2,)})
    found = assert_fused_is_nested(model, {"k": [3, 4], "x": [1, 2], "y": [5, 6]})
    np.testing.assert_array_equal(found["y"], [3, 4] if field == "a parameter" else [9, 16])


def test_a_sub_step_may_take_an_array_element_by_element_and_by_an_index() -> None:
    substep = per_element(mix, over="nodes", own={"x": "x"}, gathered={"y": ("x", "pick")})
    pick = np.array([1, 2, 0])
    model = make_model(lambda m, p, s, _=None: m.State(substep.apply(m, s.x, s.x)), {"k": ()}, {"x": (3,)}, pick=pick)
    found = assert_fused_is_nested(model, {"k": 1, "x": [1, 2, 3]}, steps=1)
    np.testing.assert_array_equal(found["x"], [5, 11, 4])


def test_an_array_of_vectors_may_be_read_by_pairs_and_by_an_index() -> None:
    attraction = pairs(attract, between={"d": "x"}, onto="f", over="nodes")
    picked = per_element(mix, over="bonds", own={"x": "y"}, gathered={"y": ("x", "pick")})

    def step(m: Any, p: Any, s: Any, _: Any = None) -> Any:
        return m.State(attraction.apply(m, s.x), picked.apply(m, s.y, s.x))

    model = make_model(step, {"k": ()}, {"x": (3, 2), "y": (2, 2)}, pick=np.array([0, 2]))
    assert_fused_is_nested(model, {"k": 1, "x": np.arange(6).reshape(3, 2), "y": np.ones((2, 2))})


def test_edges_may_be_the_rows_of_a_matrix_too() -> None:
    attraction = edges(attract, between={"d": "x"}, onto="f")
    sums = weighted("w", of="x", by="matrix", rows="edges", columns="nodes")
    matrix = Weights(np.array([[0, 1], [1, 2]]), np.ones((2, 2)))

    def step(m: Any, p: Any, s: Any, _: Any = None) -> Any:
        return m.State(attraction.apply(m, s.x), sums.apply(m, s.x))

    ends = np.array([[0, 1], [1, 2]])
    shapes = {"x": (3,), "y": (2,)}
    model = make_model(step, {"k": ()}, shapes, ends=ends, nodes=3, edges=2, matrix=matrix)
    assert_fused_is_nested(model, {"k": 1, "x": [1, 2, 4], "y": [1, 1]})


def test_a_field_of_vectors_that_no_sub_step_reads_keeps_its_place() -> None:
    """Its adjoint is cleared as vectors: more would be written behind it."""
    copy = per_element(attract, over="nodes", own={"d": "x"})
    model = make_model(
        lambda m, p, s, _=None: m.State(copy.apply(m, s.x), copy.apply(m, s.x)),
        {"k": ()},
        {"x": (50, 3), "force": (50, 3)},
    )
    assert_fused_is_nested(model, {"k": 1, "x": np.ones((50, 3)), "force": np.ones((50, 3))})


# --- names


NAMES = ["y", "real", "x_2", "member", "t", "total", "before", "entry", "m_x", "x_now", "fn_multiply", "ti", "lambda_"]
TAKEN = ["rows", "steps", "members", "tasks", "first", "begin", "once", "n_things", "size_x", "sum_k", "work_real"]


def two_fields(other: str) -> Any:
    def step(m: Any, p: Any, s: Any, _: Any = None) -> Any:
        return m.State(Multiply.apply(m, s.x, p.k), Multiply.apply(m, getattr(s, other), p.k))

    return make_model(step, {"k": (2,)}, {"x": (2,), other: (2,)})


@pytest.mark.parametrize("other", NAMES)
def test_fields_may_have_any_name_that_stands_for_nothing_else(other: str) -> None:
    assert_fused_is_nested(two_fields(other), {"k": [2, 3], "x": [1, 2], other: [3, 4]})


@pytest.mark.parametrize("other", TAKEN)
def test_fields_named_like_arguments_of_the_engine_are_refused_unless_they_are_right(other: str) -> None:
    try:
        assert_fused_is_nested(two_fields(other), {"k": [2, 3], "x": [1, 2], other: [3, 4]})
    except InputError as error:
        assert re.search(rf"(step, `|found ){other}\b.*Rename the field", str(error))


@pytest.mark.parametrize(("param", "other"), [("k", "dx"), ("k", "adj_x"), ("k", "dense_x"), ("dx", "y"), ("x", "y")])
def test_fields_named_like_tangents_or_adjoints_or_twice_are_refused(param: str, other: str) -> None:
    def step(m: Any, p: Any, s: Any, _: Any = None) -> Any:
        k = getattr(p, param)
        return m.State(Multiply.apply(m, s.x, k), Multiply.apply(m, getattr(s, other), k))

    model = make_model(step, {param: (1,)}, {"x": (1,), other: (1,)})
    record = model.Params(**{param: tensor([2.0])}), model.State(**{"x": tensor([3.0]), other: tensor([5.0])})
    with pytest.raises(InputError, match=r"AnyModel\..*Rename"):
        rollout(model, *record, steps=1)


def test_tangents_of_two_fields_are_their_own() -> None:
    model = make_model(
        lambda m, p, s, _=None: m.State(Multiply.apply(m, s.x, p.k), Multiply.apply(m, s.y, p.k)),
        {"k": (1,)},
        {"x": (1,), "y": (1,)},
    )

    def final(k: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return rollout(model, model.Params(k), model.State(x, y), steps=2).final.tensors()

    leaves = [tensor([value], requires_grad=True) for value in (2.0, 3.0, 5.0)]
    dx, dy = jvp(final, leaves, [[1.0], [1.0], [0.0]])[1]
    np.testing.assert_allclose([*dx, *dy], [16.0, 20.0])


# --- what a step takes from outside


def outside(k: Tensor) -> Any:
    return make_model(lambda m, p, s, _=None: m.State(Multiply.apply(m, s.x, k)), {"p": ()}, {"x": (1,)})


def test_a_tensor_from_outside_that_requires_a_gradient_is_refused() -> None:
    with pytest.raises(InputError, match=r"requires no gradient.*Make it a field of Params"):
        evaluate_step(outside(tensor([2.0], requires_grad=True)), {"p": 1.0, "x": [3.0]})


def test_so_it_is_where_the_step_is_not_declared() -> None:
    k = tensor([2.0], requires_grad=True)
    model = make_model(lambda m, p, s, _=None: m.State(s.x * k * s.x), {"p": ()}, {"x": (1,)})
    with pytest.raises(InputError, match=r"requires no gradient.*Make it a field of Params"):
        evaluate_step(model, {"p": 1.0, "x": [3.0]})


def test_a_tensor_from_outside_that_is_written_counts_from_the_next_rollout_on() -> None:
    k = tensor([2.0])
    model, x = outside(k), tensor([3.0], requires_grad=True)
    before = rollout(model, model.Params(tensor(1.0)), model.State(x), steps=1).final.x
    with k.writable() as values:
        values[0] = 50.0
    after = rollout(model, model.Params(tensor(1.0)), model.State(x), steps=1).final.x
    assert (before.item(), after.item()) == (6.0, 150.0)
    before.sum().backward()
    assert x.grad is not None and x.grad.item() == 2.0


# --- operations


def operate(function: Callable[..., Any], adjoint: Callable[..., Any]) -> Any:
    substep = operation(function, adjoint=adjoint, results={"r": "x"}, name="Operate")
    return make_model(lambda m, p, s, _=None: m.State(substep.apply(m, s.x, p.k)), {"k": (2,)}, {"x": (2,)})


ALIASES = [
    (lambda model, x, k: 2.0 * x + k, lambda model, adj_r: (2.0 * adj_r, adj_r)),
    (lambda model, x, k: 2.0 * x + k[::-1], lambda model, adj_r: (2.0 * adj_r, adj_r[::-1])),
]


@pytest.mark.parametrize(("function", "adjoint"), ALIASES, ids=["one as it is", "a view"])
def test_adjoints_of_an_operation_may_be_the_array_that_it_got(function: Any, adjoint: Any) -> None:
    assert_fused_is_nested(operate(function, adjoint), {"k": [1, 2], "x": [3, 4]})


def good(model: Any, x: Any, k: Any) -> Any:
    return x * k


def adj_good(model: Any, x: Any, k: Any, adj_r: Any) -> Any:
    return k * adj_r, x * adj_r


@pytest.mark.parametrize(
    ("function", "adjoint", "message"),
    [
        (
            lambda model, x, k: x[:1],
            adj_good,
            r"r, which its forward returns.*shape \[2\]; found float64 of shape \[1\]",
        ),
        (lambda model, x, k: np.array([1, 2]), adj_good, "found int64"),
        (lambda model, x, k: x + 1j, adj_good, "found complex128"),
        (lambda model, x, k: None, adj_good, "found object"),
        (good, lambda model, adj_r: (adj_r[:1], None), r"the adjoint of x.*found float64 of shape \[1\]"),
        (good, lambda model, adj_r: (adj_r, 1j * adj_r), "the adjoint of k.*found complex128"),
        (good, lambda model, adj_r: adj_r, "its adjoint returns 2 values.*found 1"),
    ],
)
@pytest.mark.parametrize("mode", ["nested", "fused"])
def test_an_operation_returns_arrays_of_its_shapes(function: Any, adjoint: Any, message: str, mode: str) -> None:
    with pytest.raises(InputError, match=message):
        evaluate_step(operate(function, adjoint), {"k": [1, 2], "x": [3, 4]}, mode=mode)


def as_tuple(m: Any, p: Any, s: Any, _: Any = None) -> Any:
    return (Multiply.apply(m, s.x, p.k),)


def as_none(m: Any, p: Any, s: Any, _: Any = None) -> Any:
    m.State(Multiply.apply(m, s.x, p.k))


def as_params(m: Any, p: Any, s: Any, _: Any = None) -> Any:
    return m.Params(Multiply.apply(m, s.x, p.k))


@pytest.mark.parametrize("mode", ["fused", "step", "nested"])
@pytest.mark.parametrize(
    ("step", "told"),
    [
        (as_tuple, "must return the State after the step; found a tuple. End it with `return State(x=...)`."),
        (as_none, "must return the State after the step; found None. End it with `return State(x=...)`."),
        (as_params, "must give each field of State: x; found no x and unknown k. Add what is missing"),
    ],
)
@pytest.mark.parametrize("declared", [True, False])
def test_a_step_returns_its_state(step: Any, told: str, declared: bool, mode: str) -> None:
    def undeclared(m: Any, p: Any, s: Any, _: Any = None) -> Any:
        return step(m, p, s.replace(x=ops.norm(s.x, axis=-1, keepdims=True) + s.x))

    model = make_model(step if declared else undeclared, {"k": (2,)}, {"x": (2,)})
    with pytest.raises(InputError, match="step of AnyModel: " + re.escape(told)):
        evaluate_step(model, {"k": [1.0, 2.0], "x": [3.0, 4.0]}, mode=mode)
