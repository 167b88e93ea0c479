"""An exception inside a hook or a Function leaves the graph usable, or a GraphError says that it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Function, Tensor, tensor
from simphys.autograd.errors import GraphError


class Broken(Exception):
    """An error of a user's code."""


class Fragile(Function):
    """The square, which fails where it is told to."""

    fails = ""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> np.ndarray:
        if Fragile.fails == "forward":
            raise Broken
        ctx.save_for_backward(x)
        return x.data**2

    @staticmethod
    def backward(ctx: Any, adj_y: np.ndarray) -> np.ndarray:
        if Fragile.fails == "backward":
            raise Broken
        (x,) = ctx.saved_tensors
        return 2 * x.data * np.asarray(adj_y)


@pytest.fixture(autouse=True)
def sound() -> None:
    Fragile.fails = ""


def leaf() -> Tensor:
    return tensor(np.array([1.0, 2.0, 3.0]), requires_grad=True)


def grad(x: Tensor) -> list[float]:
    assert x.grad is not None
    return x.grad.numpy().tolist()


def test_a_forward_that_fails_leaves_recording_on_and_the_graph_whole() -> None:
    x = leaf()
    y = 3.0 * x
    Fragile.fails = "forward"
    with pytest.raises(Broken):
        Fragile.apply(y)
    Fragile.fails = ""
    Fragile.apply(y).sum().backward()
    assert grad(x) == [18, 36, 54]


def fail_in_backward(x: Tensor, y: Tensor, z: Tensor) -> Callable[[], None]:
    Fragile.fails = "backward"
    return sound_again


def fail_in_a_tensors_hook(x: Tensor, y: Tensor, z: Tensor) -> Callable[[], None]:
    def hook(adj: Any) -> None:
        raise Broken

    return y.register_hook(hook).remove


def fail_in_a_leafs_hook(x: Tensor, y: Tensor, z: Tensor) -> Callable[[], None]:
    def hook(adj: Any) -> None:
        raise Broken

    return x.register_hook(hook).remove


def sound_again() -> None:
    Fragile.fails = ""


@pytest.mark.parametrize("fail", [fail_in_backward, fail_in_a_tensors_hook, fail_in_a_leafs_hook])
@pytest.mark.parametrize("retain", [False, True])
def test_a_backward_that_fails_can_be_repeated_or_says_that_the_graph_is_freed(
    fail: Callable[[Tensor, Tensor, Tensor], Callable[[], None]], retain: bool
) -> None:
    x = leaf()
    y = 3.0 * x
    z = Fragile.apply(y)
    loss = (z * x).sum()
    mend = fail(x, y, z)
    with pytest.raises(Broken):
        loss.backward(retain_graph=retain)
    mend()
    assert x.grad is None  # no part of a gradient
    try:
        loss.backward()
    except GraphError as error:
        assert not retain and "free" in str(error)
    else:
        assert grad(x) == [27, 108, 243]  # of 9 x^3
    x.grad = None
    (Fragile.apply(3.0 * x) * x).sum().backward()  # a new graph is not affected
    assert grad(x) == [27, 108, 243]
