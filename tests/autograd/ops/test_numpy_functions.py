"""NumPy's functions of Tensors are the operations; one without a rule raises instead of losing the gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simphys.autograd import InputError, Tensor, grad, ops, tensor
from simphys.autograd.ops.numpy_functions import _UFUNCS

from ...helpers.rounding import assert_equal_but_for_rounding
from .rules_table import NUMPY, RULES, Rule, draw, largest, leaves

OURS = ["sigmoid", "softplus", "astype", "getitem", "put"]
"""Operations without a function of NumPy for Tensors."""
SAME = [name for name in RULES if name.split()[0] not in OURS and "array" not in name]
UFUNCS = sorted({f for f in vars(np).values() if isinstance(f, np.ufunc)} - _UFUNCS.keys(), key=lambda f: f.__name__)


@pytest.mark.parametrize("name", SAME)
def test_a_function_of_numpy_is_the_operation(name: str) -> None:
    rule: Rule = RULES[name]
    inputs = leaves(draw(rule, largest(rule)))
    ours, numpys = rule.call(ops, *inputs), rule.call(NUMPY, *inputs)
    assert isinstance(numpys, Tensor) and numpys.grad_fn is not None
    assert numpys.grad_fn.name() == ours.grad_fn.name()
    assert_equal_but_for_rounding(numpys.data, ours.data)
    u = np.random.default_rng(8).normal(size=ours.shape)
    gradients = [grad(y, inputs, [u], allow_unused=True) for y in (ours, numpys)]
    for g, h in zip(*gradients, strict=True):
        assert_equal_but_for_rounding(g.data, h.data)


def test_every_operation_that_numpy_has_is_called_by_its_function() -> None:
    assert {name.split()[0] for name in SAME} == set(ops.__all__) - set(OURS)


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda f: f.__name__)
def test_a_ufunc_without_a_rule_raises(ufunc: np.ufunc) -> None:
    x = tensor([0.5, 1.5], requires_grad=True)
    with pytest.raises(InputError, match=rf"numpy\.{ufunc.__name__}: .*has a rule in ops"):
        ufunc(*[x] * ufunc.nin)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: np.add(x, 1.0, out=np.zeros(2)), "numpy.add: .* a call with out"),
        (lambda x: np.add(x, 1.0, where=[True, False]), "numpy.add: .* a call with where"),
        (lambda x: np.add.accumulate(x), "numpy.add.accumulate"),
        (lambda x: np.multiply.outer(x, x), "numpy.multiply.outer"),
        (lambda x: np.multiply.reduce(x), "numpy.multiply.reduce"),
        (lambda x: np.add.at(np.zeros(2), [0], x[:1]), "numpy.add.at"),
        (lambda x: np.add.reduceat(x, [0]), "numpy.add.reduceat"),
        (lambda x: np.prod(x), "numpy.prod"),
        (lambda x: np.cumsum(x), "numpy.cumsum"),
        (lambda x: np.sort(x), "numpy.sort"),
        (lambda x: np.dot(x, x), "numpy.dot"),
        (lambda x: np.einsum("i,i", x, x), "numpy.einsum"),
        (lambda x: np.var(x), "numpy.var"),
        (lambda x: np.sum(x, where=[True, False]), "numpy.sum: .* a call with where"),
        (lambda x: np.sum(x, dtype=np.float32), "numpy.sum: .* a call with dtype"),
        (lambda x: np.mean(x, out=np.zeros(())), "numpy.mean: .* a call with out"),
        (lambda x: np.linalg.norm(x, 1), "numpy.linalg.norm"),
        (lambda x: np.linalg.norm(x, np.inf, 0), "numpy.linalg.norm"),
        (lambda x: np.concatenate([x, np.ones(2)], out=np.ones(4)), "numpy.concatenate: .* a call with out"),
        (lambda x: np.where(x > 1.0), "numpy.where"),
    ],
)
def test_a_function_or_an_option_without_a_rule_raises(call: Callable[..., Any], name: str) -> None:
    with pytest.raises(InputError, match=name):
        call(tensor([0.5, 1.5], requires_grad=True))


def test_the_length_of_a_vector_may_name_its_order() -> None:
    x = tensor([[3.0, 4.0]], requires_grad=True)
    y = np.linalg.norm(x, 2, axis=1)
    assert y.data.tolist() == [5.0]
    with pytest.raises(InputError, match=r"numpy\.linalg\.norm"):
        np.linalg.norm(x, 2)  # of a matrix: its largest singular value


def test_numpys_functions_in_a_users_formula_give_its_second_derivative() -> None:
    """d^2/dx^2 of sin(x) e^x is 2 cos(x) e^x."""
    x = tensor([0.3, -1.1], dtype=np.float64, requires_grad=True)
    y: Any = np.sum(np.sin(x) * np.exp(x))
    (g,) = grad(y, x, create_graph=True)
    (second,) = grad(ops.sum(g), x)
    np.testing.assert_allclose(second.data, 2 * np.cos(x.data) * np.exp(x.data), rtol=1e-13)
