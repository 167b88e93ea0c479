"""Proof of one sub-step: tangents are the transposed adjoint, to what rounding leaves of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Function, Tensor, tensor
from simphys.diagnose.check.certificate import DOT
from simphys.diagnose.check.substeps import UNCERTAIN, Proof, SubStep, prove
from simphys.simulator import Array


class Rest(Function):
    """Function k x + c x - k x, whose terms cancel if k is large; its tangent is `off` by a factor."""

    off = 1.0

    @staticmethod
    def forward(ctx: Any, x: Tensor, k: Tensor, c: Tensor) -> Array:
        ctx.save_for_backward(x, k, c)
        return (k.data * x.data + c.data * x.data) - k.data * x.data

    @staticmethod
    def backward(ctx: Any, adj: Tensor) -> tuple[Array, None, Array]:
        x, k, c = (saved.data for saved in ctx.saved_tensors)
        return (k * adj.data + c * adj.data) - k * adj.data, None, x * adj.data

    @staticmethod
    def jvp(ctx: Any, dx: Array, dk: Array, dc: Array) -> Array:
        x, k, c = (saved.data for saved in ctx.saved_tensors)
        return Rest.off * ((k * dx - (k - c) * dx) + x * dc)


def prove_rest(k: float, off: float, monkeypatch: pytest.MonkeyPatch) -> Proof:
    monkeypatch.setattr(Rest, "off", off)
    random = np.random.default_rng(5)
    x = tensor(random.uniform(1.0, 2.0, 7), requires_grad=True)
    inputs = x, tensor(k * random.uniform(1.0, 2.0, 7), requires_grad=True), tensor(np.full(7, 0.3), requires_grad=True)
    y = Rest.apply(*inputs)
    assert y.grad_fn is not None
    return prove(SubStep(y.grad_fn, inputs, (y,)), 0, np.random.default_rng(6))


def test_rounding_of_terms_that_cancel_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    proof = prove_rest(1e9, 1.0, monkeypatch)
    assert proof.tangent_error is not None and DOT < proof.tangent_error <= proof.tangent_tolerance < 1e-5
    assert proof.holds


@pytest.mark.parametrize(("k", "off"), [(1e9, 1 + 1e-4), (1.0, 1 + 1e-8), (1e14, 1.2)])
def test_a_tangent_that_differs_by_more_than_rounding_is_refuted(
    k: float, off: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof = prove_rest(k, off, monkeypatch)
    assert proof.tangent_tolerance <= UNCERTAIN
    assert not proof.holds


class Left(Function):
    """Functions 2 x and (x + k) - k - x, which is 0 but for rounding; its adjoint leaves a `part` of that of x."""

    part = 0.0

    @staticmethod
    def forward(ctx: Any, x: Tensor, k: Tensor) -> tuple[Array, Array]:
        return 2 * x.data, ((x.data + k.data) - k.data) - x.data

    @staticmethod
    def backward(ctx: Any, adj_twice: Tensor, adj_left: Tensor) -> tuple[Array, Array]:
        return 2 * adj_twice.data + Left.part * adj_left.data, np.zeros_like(adj_left.data)

    @staticmethod
    def jvp(ctx: Any, dx: Array, dk: Array) -> tuple[Array, Array]:
        return 2 * dx, ((dx + dk) - dk) - dx


def prove_left(part: float, monkeypatch: pytest.MonkeyPatch) -> Proof:
    monkeypatch.setattr(Left, "part", part)
    random = np.random.default_rng(5)
    inputs = tuple(tensor(random.uniform(1.0, 2.0, 7), requires_grad=True) for _ in range(2))
    outputs = Left.apply(*inputs)
    assert 0 < np.abs(outputs[1].data).max() < 1e-15
    return prove(SubStep(outputs[0].grad_fn, inputs, outputs), 0, np.random.default_rng(6))


def test_an_output_that_is_rounding_alone_does_not_drown_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weighted by its size, 1e-16, its rounding would count as an error of the order of 1."""
    proof = prove_left(0.0, monkeypatch)
    assert proof.holds and proof.error < 1e-8 and proof.tolerance < 1e-4
    assert proof.tangent_error is not None and proof.tangent_error <= DOT == proof.tangent_tolerance


def test_a_wrong_derivative_of_an_output_that_is_0_but_for_rounding_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    proof = prove_left(0.01, monkeypatch)
    assert not proof.holds and proof.error > 1e-4
