"""Long chains neither recurse nor leak."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import numpy as np
import pytest

from simphys.autograd import Context, Tensor, grad, ops, tensor

LENGTH = 1_000_000


def chain(x: Tensor, length: int) -> Tensor:
    y = x
    for _ in range(length):
        y = y * 1.0
    return y


@pytest.fixture
def _no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def nodes() -> int:
    return sum(isinstance(each, Context) for each in gc.get_objects())


@pytest.mark.usefixtures("_no_collector")
def test_a_chain_of_a_million_nodes_is_differentiated_and_freed_without_the_collector() -> None:
    x = tensor([1.0], requires_grad=True)
    before = nodes()
    y = chain(x, LENGTH)
    y.backward()
    assert x.grad is not None and x.grad.item() == 1.0
    del y
    assert nodes() == before


@pytest.mark.usefixtures("_no_collector")
def test_a_long_chain_that_is_dropped_undifferentiated_is_freed_too() -> None:
    x = tensor([1.0], requires_grad=True)
    before = nodes()
    y = chain(x, 200_000)
    assert nodes() == before + 200_000
    del y
    assert nodes() == before


@pytest.mark.usefixtures("_no_collector")
def test_no_cycle_keeps_a_leaf_a_result_or_a_retained_gradient_alive() -> None:
    x = tensor(np.ones(3), requires_grad=True)
    y = ops.exp(x)  # saves its own result
    y.retain_grad()
    y.register_hook(lambda g: g * 2)
    loss = ops.sum(y)
    loss.backward(retain_graph=True)
    alive = [weakref.ref(each) for each in (x, y, loss, loss.grad_fn)]
    del x, y, loss
    assert [each() for each in alive] == [None] * 4


@pytest.mark.usefixtures("_no_collector")
def test_a_recorded_gradient_leaves_nothing_behind() -> None:
    x = tensor(np.ones(3), requires_grad=True)
    before = nodes()
    y = ops.sum(ops.exp(x) * ops.sin(x))
    (g,) = grad(y, x, create_graph=True)
    (gg,) = grad(ops.sum(g), x)
    del y, g, gg
    assert nodes() == before
