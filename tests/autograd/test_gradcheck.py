"""gradcheck proves right adjoints, refutes wrong ones, and reports when finite differences prove nothing."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Context, Function, GraphError, InputError, Tensor, tensor
from simphys.autograd.errors import UnphysicalValue
from simphys.autograd.proof.finite_difference import FEWEST, derivative
from simphys.autograd.proof.gradcheck import (
    EPS,
    GradcheckError,
    GradcheckReport,
    dot_product_test,
    gradcheck,
    gradgradcheck,
)

MODES = ["full", "projected"]


class Wave(Function):
    """sin(x) y summed over x's last axis: two inputs of different shapes; any term of the adjoint can be wrong."""

    factors: tuple[float, float] = (1.0, 1.0)
    tangent_factor = 1.0

    @staticmethod
    def forward(ctx: Context, x: Tensor, y: Tensor) -> Any:
        ctx.save_for_backward(x, y)
        return (np.sin(x.data) * y.data).sum(axis=1)

    @classmethod
    def backward(cls, ctx: Context, adj: Tensor) -> Any:
        x, y = ctx.saved_tensors
        a = adj.data[:, None]
        return cls.factors[0] * np.cos(x.data) * y.data * a, cls.factors[1] * (np.sin(x.data) * a).sum(axis=0)

    @classmethod
    def jvp(cls, ctx: Context, dx: np.ndarray | None, dy: np.ndarray | None) -> Any:
        x, y = ctx.saved_tensors
        from_x = 0.0 if dx is None else np.cos(x.data) * y.data * dx
        from_y = 0.0 if dy is None else np.sin(x.data) * dy
        return cls.tangent_factor * np.sum(from_x + from_y, axis=1)


class WrongX(Wave):
    factors = (1.0001, 1.0)
    jvp = None  # type: ignore[assignment]


class WrongY(Wave):
    factors = (1.0, 0.0)
    jvp = None  # type: ignore[assignment]


class WrongTangent(Wave):
    tangent_factor = 1.01


def elementwise(value: Any, slope: Any) -> type[Function]:
    class Elementwise(Function):
        @staticmethod
        def forward(ctx: Context, x: Tensor) -> Any:
            ctx.save_for_backward(x)
            return value(x.data)

        @staticmethod
        def backward(ctx: Context, adj: Tensor) -> Any:
            (x,) = ctx.saved_tensors
            return slope(x.data) * adj.data

    return Elementwise


Absolute = elementwise(np.abs, np.sign)


@pytest.fixture
def xy() -> tuple[Tensor, Tensor]:
    random = np.random.default_rng(1)
    x, y = random.standard_normal((2, 3)), 1e4 * random.standard_normal(3)
    return leaf(x), leaf(y)


def leaf(values: Any) -> Tensor:
    return tensor(values, requires_grad=True, dtype=np.float64)


def report_of(fn: Any, inputs: Any, **options: Any) -> GradcheckReport:
    with pytest.raises(GradcheckError) as error:
        gradcheck(fn, inputs, **options)
    assert error.value.report is not None
    return error.value.report


# --- right and wrong adjoints


@pytest.mark.parametrize("mode", MODES)
def test_a_smooth_function_passes_far_below_the_tolerance(mode: Any, xy: tuple[Tensor, Tensor]) -> None:
    report = gradcheck(Wave.apply, xy, mode=mode)
    assert report.outcome == "passed" and len(report.comparisons) == 2
    assert all(c.error < 1e-9 and c.spread < 1e-9 and EPS[-1] < c.eps < EPS[0] for c in report.comparisons)
    assert report.dot_product_error is not None and report.dot_product_error < 1e-13


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("function", "position"), [(WrongX, 0), (WrongY, 1)])
def test_a_broken_term_fails_and_the_message_names_input_element_values_and_error(
    mode: Any, function: type[Function], position: int, xy: tuple[Tensor, Tensor]
) -> None:
    report = report_of(function.apply, xy, mode=mode)
    assert report.outcome == "failed" and report.worst.input == position
    good = report.comparisons[1 - position]
    assert good.outcome == "passed"
    worst = report.worst
    where = (
        rf"input {position} at \({worst.input_element[0]}," if worst.input_element else f"input {position} \\(random"
    )
    pattern = rf"failed: output 0 .*by {where}.*adjoint {worst.adjoint:.12g}, finite difference .*relative error [0-9]"
    with pytest.raises(GradcheckError, match=pattern):
        gradcheck(function.apply, xy, mode=mode)


def test_the_values_in_the_report_are_the_derivatives(xy: tuple[Tensor, Tensor]) -> None:
    worst = report_of(WrongX.apply, xy).worst
    assert worst.input_element is not None and worst.output_element is not None
    i, j = worst.input_element
    exact = np.cos(xy[0].data[i, j]) * xy[1].data[j]
    assert worst.output_element == (i,)
    assert worst.finite_difference == pytest.approx(exact, rel=1e-8)
    assert worst.adjoint == pytest.approx(1.0001 * exact, rel=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_only_inputs_that_require_a_gradient_are_checked(mode: Any, xy: tuple[Tensor, Tensor]) -> None:
    x, y = xy
    report = gradcheck(WrongY.apply, (x, y.detach()), mode=mode)
    assert [c.input for c in report.comparisons] == [0]


@pytest.mark.parametrize("mode", MODES)
def test_a_small_output_is_not_hidden_by_a_large_one(mode: Any) -> None:
    wrong = elementwise(lambda x: x**2, lambda x: 2.1 * x)
    report = report_of(lambda x: (x * 1e8, wrong.apply(x)), leaf([1.0, 2.0]), mode=mode)
    assert report.outcome == "failed" and report.worst.output == 1


@pytest.mark.parametrize("mode", MODES)
def test_a_gradient_that_was_cut_is_noticed(mode: Any) -> None:
    report = report_of(lambda x: (x * x, x.detach() * 1.0), leaf([1.0, 2.0]), mode=mode)
    assert report.outcome == "failed" and report.worst.output == 1 and report.worst.adjoint == 0.0


@pytest.mark.parametrize("mode", MODES)
def test_a_nan_adjoint_fails(mode: Any) -> None:
    assert (
        report_of(elementwise(np.square, lambda x: x * np.nan).apply, leaf([1.0, 2.0]), mode=mode).outcome == "failed"
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda x: (x - 1.0) * (x - 1.0), id="minimum"),
        pytest.param(lambda x: x * 0.0, id="zero"),
        pytest.param(lambda x: x * x, id="scalar-shaped"),
        pytest.param(lambda x: x * 1e-9 + 1e-9, id="tiny"),
    ],
)
def test_vanishing_gradients_pass(mode: Any, function: Any) -> None:
    for values in (1.0, [1.0, 1.0], [0.0], [0.0, 3.0]):
        assert gradcheck(function, leaf(values), mode=mode).outcome == "passed"


def test_integers_beside_the_checked_inputs_and_outputs_are_left_alone() -> None:
    def pick(x: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
        return x * x, index

    assert gradcheck(pick, (leaf([1.0, 2.0]), tensor([3, 4]))).outcome == "passed"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
def test_inputs_and_outputs_without_entries_are_passed_over(mode: Any, check: Any) -> None:
    empty = tensor(np.zeros((0, 2)), requires_grad=True)
    report = check(lambda none, x: (none * 2.0, x * x * x), (empty, leaf([1.0, 2.0])), mode=mode)
    assert report.outcome == "passed"
    assert check(lambda none: none * 2.0, empty, mode=mode).outcome == "passed"
    assert gradcheck(lambda x: x[:0], leaf([1.0]), mode=mode).outcome == "passed"


# --- finite differences that prove nothing


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("values", [0.0, [0.0, 1.0], [1.0, 1e-8]], ids=repr)
def test_a_kink_within_eps_is_untrusted_even_where_central_differences_agree(mode: Any, values: Any) -> None:
    report = report_of(Absolute.apply, leaf(values), mode=mode)
    assert report.outcome == "untrusted" and "no plateau" in str(report)


@pytest.mark.parametrize("mode", MODES)
def test_a_kink_farther_than_the_plateau_is_harmless(mode: Any) -> None:
    assert gradcheck(Absolute.apply, leaf([1.0, -0.01]), mode=mode).worst.error < 1e-8


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(5))
def test_noise_is_untrusted(mode: Any, seed: int) -> None:
    random = np.random.default_rng(seed)
    noisy = elementwise(lambda x: x**2 + 1e-7 * random.standard_normal(x.shape), lambda x: 2 * x)
    assert report_of(noisy.apply, leaf([1.0, 2.0, 3.0]), mode=mode, seed=seed).outcome == "untrusted"


@pytest.mark.parametrize("mode", MODES)
def test_an_adjoint_that_is_far_off_fails_in_spite_of_noise(mode: Any) -> None:
    random = np.random.default_rng(0)
    noisy = elementwise(lambda x: x**2 + 1e-7 * random.standard_normal(x.shape), lambda x: 3 * x)
    assert report_of(noisy.apply, leaf([1.0, 2.0, 3.0]), mode=mode).outcome == "failed"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("adjoint", [1e-12, 0.0, 3e-12])
def test_a_derivative_below_the_rounding_of_the_values_is_untrusted(mode: Any, adjoint: float) -> None:
    level = elementwise(lambda x: 1.0 + 1e-12 * x, lambda x: np.full_like(x, adjoint))
    assert report_of(level.apply, leaf([1.0, 2.0]), mode=mode).outcome == "untrusted"


@pytest.mark.parametrize("mode", MODES)
def test_a_derivative_by_terms_that_cancel_is_zero_to_rounding(mode: Any) -> None:
    level = elementwise(lambda x: np.full_like(x, 0.1), lambda x: np.full_like(x, 1e-17))
    assert gradcheck(level.apply, leaf([1.0, 2.0]), mode=mode).outcome == "passed"


@pytest.mark.parametrize("mode", MODES)
def test_a_huge_value_that_does_not_depend_on_an_input_passes(mode: Any) -> None:
    level = elementwise(lambda x: np.full_like(x, 1e12), np.zeros_like)
    assert gradcheck(level.apply, leaf([1.0, 2.0]), mode=mode).outcome == "passed"


def test_a_value_that_is_not_a_number_on_one_side_is_no_bound() -> None:
    """Only a function that refuses the value says that there is none."""
    level = elementwise(lambda x: np.where(x < 0, np.nan, x), np.ones_like)
    assert report_of(level.apply, leaf([0.0])).outcome == "untrusted"


def test_a_function_that_is_not_a_number_nearby_is_untrusted() -> None:
    def root(x: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            return np.sqrt(x)

    assert report_of(elementwise(root, np.ones_like).apply, leaf([0.0])).outcome == "untrusted"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_at_a_bound_the_derivative_is_that_of_the_side_that_is_physical(mode: Any, right: bool, side: float) -> None:
    def value(x: np.ndarray) -> np.ndarray:
        if (side * x < 0).any():
            raise UnphysicalValue("x", "not beyond its bound", f"{x}", "Move it.")
        return np.sin(x) + x**2

    bounded = elementwise(value, lambda x: np.cos(x) + 2 * x + (0.0 if right else 1e-3))
    check = gradcheck if right else report_of
    found = check(bounded.apply, leaf([0.0, 0.0, 0.5 * side]), mode=mode)
    assert found.outcome == ("passed" if right else "failed")


def test_the_spread_bounds_the_error_of_a_difference() -> None:
    functions: list[tuple[Any, Any]] = [
        (lambda h: np.asarray(np.exp(h)), 1.0),
        (lambda h: np.asarray(np.tanh(30 * h)), 30.0),
        (lambda h: np.array([np.sin(h), 1e6 * h]), np.array([1.0, 1e6])),
    ]
    for f, exact in functions:
        estimate = derivative(f, EPS)
        assert np.all(abs(estimate.value - exact) <= estimate.spread)
        assert np.all(estimate.spread < 1e-8 * exact)


# --- use


def test_results_repeat_for_a_seed_and_differ_between_seeds(xy: tuple[Tensor, Tensor]) -> None:
    first, again, other = (gradcheck(Wave.apply, xy, mode="projected", seed=s).worst.adjoint for s in (1, 1, 2))
    assert first == again != other


def test_projected_evaluates_a_number_of_times_that_does_not_grow_with_the_input() -> None:
    calls = []

    def f(x: Tensor) -> Tensor:
        calls.append(x.size)
        return (x * x).sum()

    counts = []
    for size in (2, 500):
        calls.clear()
        gradcheck(f, leaf(np.linspace(1.0, 2.0, size)), mode="projected", repeats=1)
        counts.append(len(calls))
    assert counts == [2 * FEWEST + 2] * 2


def test_smaller_steps_are_tried_only_where_the_others_leave_a_doubt() -> None:
    def count(fn: Any) -> int:
        calls = []

        def counted(x: Tensor) -> Tensor:
            calls.append(x)
            return fn(x)

        with contextlib.suppress(GradcheckError):
            gradcheck(counted, leaf([0.3]))
        return len(calls)

    wrong = elementwise(np.sin, lambda x: 1.00001 * np.cos(x))
    assert count(lambda x: x.sin()) < count(lambda x: (300 * x).sin()) < count(wrong.apply) == 2 * len(EPS) + 2


def test_inputs_are_left_as_they_are(xy: tuple[Tensor, Tensor]) -> None:
    before = xy[0].data.copy()
    gradcheck(Wave.apply, xy)
    assert xy[0].grad is None and xy[0].version == 0 and xy[0].is_leaf
    np.testing.assert_array_equal(xy[0].data, before)


def test_single_precision_is_refused() -> None:
    x = tensor([1.0], dtype=np.float32, requires_grad=True)
    with pytest.raises(InputError, match=r"finite differences need f64; found input 1 of float32\. Use precision=f64"):
        gradcheck(lambda a, b: a * b, (leaf([1.0]), x))


def test_an_input_must_require_a_gradient() -> None:
    with pytest.raises(InputError, match="an input requires a gradient"):
        gradcheck(lambda x: x * x, leaf([1.0]).detach())


@pytest.mark.parametrize("eps", [[1e-3, 1e-4, 1e-5], [1e-6, 1e-5, 1e-4, 1e-3], [1e-3, 1e-4, 1e-5, 0.0], 1e-3])
def test_eps_must_be_a_falling_series(eps: Any) -> None:
    with pytest.raises(InputError, match="eps is a falling series"):
        gradcheck(lambda x: x * x, leaf([1.0]), eps=eps)


# --- tangents


def test_the_dot_product_test_compares_tangents_with_adjoints(xy: tuple[Tensor, Tensor]) -> None:
    assert dot_product_test(Wave.apply, xy) < 1e-13
    with pytest.raises(GradcheckError, match=r"jvp and adjoint disagree: .* differ by [0-9.]+e-0[123]"):
        dot_product_test(WrongTangent.apply, xy)
    with pytest.raises(GraphError, match="WrongX has no jvp"):
        dot_product_test(WrongX.apply, xy)


def test_gradcheck_finds_a_wrong_tangent_beside_a_right_adjoint(xy: tuple[Tensor, Tensor]) -> None:
    report = report_of(WrongTangent.apply, xy)
    assert report.outcome == "failed" and report.worst.outcome == "passed"
    assert "jvp against adjoint: relative error" in str(report)


def test_a_missing_jvp_is_no_failure(xy: tuple[Tensor, Tensor]) -> None:
    assert gradcheck(Absolute.apply, leaf([1.0])).dot_product_error is None
