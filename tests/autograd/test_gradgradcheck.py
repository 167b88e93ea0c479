"""gradgradcheck proves right second derivatives, refutes wrong ones, and names once differentiable Functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Context, Function, GraphError, InputError, Tensor, grad, ops, tensor
from simphys.autograd.proof.gradcheck import GradcheckError, gradcheck, gradgradcheck

MODES = ["full", "projected"]


class Cube(Function):
    """x^3, whose backward is recorded; `slope` is the derivative as it stands in backward."""

    once_differentiable = False

    @staticmethod
    def slope(x: Tensor) -> Tensor:
        return 3.0 * x * x

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Any:
        ctx.save_for_backward(x)
        return x.data**3

    @classmethod
    def backward(cls, ctx: Context, adj: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return cls.slope(x) * adj


class HalfRecorded(Cube):
    """The first derivative is right; the second misses one of two factors."""

    @staticmethod
    def slope(x: Tensor) -> Tensor:
        return 3.0 * x * x.detach()


class CutFromTheSeed(Cube):
    """The second derivative is right for x; the gradient seems independent of its adjoint."""

    @classmethod
    def backward(cls, ctx: Context, adj: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return cls.slope(x) * adj.detach()


class CubeOnce(Function):
    """The same with arrays."""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Any:
        ctx.save_for_backward(x)
        return x.data**3

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return 3.0 * x.data**2 * adj.data


def leaf(values: Any) -> Tensor:
    return tensor(values, requires_grad=True, dtype=np.float64)


@pytest.mark.parametrize("mode", MODES)
def test_right_second_derivatives_pass_far_below_the_tolerance(mode: Any) -> None:
    x, y = leaf([[0.3, -1.2, 0.8]]), leaf([1.5, 0.7, -0.4])
    report = gradgradcheck(lambda x, y: (Cube.apply(x) * y, ops.exp(y).sum()), (x, y), mode=mode)
    assert report.outcome == "passed" and report.worst.error < 1e-9
    assert [c.input for c in report.comparisons] == [0, 1, 2, 3]  # x, y and a seed for each of two outputs


@pytest.mark.parametrize("mode", MODES)
def test_a_factor_missing_from_the_second_derivative_only_fails(mode: Any) -> None:
    x = leaf([0.5, -1.0])
    gradcheck(HalfRecorded.apply, x, mode=mode)
    with pytest.raises(
        GradcheckError, match=r"gradgradcheck .*inputs from 1 on are the u\):\ngradcheck failed"
    ) as error:
        gradgradcheck(HalfRecorded.apply, x, mode=mode)
    report = error.value.report
    assert report is not None and report.worst.input == 0
    assert report.worst.adjoint == pytest.approx(report.worst.finite_difference / 2, rel=1e-8)


@pytest.mark.parametrize("mode", MODES)
def test_a_gradient_that_is_cut_from_its_seed_fails(mode: Any) -> None:
    with pytest.raises(GradcheckError) as error:
        gradgradcheck(CutFromTheSeed.apply, leaf([0.5, -1.0]), mode=mode)
    assert error.value.report is not None and error.value.report.worst.input == 1


def test_full_mode_gives_the_hessian_weighed_by_the_seed_and_the_seed_repeats() -> None:
    x = leaf([0.5])
    first, again, other = (gradgradcheck(Cube.apply, x, seed=s).comparisons for s in (0, 0, 1))
    assert first == again != other
    by_x, by_seed = (c.adjoint for c in first)
    u = np.random.default_rng(0).standard_normal(1)[0]
    assert by_x == pytest.approx(6 * 0.5 * u, rel=1e-12) and by_seed == pytest.approx(3 * 0.5**2, rel=1e-12)


def test_a_function_that_differentiates_once_is_named() -> None:
    gradcheck(CubeOnce.apply, leaf([0.5]))
    with pytest.raises(GraphError, match=r"CubeOnceBackward: .*once_differentiable = False"):
        gradgradcheck(lambda x: ops.sin(CubeOnce.apply(x)), leaf([0.5]))


def test_inputs_and_outputs_that_do_not_take_part_are_left_alone() -> None:
    def fn(x: Tensor, index: Tensor, constant: Tensor) -> tuple[Tensor, ...]:
        return x * x * constant, index, constant * 2.0

    x, constant = leaf([1.0, 2.0]), tensor([3.0, 4.0], dtype=np.float64)
    report = gradgradcheck(fn, (x, tensor([3, 4]), constant))
    assert report.outcome == "passed" and report.comparisons[0].input == 0
    assert x.grad is None and x.is_leaf and x.version == 0


@pytest.mark.parametrize("function", [lambda x, y: x + 0.0 * y, lambda x, y: x, lambda x, y: (x * 2.0, y[0] * x)])
def test_second_derivatives_that_vanish_pass(function: Any) -> None:
    for mode in MODES:
        assert gradgradcheck(function, (leaf([1.0, 2.0]), leaf([3.0])), mode=mode).outcome == "passed"  # type: ignore[arg-type]


def test_gradients_of_gradients_of_gradients_are_checked_by_a_function_that_takes_one() -> None:
    def slope(x: Tensor) -> Any:
        return grad(Cube.apply(x).sum(), x, create_graph=True)

    assert gradgradcheck(slope, leaf([0.5, -1.0])).outcome == "passed"


def test_tangents_and_adjoints_that_are_rounding_alone_are_no_failure() -> None:
    """The derivative of x / |x| for a single x: each way of computing it rounds 0 differently."""
    assert gradgradcheck(ops.norm, leaf([1.3])).outcome == "passed"


def test_an_input_must_require_a_gradient() -> None:
    with pytest.raises(InputError, match="an input requires a gradient"):
        gradgradcheck(lambda x: x * x, leaf([1.0]).detach())
