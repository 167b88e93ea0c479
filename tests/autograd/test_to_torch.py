"""Calls of this layer from torch: values and gradients as by its own operations, with its guards."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Context, Function, GraphError, InputError, Tensor, no_grad, ops, tensor
from simphys.autograd.bridges.pytorch import to_torch

from .torch_functions import Scale, Unreached, leaf, ours, theirs

torch = pytest.importorskip("torch", reason="PyTorch is not installed (pip install 'simphys[torch]')")


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-13), (torch.float32, 1e-5)])
def test_a_function_of_ours_has_in_torch_the_values_and_gradients_of_torch_s_own(dtype: Any, tolerance: float) -> None:
    """NumPy and torch have sines of their own, which round otherwise on another processor."""
    results = []
    for fn in (to_torch(ours), theirs):
        x, y = leaf(0.3, -1.2, 2.0, dtype=dtype), leaf(1.5, 0.4, -0.7, dtype=dtype)
        z = fn(x, y)
        (z * z).sum().backward()
        assert z.dtype == x.grad.dtype == dtype
        results.append([z.detach(), x.grad, y.grad])
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def test_torch_s_own_checks_pass_for_first_and_second_derivatives() -> None:
    x, y = leaf(0.3, -1.2), leaf(1.5, 0.4)
    assert torch.autograd.gradcheck(to_torch(ours), (x, y))
    assert torch.autograd.gradgradcheck(to_torch(ours), (x, y))


def test_three_derivatives_agree_with_torch_s_own() -> None:
    third = []
    functions: list[Any] = [to_torch(lambda x: ops.sin(x) * x * x), lambda x: torch.sin(x) * x * x]
    for fn in functions:
        x = y = leaf(0.7)
        y = fn(x)
        for _ in range(3):
            (y,) = torch.autograd.grad(y, x, create_graph=True)
        third.append(y.item())
    assert third[0] == pytest.approx(third[1], rel=1e-12)


def test_gradients_of_gradients_through_a_once_differentiable_function_raise_and_name_it() -> None:
    x = leaf(1.0, 2.0)
    y, _ = to_torch(Scale.apply)(x * x, 3.0)
    (dx,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert dx.tolist() == [6.0, 12.0]
    with pytest.raises(GraphError, match="Scale"):
        dx.sum().backward()


def test_the_node_has_the_function_s_name_and_other_arguments_and_results_pass_through() -> None:
    x = leaf(1.0, 2.0)
    y, count = to_torch(Scale.apply)(x, 3.0)
    assert y.grad_fn.name() == "ScaleBackward" and y.tolist() == [3.0, 6.0]
    assert count.item() == 2 and count.dtype == torch.int64 and not count.requires_grad
    (one,) = to_torch(lambda x: (x * 2.0,))(x)
    assert one.tolist() == [2.0, 4.0]


def test_only_the_inputs_that_need_a_gradient_are_differentiated() -> None:
    needed = []

    class Product(Function):
        @staticmethod
        def forward(ctx: Context, x: Tensor, y: Tensor, index: Tensor) -> np.ndarray:
            ctx.save_for_backward(x, y)
            return x.data * y.data * index.data

        @staticmethod
        def backward(ctx: Context, adj: Tensor) -> tuple[Any, ...]:
            needed.append(ctx.needs_input_grad)
            x, y = ctx.saved_tensors
            return adj.data * y.data, adj.data * x.data, None

    x, y, index = leaf(2.0), torch.tensor([3.0], dtype=torch.float64), torch.tensor([1])
    to_torch(lambda *inputs: Product.apply(*inputs))(x, y, index).backward()
    assert needed == [(True, False, False)] and x.grad.item() == 3.0


def test_nothing_is_recorded_where_torch_records_nothing() -> None:
    recorded = []

    def fn(x: Tensor) -> Tensor:
        y = x * 2.0
        recorded.append(y.requires_grad)
        return y

    wrapped, x = to_torch(fn), leaf(1.0)
    with torch.no_grad():
        assert not wrapped(x).requires_grad
    assert not wrapped(x.detach()).requires_grad
    with no_grad():  # in torch, torch's switch counts
        assert wrapped(x).requires_grad
    assert recorded == [False, False, True]


def test_a_result_that_no_gradient_reaches_and_an_unused_input_are_as_in_torch() -> None:
    x, unused = leaf(1.0, 2.0), leaf(5.0)
    y, z, constant = to_torch(lambda x, unused: (x * x, Unreached.apply(x), tensor([7.0])))(x, unused)
    assert not constant.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0] and unused.grad is None and z.requires_grad
    with pytest.raises(RuntimeError):
        constant.backward()


def test_memory_is_copied_both_ways() -> None:
    seen = []

    def fn(x: Tensor) -> Tensor:
        seen.append(x)
        y = x * 2.0
        seen.append(y)
        return y

    x = torch.arange(6.0, dtype=torch.float64).reshape(2, 3).T
    y = to_torch(fn)(x)
    x += 100.0
    y += 100.0
    assert seen[0].shape == (3, 2) and seen[0].data.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert seen[1].data.tolist() == [[0.0, 6.0], [2.0, 8.0], [4.0, 10.0]]


def test_an_array_among_the_arguments_may_change_afterwards() -> None:
    x, factor = leaf(1.0), np.array([3.0])
    y = to_torch(lambda x, factor: x * x * factor)(x, factor)
    factor[0] = 100.0
    for create_graph in (False, True):
        (dx,) = torch.autograd.grad(y, x, retain_graph=True, create_graph=create_graph)
        assert dx.item() == 6.0


def test_torch_guards_the_saved_state_and_frees_it_with_its_own_graph() -> None:
    kept = []

    def fn(x: Tensor) -> Tensor:
        y = ops.sin(x)
        kept.append(weakref.ref(y))
        return y * y

    x = leaf(1.0)
    z = to_torch(fn)(x)
    z.backward(retain_graph=True)
    gc.collect()
    assert kept[0]() is not None
    z.backward()
    gc.collect()
    assert kept[0]() is None and x.grad.item() == pytest.approx(2 * np.sin(2.0))
    with pytest.raises(RuntimeError):
        z.backward()
    x = leaf(1.0) * 1.0
    z = to_torch(fn)(x)
    x += 1.0
    with pytest.raises(RuntimeError):
        z.backward()


def test_checkpoints_and_hooks_on_saved_tensors_give_the_same_gradient() -> None:
    from torch.utils.checkpoint import checkpoint

    def hooked(fn: Any, x: Any) -> Any:
        with torch.autograd.graph.saved_tensors_hooks(torch.clone, torch.clone):
            return fn(x)

    ways: list[Any] = [lambda fn, x: checkpoint(fn, x, use_reentrant=False), hooked]
    for apply in ways:
        runs: list[Tensor] = []

        def fn(x: Tensor, runs: list[Tensor] = runs) -> Tensor:
            runs.append(x)
            return ops.sin(x)

        x = leaf(1.0)
        apply(to_torch(fn), x).backward()
        assert x.grad.item() == pytest.approx(np.cos(1.0)) and len(runs) > 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: torch.empty(1, device="meta"),
            r"to_torch: tensors of torch lie on the CPU; found .* on meta\. .*cpu\(",
        ),
        (lambda: torch.ones(1, dtype=torch.bfloat16), r"has the tensor's dtype and layout.*BFloat16"),
        (lambda: torch.ones(1, dtype=torch.complex64), r"tensors are real; found torch\.complex64"),
        (lambda: torch.ones(1).to_sparse(), r"has the tensor's dtype and layout.*[Ss]parse"),
    ],
)
def test_tensors_that_numpy_cannot_hold_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        to_torch(ours)(make(), make())


def test_results_that_are_no_tensors_and_captured_tensors_are_refused() -> None:
    with pytest.raises(InputError, match="a Tensor or a plain tuple of Tensors is returned"):
        to_torch(lambda x: [x])(leaf(1.0))
    captured = tensor([2.0], requires_grad=True)
    with pytest.raises(GraphError, match="not among the inputs"):
        to_torch(lambda x: x * captured)(leaf(1.0))


def test_a_network_in_f32_takes_a_function_in_f64() -> None:
    double = to_torch(lambda x, y: (x * y, x + 1.0), dtype=torch.float32)
    x, y = (torch.tensor([1.5, 2.0], dtype=dtype, requires_grad=True) for dtype in (torch.float32, torch.float64))
    product, total = double(x, y)
    assert product.dtype == total.dtype == torch.float32
    (product.sum() + total.sum()).backward()
    assert x.grad.dtype == torch.float32 and y.grad.dtype == torch.float64
    assert x.grad.tolist() == [2.5, 3.0] and y.grad.tolist() == [1.5, 2.0]
