"""An adjoint and a tangent may take the results of the element function, which nothing then solves for again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import InputError, Tensor, tensor
from simphys.autograd.kernels.runtime import ti
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.numerics.element import element
from simphys.rollout import rollout
from simphys.substep import per_element

from ..helpers.any_model import make_model


@element
def lengthen(x, a):
    return ti.sqrt(x * x + a)


@lengthen.adjoint
def adj_lengthen(x, a, y, adj_y):
    return x / y * adj_y, adj_y / (2 * y)


@lengthen.tangent
def jvp_lengthen(x, a, y, dx, da):
    return (x * dx + da / 2) / y


Lengthen = per_element(lengthen, own={"x": "x", "a": "a"}, results={"x": "x"})


def step(model: Any, params: Any, state: Any, control: None = None) -> Any:
    return model.State(Lengthen.apply(model, Lengthen.apply(model, state.x, params.a), params.a))


MODEL = make_model(step, {"a": (3,)}, {"x": (3,)})


def leaf(seed: int) -> Tensor:
    return tensor(np.random.default_rng(seed).uniform(0.5, 1.5, 3), requires_grad=True)


def test_the_sub_step_and_the_engine_give_the_same_derivatives() -> None:
    gradcheck(lambda x, a: Lengthen.apply(None, x, a), (leaf(1), leaf(2)))
    dot_product_test(lambda x, a: Lengthen.apply(None, x, a), (leaf(1), leaf(2)))
    for mode in ("fused", "nested"):

        def run(x: Tensor, a: Tensor, mode: Any = mode) -> Tensor:
            return rollout(MODEL, MODEL.Params(a), MODEL.State(x), steps=4, mode=mode).final.x

        gradcheck(run, (leaf(1), leaf(2)))
        dot_product_test(run, (leaf(1), leaf(2)))


def test_the_results_come_before_their_adjoints_by_the_same_names() -> None:
    with pytest.raises(InputError, match="takes"):

        @lengthen.element.add_adjoint
        def adj_other(x, a, z, adj_y):
            return z * adj_y, adj_y
