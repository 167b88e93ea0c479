"""Reverse traversal: sums, seeds, freeing, and graphs too long for recursion."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Context, Function, GraphError, InputError, Tensor, backward, grad, is_grad_enabled, tensor
from simphys.autograd.graph import ancestors


class Scale(Function):
    """c x, with x saved, so that freeing can be observed."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, factor: float) -> np.ndarray:
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x.data * factor

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[np.ndarray, None]:
        return adj.data * ctx.factor, None


class Times(Function):
    @staticmethod
    def forward(ctx: Context, x: Tensor, y: Tensor) -> np.ndarray:
        ctx.save_for_backward(x, y)
        return x.data * y.data

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[np.ndarray, np.ndarray]:
        x, y = ctx.saved_tensors
        return adj.data * y.data, adj.data * x.data


class Same(Function):
    """x, with its adjoint passed on unchanged."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, y: Tensor) -> np.ndarray:
        return x.data + y.data

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Tensor, Tensor]:
        return adj, adj


def leaf(values: Any) -> Tensor:
    return tensor(values, requires_grad=True)


def gradient(x: Tensor) -> np.ndarray:
    assert x.grad is not None
    return x.grad.data


# --- arriving adjoints


@pytest.mark.gpu
def test_gradients_accumulate_over_backwards() -> None:
    x = leaf([1.0, 2.0])
    for _ in range(3):
        Scale.apply(x, 2.0).backward([1.0, 1.0])
    np.testing.assert_allclose(gradient(x), [6.0, 6.0])
    x.grad = None
    Scale.apply(x, 2.0).backward([1.0, 1.0])
    np.testing.assert_allclose(gradient(x), [2.0, 2.0])


@pytest.mark.gpu
def test_fan_out_sums_and_every_node_runs_once() -> None:
    runs = []

    class Counted(Scale):
        @staticmethod
        def backward(ctx: Context, adj: Tensor) -> Any:
            runs.append(ctx.factor)
            return adj.data * ctx.factor, None

    x = leaf(1.0)
    y = Counted.apply(x, 2.0)
    z = Times.apply(Same.apply(y, Scale.apply(y, 3.0)), y)  # (y + 3y) y = 4 (2x)^2
    z.backward()
    assert gradient(x) == 32.0 and runs == [2.0]


@pytest.mark.gpu
def test_the_same_tensor_twice_as_an_input_gets_both_adjoints() -> None:
    x = leaf(3.0)
    Times.apply(x, x).backward()
    assert gradient(x) == 6.0


@pytest.mark.gpu
def test_backward_of_a_leaf_gives_its_seed() -> None:
    x = leaf([1.0, 2.0])
    x.backward([3.0, 4.0])
    np.testing.assert_allclose(gradient(x), [3.0, 4.0])


@pytest.mark.gpu
def test_leaves_that_received_one_adjoint_own_separate_gradients() -> None:
    x, y = leaf([1.0]), leaf([1.0])
    Same.apply(x, y).backward()
    assert not np.shares_memory(gradient(x), gradient(y))


@pytest.mark.gpu
def test_a_gradient_has_the_dtype_of_its_leaf_whatever_backward_returned() -> None:
    class Wide(Same):
        @staticmethod
        def backward(ctx: Context, adj: Tensor) -> Any:
            return adj.data.astype(np.float64), Tensor(adj.data.astype(np.float64))

    x, y = (tensor([1.0], dtype=np.float32, requires_grad=True) for _ in range(2))
    Wide.apply(x, y).backward()
    assert gradient(x).dtype == gradient(y).dtype == np.float32


@pytest.mark.gpu
def test_scratch_memory_that_backward_returns_a_view_of_may_be_reused() -> None:
    scratch = np.zeros(4)

    class Scratch(Function):
        @staticmethod
        def forward(ctx: Context, x: Tensor, factor: float) -> Any:
            ctx.factor = factor
            return x.data * factor

        @staticmethod
        def backward(ctx: Context, adj: Tensor) -> Any:
            scratch[:2] = ctx.factor * adj.data
            return scratch[:2], None

    x = tensor([1.0, 1.0], dtype=np.float64, requires_grad=True)
    y = tensor([1.0, 1.0], dtype=np.float64, requires_grad=True)
    a, b = Scratch.apply(x, 2.0), Scratch.apply(y, 3.0)
    backward([a, b], [[1.0, 1.0], [1.0, 1.0]])
    np.testing.assert_allclose(gradient(x), [2.0, 2.0])
    np.testing.assert_allclose(gradient(y), [3.0, 3.0])


@pytest.mark.gpu
def test_retain_grad_keeps_the_gradient_of_an_intermediate() -> None:
    x = leaf(1.0)
    y = Scale.apply(x, 2.0)
    y.retain_grad()
    Scale.apply(y, 5.0).backward()
    assert gradient(y) == 5.0 and gradient(x) == 10.0


# --- seeds


@pytest.mark.gpu
def test_a_scalar_needs_no_seed_and_anything_else_does() -> None:
    x = leaf([1.0, 2.0])
    with pytest.raises(InputError, match="a seed is needed for a non-scalar"):
        Scale.apply(x, 2.0).backward()
    Scale.apply(leaf([[1.0]]), 2.0).backward()  # one element is enough, as in PyTorch


@pytest.mark.gpu
def test_a_seed_of_another_shape_is_refused() -> None:
    with pytest.raises(InputError, match=r"the seed must have the result's shape \(2,\).*\(3,\)"):
        Scale.apply(leaf([1.0, 2.0]), 2.0).backward([1.0, 1.0, 1.0])


@pytest.mark.gpu
def test_a_seed_is_copied_and_takes_the_dtype_of_the_result() -> None:
    x = leaf([1.0, 2.0])
    seed = np.array([1, 2])
    x.backward(seed)
    seed[:] = 9
    assert gradient(x).tolist() == [1.0, 2.0] and gradient(x).dtype == x.dtype
    backward([x], [Tensor(np.array([1, 2]))])
    assert gradient(x).dtype == x.dtype


@pytest.mark.gpu
def test_backward_needs_a_result_that_depends_on_a_leaf_with_a_gradient() -> None:
    with pytest.raises(InputError, match="must depend on a tensor that requires a gradient"):
        Scale.apply(tensor(1.0), 2.0).backward()


@pytest.mark.gpu
def test_several_outputs_are_differentiated_in_one_pass() -> None:
    x = leaf(1.0)
    y = Scale.apply(x, 2.0)
    backward([y, Scale.apply(y, 3.0)], [10.0, 1.0])
    assert gradient(x) == 26.0


# --- freeing


@pytest.mark.gpu
def test_a_second_backward_raises_with_the_remedy() -> None:
    y = Scale.apply(Scale.apply(leaf(1.0), 2.0), 3.0)
    y.backward()
    with pytest.raises(GraphError, match=r"ScaleBackward.*freed.*retain_graph=True"):
        y.backward()


@pytest.mark.gpu
def test_a_graph_that_shares_a_freed_part_raises() -> None:
    shared = Scale.apply(leaf(1.0), 2.0)
    Scale.apply(shared, 3.0).backward()
    with pytest.raises(GraphError, match="freed"):
        Scale.apply(shared, 4.0).backward()


@pytest.mark.gpu
def test_retain_graph_keeps_it() -> None:
    x = leaf(1.0)
    y = Scale.apply(x, 2.0)
    y.backward(retain_graph=True)
    y.backward()
    assert gradient(x) == 4.0


@pytest.mark.gpu
def test_backward_frees_the_saved_state() -> None:
    x = leaf(np.ones(3))
    y = Scale.apply(x, 2.0)
    z = Scale.apply(y, 2.0)
    saved = weakref.ref(y.data)
    del y
    z.backward(np.ones(3))
    assert saved() is None


# --- grad


@pytest.mark.gpu
def test_grad_gives_gradients_of_leaves_and_intermediates_and_touches_no_leaf() -> None:
    x = leaf(2.0)
    y = Times.apply(x, x)
    z = Times.apply(y, y)
    gy, gx = grad(z, (y, x))
    assert gy is not None and gx is not None
    assert (gy.item(), gx.item(), x.grad) == (8.0, 32.0, None)


@pytest.mark.gpu
def test_grad_of_an_input_without_a_path_raises_or_is_none_and_of_no_inputs_it_is_empty() -> None:
    x, other = leaf(2.0), leaf(1.0)
    y = Times.apply(x, x)
    with pytest.raises(GraphError, match=r"do not depend on input 1 .*allow_unused"):
        grad(y, (x, other), retain_graph=True)
    assert grad(y, other, retain_graph=True, allow_unused=True) == (None,)
    assert grad(y, ()) == () and x.grad is None


@pytest.mark.gpu
def test_grad_runs_and_frees_only_the_nodes_between_outputs_and_inputs() -> None:
    x, parameter = leaf(2.0), leaf(5.0)
    y = Scale.apply(x, 3.0)
    other = Scale.apply(parameter, 1.0)
    (gy,) = grad(Times.apply(y, other), y)
    assert gy is not None and gy.item() == 5.0
    y.backward()  # neither the history of y nor that of the other factor was run
    other.backward()
    assert gradient(x) == 3.0 and gradient(parameter) == 1.0


@pytest.mark.gpu
def test_grad_of_an_input_that_requires_none_is_refused() -> None:
    with pytest.raises(InputError, match="requires a gradient"):
        grad(Scale.apply(leaf(1.0), 2.0), tensor(1.0))


# --- checks of the results of backward


def broken(returned: Any) -> type[Function]:
    class Broken(Same):
        @staticmethod
        def backward(ctx: Context, adj: Tensor) -> Any:
            return returned

    return Broken


@pytest.mark.gpu
def test_a_wrong_number_of_adjoints_raises() -> None:
    y = broken((np.ones(2),)).apply(leaf([1.0, 2.0]), leaf([1.0, 2.0]))
    with pytest.raises(GraphError, match="BrokenBackward: backward returned 1 adjoints for 2 inputs"):
        y.backward([1.0, 1.0])


@pytest.mark.gpu
@pytest.mark.parametrize("wrong", [np.ones(3), np.ones((2, 1)), 1.0, Tensor(np.ones(1))], ids=repr)
def test_an_adjoint_of_the_wrong_shape_raises(wrong: Any) -> None:
    y = broken((None, wrong)).apply(leaf([1.0, 2.0]), leaf([1.0, 2.0]))
    with pytest.raises(
        GraphError, match=r"BrokenBackward: the adjoint of input 1 has shape .*, the input.* shape \(2,\)"
    ):
        y.backward([1.0, 1.0])


@pytest.mark.gpu
def test_none_as_an_adjoint_adds_nothing() -> None:
    x, y = leaf(1.0), leaf(1.0)
    broken((None, np.ones(()))).apply(x, y).backward()
    assert x.grad is None and gradient(y) == 1.0


@pytest.mark.gpu
def test_an_error_in_backward_leaves_recording_on() -> None:
    class Fail(Same):
        @staticmethod
        def backward(ctx: Context, adj: Tensor) -> Any:
            raise ArithmeticError("blow-up")

    with pytest.raises(ArithmeticError):
        Fail.apply(leaf(1.0), leaf(1.0)).backward()
    assert is_grad_enabled()


# --- long graphs

LONG = 100_000


def chain(x: Tensor, length: int) -> Tensor:
    for _ in range(length):
        x = Scale.apply(x, 1.0)
    return x


def test_a_graph_is_freed_without_the_garbage_collector() -> None:
    x = leaf(1.0)
    gc.disable()
    try:
        y = chain(x, 5_000)
        nodes = [weakref.ref(node) for node in ancestors([y]) if not node.is_accumulator]
        y.backward()
        del y
        assert len(nodes) == 5_000 and not any([node() for node in nodes])
    finally:
        gc.enable()


def test_a_hundred_thousand_nodes_do_not_recurse() -> None:
    x = leaf(1.0)
    y = chain(x, LONG)
    (gx,) = grad(y, x, retain_graph=True)
    assert gx is not None and gx.item() == 1.0
    y.backward()
    assert gradient(x) == 1.0


def test_dropping_a_long_graph_without_backward_is_safe_and_frees_it() -> None:
    x = leaf(1.0)
    first = Scale.apply(x, 1.0)
    node = weakref.ref(first.grad_fn)
    y = chain(first, LONG)
    del first
    assert node() is not None
    del y
    assert node() is None


# --- gradients of their own, and none where there is none


def test_gradients_with_a_graph_are_tensors_of_their_own() -> None:
    x, y, seed = tensor([1.0], requires_grad=True), tensor([2.0], requires_grad=True), tensor([3.0])
    (x + y).backward(seed, create_graph=True)
    assert len({id(x.grad), id(y.grad), id(seed)}) == 3
    assert x.grad is not None and y.grad is not None
    with x.grad.writable() as a:
        a[:] = 7
    assert y.grad.data.tolist() == seed.data.tolist() == [3]
    first, second = grad(x + y, (x, y), (seed,), create_graph=True)
    assert len({id(first), id(second), id(seed)}) == 3 and first.item() == second.item() == 3


def test_a_gradient_with_a_graph_can_be_differentiated_in_grad() -> None:
    x = tensor([2.0], requires_grad=True)
    (x**3).sum().backward(create_graph=True)
    assert x.grad is not None
    (second,) = grad(x.grad.sum(), x)
    assert second.item() == 12


def test_a_leaf_that_no_longer_requires_a_gradient_gets_none() -> None:
    x, y = tensor([1.0], requires_grad=True), tensor([2.0], requires_grad=True)
    loss = (x * y).sum()
    x.requires_grad_(False)
    loss.backward(retain_graph=True)
    assert (x.grad, y.grad.item() if y.grad else None) == (None, 1)
    x.requires_grad_()
    loss.backward()
    assert [z.grad.item() for z in (x, y) if z.grad] == [2, 2]
