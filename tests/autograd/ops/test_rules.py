"""Every rule, over dtypes and shapes: values against NumPy, adjoints against differences, tangents against adjoints."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from simphys.autograd import Tensor, grad, no_grad, ops, tensor

Array = np.ndarray
Shape = tuple[int, ...]


class Rule(NamedTuple):
    """A call written for `ops` and for NumPy alike, the shapes of its inputs, and where these are drawn from."""

    call: Callable[..., Any]
    shapes: Sequence[tuple[Shape, ...]]
    domain: str = "real"  # away from 0, where kinks are; or "positive"


def placed(base: Array, index: Any, values: Array) -> Array:
    result = base.copy()
    result[index] = values
    return result


NUMPY = SimpleNamespace(**{name: getattr(np, name) for name in ops.__all__ if hasattr(np, name)})
NUMPY.sub, NUMPY.mul, NUMPY.div, NUMPY.neg, NUMPY.pow = np.subtract, np.multiply, np.divide, np.negative, np.power
NUMPY.sigmoid = lambda x: 1 / (1 + np.exp(-x))
NUMPY.softplus = lambda x: np.log(1 + np.exp(x))
NUMPY.norm = np.linalg.norm
NUMPY.clone = np.copy
NUMPY.astype = lambda x, dtype: x.astype(dtype)
NUMPY.getitem = operator.getitem
NUMPY.put = placed

Shapes = list[tuple[Shape, ...]]
ONE: Shapes = [((),), ((0,),), ((3,),), ((2, 3),), ((2, 0, 3),)]
FULL: Shapes = [((1,),), ((3,),), ((2, 3),), ((2, 3, 2),)]
TWO: Shapes = [
    *[((), ()), ((0,), ()), ((0,), (1,)), ((3,), (3,)), ((2, 3), (3,)), ((), (2, 2))],
    *[((2, 1), (1, 3)), ((1, 1), (3,)), ((2, 1, 2), (3, 1))],
]
PRODUCTS: Shapes = [
    *[((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 2)), ((2, 2, 3), (3, 2)), ((2, 2, 3), (3,))],
    *[((3,), (2, 3, 2)), ((2, 3), (2, 3, 2)), ((2, 1, 2, 3), (3, 3, 1)), ((1, 2, 3), (2, 3, 2))],
    *[((0, 3), (3, 2)), ((2, 0), (0, 3)), ((2, 2, 0), (0, 3)), ((0,), (0,))],
]
MASK = np.array([[True, False, True], [False, False, True]])
ROWS = np.array([1, 0, 1, -1])
LOW, HIGH = np.array([[-0.7], [-1.1]], np.float32), np.array([0.1, 0.2, 1.3], np.float32)

RULES = {
    "add": Rule(lambda o, x, y: o.add(x, y), TWO),
    "add number": Rule(lambda o, x: o.add(1, x), ONE),
    "sub": Rule(lambda o, x, y: o.sub(x, y), TWO),
    "sub number": Rule(lambda o, x: o.sub(0.5, x), ONE),
    "mul": Rule(lambda o, x, y: o.mul(x, y), TWO),
    "mul number": Rule(lambda o, x: o.mul(x, 3), ONE),
    "div": Rule(lambda o, x, y: o.div(x, y), TWO),
    "div by number": Rule(lambda o, x: o.div(x, 3.0), ONE),
    "div number": Rule(lambda o, x: o.div(3.0, x), ONE),
    "neg": Rule(lambda o, x: o.neg(x), ONE),
    "pow": Rule(lambda o, x, y: o.pow(x, y), TWO, "positive"),
    "pow by number": Rule(lambda o, x: o.pow(x, 3), ONE),
    "pow by negative number": Rule(lambda o, x: o.pow(x, -1.5), ONE, "positive"),
    "pow of number": Rule(lambda o, x: o.pow(2.0, x), ONE),
    "square": Rule(lambda o, x: o.square(x), ONE),
    "abs": Rule(lambda o, x: o.abs(x), ONE),
    "maximum": Rule(lambda o, x, y: o.maximum(x, y), TWO),
    "maximum number": Rule(lambda o, x: o.maximum(x, 0.01), ONE),
    "minimum": Rule(lambda o, x, y: o.minimum(x, y), TWO),
    "minimum number": Rule(lambda o, x: o.minimum(0.01, x), ONE),
    "clip": Rule(lambda o, x: o.clip(x, -1.0, 0.9), ONE),
    "clip below": Rule(lambda o, x: o.clip(x, 0.05, None), ONE),
    "clip above": Rule(lambda o, x: o.clip(x, None, 0.05), ONE),
    "clip by arrays": Rule(lambda o, x: o.clip(x, LOW, HIGH), [((),), ((3,),), ((2, 3),)]),
    "where": Rule(lambda o, x, y: o.where(MASK, x, y), [((), ()), ((2, 3), (3,)), ((2, 1), (2, 2, 3))]),
    "where number": Rule(lambda o, x: o.where(MASK, x, 0.5), [((),), ((2, 3),)]),
    "exp": Rule(lambda o, x: o.exp(x), ONE),
    "log": Rule(lambda o, x: o.log(x), ONE, "positive"),
    "sqrt": Rule(lambda o, x: o.sqrt(x), ONE, "positive"),
    "sin": Rule(lambda o, x: o.sin(x), ONE),
    "cos": Rule(lambda o, x: o.cos(x), ONE),
    "tanh": Rule(lambda o, x: o.tanh(x), ONE),
    "sigmoid": Rule(lambda o, x: o.sigmoid(x), ONE),
    "softplus": Rule(lambda o, x: o.softplus(x), ONE),
    "sum": Rule(lambda o, x: o.sum(x), ONE),
    "sum over one": Rule(lambda o, x: o.sum(x, -1), ONE[1:]),
    "sum over none": Rule(lambda o, x: o.sum(x, ()), ONE),
    "sum over two": Rule(lambda o, x: o.sum(x, (0, -1), keepdims=True), [((2, 3),), ((2, 3, 2),), ((0, 3),)]),
    "mean": Rule(lambda o, x: o.mean(x), FULL),
    "mean over one": Rule(lambda o, x: o.mean(x, 0), [*FULL, ((3, 0),)]),
    "mean over two": Rule(lambda o, x: o.mean(x, (0, 1), keepdims=True), FULL[2:]),
    "max": Rule(lambda o, x: o.max(x), FULL),
    "max over one": Rule(lambda o, x: o.max(x, -1), [*FULL, ((0, 3),)]),
    "max over two": Rule(lambda o, x: o.max(x, (0, 1), keepdims=True), FULL[2:]),
    "min": Rule(lambda o, x: o.min(x), FULL),
    "min over one": Rule(lambda o, x: o.min(x, 0), [*FULL, ((3, 0),)]),
    "norm": Rule(lambda o, x: o.norm(x), FULL),
    "norm over one": Rule(lambda o, x: o.norm(x, axis=-1), [*FULL, ((0, 3),)]),
    "norm over two": Rule(lambda o, x: o.norm(x, axis=(0, 1), keepdims=True), FULL[2:]),
    "matmul": Rule(lambda o, x, y: o.matmul(x, y), PRODUCTS),
    "reshape": Rule(lambda o, x: o.reshape(x, (3, -1)), [((3,),), ((2, 3),), ((0, 3),)]),
    "reshape flat": Rule(lambda o, x: o.reshape(x, -1), ONE),
    "transpose": Rule(lambda o, x: o.transpose(x), ONE),
    "transpose axes": Rule(lambda o, x: o.transpose(x, (1, -1, 0)), [((2, 3, 4),)]),
    "broadcast_to": Rule(lambda o, x: o.broadcast_to(x, (2, 3)), [((),), ((3,),), ((2, 1),)]),
    "astype": Rule(lambda o, x: o.astype(x, x.dtype), ONE),
    "clone": Rule(lambda o, x: o.clone(x), ONE),
    "stack": Rule(lambda o, x, y: o.stack([x, y], -1), [((), ()), ((0,), (0,)), ((2, 3), (2, 3))]),
    "stack array": Rule(lambda o, x: o.stack([np.ones(2, x.dtype), x]), [((2,),)]),
    "concatenate": Rule(
        lambda o, x, y: o.concatenate([x, y], -1), [((0,), (0,)), ((2,), (3,)), ((2, 0), (2, 3)), ((2, 1), (2, 3))]
    ),
    "concatenate array": Rule(lambda o, x: o.concatenate([x, np.ones((1, 2), x.dtype)]), [((2, 2),)]),
    "getitem": Rule(lambda o, x: o.getitem(x, (-1, None, ...)), FULL),
    "getitem step": Rule(lambda o, x: o.getitem(x, slice(None, None, -2)), ONE[1:]),
    "getitem mask": Rule(lambda o, x: o.getitem(x, MASK), FULL[2:]),
    "getitem repeated": Rule(lambda o, x: o.getitem(x, ROWS), FULL[1:]),
    "getitem mixed": Rule(lambda o, x: o.getitem(x, (slice(1), ROWS)), FULL[2:]),
    "put": Rule(lambda o, x, y: o.put(x, 1, y), [((3,), ()), ((2, 3), (3,)), ((2, 3), ()), ((2, 3), (1, 3))]),
    "put mask": Rule(lambda o, x, y: o.put(x, MASK, y), [((2, 3), (3,)), ((2, 3), ())]),
    "put repeated": Rule(lambda o, x, y: o.put(x, ROWS, y), [((4,), (4,)), ((4, 2), (4, 2)), ((4,), (1,))]),
    "put into array": Rule(lambda o, y: o.put(np.zeros(3, y.dtype), ROWS[:2], y), [((2,),)]),
}

CASES = [pytest.param(rule, shapes, id=f"{name} {shapes}") for name, rule in RULES.items() for shapes in rule.shapes]


def draw(rule: Rule, shapes: tuple[Shape, ...]) -> list[Array]:
    rng = np.random.default_rng(7)
    signs = (1.0,) if rule.domain == "positive" else (-1.0, 1.0)
    return [np.asarray(rng.uniform(0.2, 2.0, shape) * rng.choice(signs, shape)) for shape in shapes]


def leaves(arrays: Sequence[Array], dtype: Any = np.float64) -> list[Tensor]:
    return [tensor(array, requires_grad=True, dtype=dtype) for array in arrays]


def pulled(y: Tensor, u: Array, inputs: Sequence[Tensor]) -> list[Array]:
    """The adjoint of each input for the adjoint u of the result."""
    adjoints = grad(y, inputs, [u], retain_graph=True, allow_unused=True)
    return [np.zeros(x.shape) if g is None else g.data for g, x in zip(adjoints, inputs, strict=True)]


def pushed(y: Tensor, tangents: Sequence[Array | None]) -> Array:
    """The tangent of a result that one node made of the inputs with these tangents."""
    assert y.grad_fn is not None
    given = iter(tangents)
    with no_grad():
        return np.asarray(
            y.grad_fn.function.jvp(y.grad_fn, *[None if edge is None else next(given) for edge in y.grad_fn.edges])
        )


def differences(f: Callable[..., Any], arrays: Sequence[Array], u: Array, step: float = 1e-5) -> list[Array]:
    """Central differences of sum(u * f), one element of one input after the other."""
    gradients = []
    for array in arrays:
        gradient = np.zeros(array.shape)
        for place in np.ndindex(array.shape):
            there = array[place]
            array[place] = there + step
            above = np.sum(u * f(*arrays))
            array[place] = there - step
            gradient[place] = (above - np.sum(u * f(*arrays))) / (2 * step)
            array[place] = there
        gradients.append(gradient)
    return gradients


def check_adjoint(rule: Rule, shapes: tuple[Shape, ...]) -> None:
    arrays = draw(rule, shapes)
    inputs = leaves(arrays)
    y = rule.call(ops, *inputs)
    u = np.random.default_rng(8).normal(size=y.shape)
    for ours, expected in zip(pulled(y, u, inputs), differences(partial(rule.call, NUMPY), arrays, u), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-7, atol=1e-7)


def check_tangent(rule: Rule, shapes: tuple[Shape, ...]) -> None:
    """u . (J v) = (J^T u) . v, with a tangent for all inputs and for one input alone."""
    inputs = leaves(draw(rule, shapes))
    y = rule.call(ops, *inputs)
    rng = np.random.default_rng(9)
    u = rng.normal(size=y.shape)
    v = [rng.normal(size=x.shape) for x in inputs]
    products = [np.sum(a * b) for a, b in zip(pulled(y, u, inputs), v, strict=True)]
    choices: list[list[Array | None]] = [list(v), *[[b if b is a else None for b in v] for a in v]]
    for tangents, expected in zip(choices, [sum(products), *products], strict=True):
        tangent = pushed(y, tangents)
        assert tangent.shape == y.shape
        np.testing.assert_allclose(np.sum(u * tangent), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("rule", "shapes"), CASES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_are_those_of_numpy_in_the_dtype_of_the_inputs(
    rule: Rule, shapes: tuple[Shape, ...], dtype: Any
) -> None:
    arrays = [array.astype(dtype) for array in draw(rule, shapes)]
    y = rule.call(ops, *leaves(arrays, dtype))
    expected = np.asarray(rule.call(NUMPY, *arrays))
    assert y.shape == expected.shape
    assert y.dtype == dtype
    np.testing.assert_allclose(y.data, expected, rtol=1e-14 if dtype is np.float64 else 1e-6)


@pytest.mark.parametrize(("rule", "shapes"), CASES)
def test_adjoints_are_the_differences(rule: Rule, shapes: tuple[Shape, ...]) -> None:
    check_adjoint(rule, shapes)


@pytest.mark.parametrize(("rule", "shapes"), CASES)
def test_tangents_and_adjoints_are_transposes(rule: Rule, shapes: tuple[Shape, ...]) -> None:
    check_tangent(rule, shapes)


@pytest.mark.parametrize(("rule", "shapes"), CASES)
def test_adjoints_in_f32_are_those_in_f64_but_for_rounding(rule: Rule, shapes: tuple[Shape, ...]) -> None:
    """To 2e-6 of the largest: some ten roundings."""
    arrays = [array.astype(np.float32) for array in draw(rule, shapes)]
    single, double = leaves(arrays, np.float32), leaves(arrays)
    y = rule.call(ops, *single)
    u = np.random.default_rng(8).normal(size=y.shape).astype(np.float32)
    for ours, expected in zip(pulled(y, u, single), pulled(rule.call(ops, *double), u, double), strict=True):
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, expected, rtol=2e-6, atol=2e-6 * np.max(np.abs(expected), initial=0))


@pytest.mark.parametrize(("rule", "shapes"), CASES)
def test_the_layout_of_the_given_array_does_not_matter(rule: Rule, shapes: tuple[Shape, ...]) -> None:
    arrays = draw(rule, shapes)
    spaced = []
    for array in arrays:
        wide = np.full((*array.shape, 2), np.nan)
        wide[..., 0] = array
        spaced.append(wide[..., 0])
    adjoints = []
    for inputs in (leaves(arrays), leaves(spaced)):
        y = rule.call(ops, *inputs)
        adjoints.append(pulled(y, np.ones(y.shape), inputs))
    for plain, strided in zip(*adjoints, strict=True):
        np.testing.assert_array_equal(plain, strided)


def test_every_exported_operation_is_in_the_table() -> None:
    assert set(ops.__all__) == {name.split()[0] for name in RULES}


# --- the checks themselves: a rule that is wrong is noticed


def largest(rule: Rule) -> tuple[Shape, ...]:
    return max(rule.shapes, key=lambda shapes: sum(int(np.prod(shape)) for shape in shapes))


def wrong_adjoints(ctx: Any, results: Any) -> list[Any]:
    """What a backward returned, with each needed adjoint once left out and once off by a hundred-thousandth."""
    results = results if isinstance(results, tuple) else (results,)
    mutants = []
    for i, needed in enumerate(ctx.needs_input_grad):
        if needed:
            mutants.append((*results[:i], None, *results[i + 1 :]))
            mutants.append((*results[:i], np.asarray(results[i]) * (1 + 1e-5), *results[i + 1 :]))
    return mutants


@pytest.mark.parametrize("name", RULES)
def test_a_wrong_adjoint_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule, shapes = RULES[name], largest(RULES[name])
    node = rule.call(ops, *leaves(draw(rule, shapes))).grad_fn
    right = node.function.backward
    for mutant in range(2 * len(shapes)):
        wrong = staticmethod(lambda ctx, adj, k=mutant: wrong_adjoints(ctx, right(ctx, adj))[k])
        with monkeypatch.context() as patch, pytest.raises(AssertionError):
            patch.setattr(node.function, "backward", wrong)
            check_adjoint(rule, shapes)


@pytest.mark.parametrize("name", RULES)
def test_a_wrong_tangent_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule, shapes = RULES[name], largest(RULES[name])
    node = rule.call(ops, *leaves(draw(rule, shapes))).grad_fn
    right = node.function.jvp
    wrong = staticmethod(lambda ctx, *tangents: np.asarray(right(ctx, *tangents)) * (1 + 1e-9))
    monkeypatch.setattr(node.function, "jvp", wrong)
    with pytest.raises(AssertionError):
        check_tangent(rule, shapes)


def test_no_rule_warns_where_it_is_smooth() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rule in RULES.values():
            check_adjoint(rule, largest(rule))
