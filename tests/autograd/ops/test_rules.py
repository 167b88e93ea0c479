"""Every rule, over dtypes, shapes and layouts: values as in NumPy, derivatives as differences and as each other."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, grad, is_grad_enabled, no_grad, ops, tensor
from simphys.autograd.proof.gradcheck import GradcheckError, dot_product_test, gradgradcheck
from simphys.autograd.rules import run_jvp

from ...helpers.rounding import assert_equal_but_for_rounding
from .rules_table import NUMPY, RULES, Array, Rule, Shape, draw, largest, leaves

CASES = [pytest.param(rule, shapes, id=f"{name} {shapes}") for name, rule in RULES.items() for shapes in rule.shapes]
PAIRS = [case for case in CASES if len(case.values[1]) == 2]  # type: ignore[arg-type]
NOTICEABLE = [name for name in RULES if not name.endswith("nothing")]
EPS = np.geomspace(1e-2, 1e-6, 6)


def pulled(y: Tensor, u: Array, inputs: Sequence[Tensor]) -> list[Array]:
    """The adjoint of each input for the adjoint u of the result."""
    adjoints = grad(y, inputs, [u], retain_graph=True, allow_unused=True)
    return [np.zeros(x.shape) if g is None else g.data for g, x in zip(adjoints, inputs, strict=True)]


def pushed(y: Tensor, tangents: Sequence[Array | None]) -> Array:
    """The tangent of a result that one node made of the inputs with these tangents."""
    assert y.grad_fn is not None
    given = iter(tangents)
    with no_grad():
        (tangent,) = run_jvp(y.grad_fn, [next(given) if edge else None for edge in y.grad_fn.edges])
    assert tangent is not None
    return tangent


def differences(f: Callable[..., Any], arrays: Sequence[Array], u: Array, step: float = 1e-5) -> list[Array]:
    """Central differences of sum(u * f) by each element of each input."""
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
    """Check u . (J v) = (J^T u) . v, with a tangent for all inputs and for one input alone."""
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


def check_second(call: Callable[..., Tensor], inputs: Sequence[Tensor]) -> None:
    """Compare the gradient's adjoints with its differences, to 1e-7, and with its tangents (forward over reverse)."""
    report = gradgradcheck(call, inputs, mode="projected", eps=EPS, tolerance=1e-7)
    assert report.dot_product_error is not None and report.dot_product_error < 1e-12


def turned(rule: Rule, *inputs: Tensor) -> Tensor:
    """The rule between transposes: no adjoint and no tangent arrives in C order."""
    return ops.transpose(rule.call(ops, *[ops.transpose(x) for x in inputs]))


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
    np.testing.assert_allclose(y.data, expected, rtol=1e-13 if dtype is np.float64 else 1e-5)


@pytest.mark.parametrize(("rule", "shapes"), CASES)
def test_integers_have_numpys_values_and_dtype_and_no_gradient(rule: Rule, shapes: tuple[Shape, ...]) -> None:
    arrays = [np.asarray(np.ceil(array)).astype(np.int64) for array in draw(rule, shapes)]
    with np.errstate(divide="ignore", invalid="ignore"):
        y = rule.call(ops, *map(tensor, arrays))
        expected = np.asarray(rule.call(NUMPY, *arrays))
    assert y.shape == expected.shape and y.dtype == expected.dtype and not y.requires_grad
    np.testing.assert_allclose(y.data, expected, rtol=1e-13)


@pytest.mark.parametrize(("rule", "shapes"), PAIRS)
@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_a_constant_beside_an_input_is_an_input_without_a_gradient(
    rule: Rule, shapes: tuple[Shape, ...], dtype: Any
) -> None:
    """The constants are integers in f64 and in i64, as arrays that are not contiguous; the gradient stays the same."""
    arrays = [np.asarray(np.ceil(abs(array))) for array in draw(rule, shapes)]
    for place in range(2):
        inputs: list[Any] = leaves(arrays)
        y = rule.call(ops, *inputs)
        u = np.random.default_rng(8).normal(size=y.shape)
        expected = pulled(y, u, inputs)[1 - place]
        inputs[place] = spaced(arrays[place]).astype(dtype, order="K")
        y = rule.call(ops, *inputs)
        assert_equal_but_for_rounding(y.data, rule.call(NUMPY, *arrays))
        np.testing.assert_allclose(pulled(y, u, [inputs[1 - place]])[0], expected, rtol=1e-13)


@pytest.mark.parametrize(("rule", "shapes"), CASES)
def test_adjoints_are_the_differences(rule: Rule, shapes: tuple[Shape, ...]) -> None:
    check_adjoint(rule, shapes)


@pytest.mark.parametrize(("rule", "shapes"), CASES)
def test_tangents_and_adjoints_are_transposes(rule: Rule, shapes: tuple[Shape, ...]) -> None:
    check_tangent(rule, shapes)


@pytest.mark.parametrize(("rule", "shapes"), CASES)
def test_second_derivatives_are_the_differences_of_first_ones(rule: Rule, shapes: tuple[Shape, ...]) -> None:
    check_second(partial(rule.call, ops), leaves(draw(rule, shapes)))


@pytest.mark.parametrize(("rule", "shapes"), CASES)
def test_adjoints_in_f32_are_those_in_f64_but_for_rounding(rule: Rule, shapes: tuple[Shape, ...]) -> None:
    """The tolerance is 2e-6 of the largest, about ten roundings; the same with a graph of the gradient."""
    arrays = [array.astype(np.float32) for array in draw(rule, shapes)]
    single, double = leaves(arrays, np.float32), leaves(arrays)
    y = rule.call(ops, *single)
    u = np.random.default_rng(8).normal(size=y.shape).astype(np.float32)
    recorded = grad(y, single, [u], create_graph=True, allow_unused=True)
    for ours, again, expected in zip(
        pulled(y, u, single), recorded, pulled(rule.call(ops, *double), u, double), strict=True
    ):
        assert ours.dtype == again.dtype == np.float32
        size = np.max(np.abs(expected), initial=0)
        np.testing.assert_allclose(ours, expected, rtol=2e-6, atol=2e-6 * size)
        np.testing.assert_allclose(again.data, ours, rtol=1e-6, atol=1e-6 * size)


# --- layouts


def spaced(array: Array) -> Array:
    """The same values, each with a NaN behind it in memory."""
    wide = np.full((*array.shape, 2), np.nan)
    wide[..., 0] = array
    return wide[..., 0]


@pytest.mark.parametrize(("rule", "shapes"), CASES)
def test_the_layout_of_the_given_array_does_not_matter(rule: Rule, shapes: tuple[Shape, ...]) -> None:
    arrays = draw(rule, shapes)
    backwards = [np.flip(np.flip(array).copy()) for array in arrays]
    adjoints = []
    for inputs in (arrays, list(map(spaced, arrays)), [np.array(array, order="F") for array in arrays], backwards):
        tensors = leaves(inputs)
        y = rule.call(ops, *tensors)
        adjoints.append(pulled(y, np.ones(y.shape), tensors))
    for plain, *strided in zip(*adjoints, strict=True):
        for other in strided:
            assert_equal_but_for_rounding(plain, other)


@pytest.mark.parametrize(("rule", "shapes"), CASES)
def test_derivatives_between_transposes_are_transposed(rule: Rule, shapes: tuple[Shape, ...]) -> None:
    arrays = draw(rule, shapes)
    inputs, other = leaves(arrays), leaves([array.T for array in arrays])
    y, z = rule.call(ops, *inputs), turned(rule, *other)
    assert_equal_but_for_rounding(z.data.T, y.data)
    u = np.random.default_rng(8).normal(size=y.shape)
    for ours, expected in zip(pulled(z, u.T, other), pulled(y, u, inputs), strict=True):
        np.testing.assert_allclose(ours.T, expected, rtol=1e-13, atol=1e-14)
    dot_product_test(partial(turned, rule), other, tolerance=1e-12)
    check_second(partial(turned, rule), other)


def test_every_exported_operation_is_in_the_table() -> None:
    assert set(ops.__all__) == {name.split()[0] for name in RULES}


# --- the checks themselves: a rule that is wrong is noticed


def mutants(ctx: Any, results: Any) -> list[Any]:
    """The results of a backward, with each needed adjoint once left out and once wrong by a relative 1e-5."""
    results = results if isinstance(results, tuple) else (results,)
    changed = []
    for i, needed in enumerate(ctx.needs_input_grad):
        if needed:
            changed.append((*results[:i], None, *results[i + 1 :]))
            changed.append((*results[:i], results[i] * (1 + 1e-5), *results[i + 1 :]))
    return changed


@pytest.mark.parametrize("name", NOTICEABLE)
@pytest.mark.parametrize("order", [1, 2])
def test_a_wrong_adjoint_is_noticed(name: str, order: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is always wrong, the other only while a second derivative is recorded."""
    rule, shapes = RULES[name], largest(RULES[name])
    node = rule.call(ops, *leaves(draw(rule, shapes))).grad_fn
    right = node.function.backward

    def wrong(mutant: int, ctx: Any, adj: Any) -> Any:
        results = right(ctx, adj)
        return mutants(ctx, results)[mutant] if order == 1 or is_grad_enabled() else results

    for mutant in range(2 * len(shapes)):
        with monkeypatch.context() as patch, pytest.raises((AssertionError, GradcheckError)):
            patch.setattr(node.function, "backward", staticmethod(partial(wrong, mutant)))
            if order == 1:
                check_adjoint(rule, shapes)
            else:
                check_second(partial(rule.call, ops), leaves(draw(rule, shapes)))


@pytest.mark.parametrize("name", NOTICEABLE)
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
            check_second(partial(rule.call, ops), leaves(draw(rule, largest(rule))))
