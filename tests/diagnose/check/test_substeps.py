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
