"""Calls of torch from this layer: values and gradients as by our own operations, with our guards."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from simphys.autograd import GraphError, InputError, grad, no_grad, ops, tensor
from simphys.autograd.bridges.pytorch import from_torch, to_torch
from simphys.autograd.compose.functional import jacobian, jvp
from simphys.autograd.compose.pipe import combine
from simphys.autograd.proof.gradcheck import gradcheck

from .torch_functions import network, ours, theirs

torch = pytest.importorskip("torch", reason="PyTorch is not installed (pip install 'simphys[torch]')")

CLOSE: Any = {"rtol": 1e-12, "atol": 1e-13}
"""Torch and NumPy have sines and products of their own, which round otherwise on another processor."""


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float32, 1e-5)])
def test_a_torch_function_has_here_the_values_and_gradients_of_our_own(dtype: Any, tolerance: float) -> None:
    results = []
    for fn in (from_torch(theirs), ours):
        x = tensor([0.3, -1.2, 2.0], requires_grad=True, dtype=dtype)
        y = tensor([1.5, 0.4, -0.7], requires_grad=True, dtype=dtype)
        z = fn(x, y)
        (z * z).sum().backward()
        assert x.grad is not None and y.grad is not None and z.dtype == x.grad.dtype == dtype
        results.append([z.data, x.grad.data, y.grad.data])
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def test_gradcheck_passes_with_its_dot_product_test_for_functions_and_modules() -> None:
    x, y = tensor([0.3, -1.2], requires_grad=True), tensor([1.5, 0.4], requires_grad=True)
    gradcheck(from_torch(theirs), (x, y))
    gradcheck(from_torch(lambda x, y: (x * y, torch.sin(x), x * 2.0)), (x, y))
    gradcheck(from_torch(lambda x: x), (x,))
    gradcheck(from_torch(network(2, 3)), (x,))


def test_parameters_receive_their_gradient_in_torch_by_each_backward() -> None:
    there, here = network(3, 2), network(3, 2)
    values = np.random.default_rng(0).standard_normal((4, 3))
    inputs = torch.tensor(values, requires_grad=True)
    there(inputs).square().sum().backward()
    x = tensor(values, requires_grad=True)
    (from_torch(here)(x) ** 2).sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.data, inputs.grad, **CLOSE)
    for expected, parameter in zip(there.parameters(), here.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, expected.grad, **CLOSE)
    (from_torch(here)(tensor(values)) ** 2).sum().backward()  # also where no input requires a gradient; it adds
    for expected, parameter in zip(there.parameters(), here.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, 2 * expected.grad, **CLOSE)


def test_parameters_that_a_closure_captures_receive_theirs_too() -> None:
    net = network(2, 1)
    (from_torch(lambda x: net(x) * 2.0)(tensor([1.0, 2.0]))).sum().backward()
    assert all(parameter.grad is not None for parameter in net.parameters())


def test_a_module_without_trainable_parameters_is_a_plain_function() -> None:
    net = network(2, 2).requires_grad_(False)
    fn = from_torch(net)
    assert not fn(tensor([1.0, 2.0])).requires_grad
    x, y = tensor([1.0, 2.0], requires_grad=True), tensor([1.0, 2.0], requires_grad=True)
    fn(x).sum().backward()
    combine(fn)(y).sum().backward()
    assert x.grad is not None and y.grad is not None and x.grad.data.tolist() == pytest.approx(y.grad.data.tolist())
    net.requires_grad_()
    with pytest.raises(GraphError, match="not among the inputs"):  # its parameters would get no gradient there
        combine(fn)(y).sum().backward()


def test_results_are_named_and_those_without_a_gradient_are_constants() -> None:
    x = tensor([3.0, 1.0], requires_grad=True)
    values, order = from_torch(lambda x: tuple(torch.sort(x)))(x)
    assert values.data.tolist() == [1.0, 3.0] and order.data.tolist() == [1, 0] and not order.requires_grad
    y = from_torch(torch.sin)(x)
    assert y.grad_fn is not None and y.grad_fn.name() == "Torch(sin)Backward"
    constant = from_torch(lambda x: x.detach())(x)
    assert not constant.requires_grad


def test_nothing_is_recorded_without_recording_and_torch_s_switch_does_not_count() -> None:
    net = from_torch(network(2, 1))
    with no_grad():
        assert not net(tensor([1.0, 2.0])).requires_grad
    with torch.no_grad():
        assert net(tensor([1.0, 2.0])).requires_grad


def test_forward_mode_and_jacobians_agree_with_the_reverse() -> None:
    fn = from_torch(lambda x, y: (x[:, None] * torch.sin(y), x.sum(), torch.ones(2, dtype=x.dtype)))
    x, y = tensor([0.5, 2.0]), tensor([1.0, 3.0, -0.4])
    forward, reverse = (jacobian(fn, (x, y), mode=mode) for mode in ("forward", "reverse"))
    for row, expected in zip(forward[:2], reverse[:2], strict=True):
        for block, other in zip(row, expected, strict=True):
            np.testing.assert_allclose(block, other, **CLOSE)
    _, (dz, ds, dc) = jvp(fn, (x, y), (None, [1.0, 0.0, 0.0]))
    np.testing.assert_allclose(dz[:, 0], x.data * np.cos(1.0), **CLOSE)
    assert not dz[:, 1:].any() and ds == 0.0 and not dc.any()
    for constant in (lambda x, y: torch.sin(y), lambda x, y: torch.sign(x) + y):
        _, (dz,) = jvp(from_torch(constant), (x, x), ([1.0, 1.0], None))
        assert not dz.any()


def test_a_second_derivative_raises_and_names_the_function() -> None:
    x = tensor([0.5], requires_grad=True)
    (dx,) = grad(from_torch(torch.sin)(x), x, create_graph=True)
    assert dx.item() == pytest.approx(np.cos(0.5))
    with pytest.raises(GraphError, match=r"Torch\(sin\)"):
        dx.backward()


def test_the_graph_is_kept_or_freed_as_everywhere_and_memory_is_copied() -> None:
    kept = []

    def fn(x: Any) -> Any:
        y = torch.sin(x)
        kept.append(weakref.ref(y))
        return y * y

    x = tensor([1.0], requires_grad=True)
    z = from_torch(fn)(x)
    with x.detach().writable() as values:
        values[0] = 50.0  # torch has its own copy, so that the gradient stays that of the value at forward
    z.backward(retain_graph=True)
    z.backward()
    assert x.grad is not None and x.grad.item() == pytest.approx(2 * np.sin(2.0))
    gc.collect()
    assert kept[0]() is None
    with pytest.raises(GraphError, match="freed by an earlier backward"):
        z.backward()


def test_a_parameter_that_changes_between_forward_and_backward_is_noticed_by_torch() -> None:
    net = network(2, 1)
    y = from_torch(net)(tensor([1.0, 2.0], requires_grad=True))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter += 1.0
    with pytest.raises(RuntimeError):
        y.backward()


def test_results_that_are_no_tensors_of_torch_are_refused() -> None:
    with pytest.raises(InputError, match="a tensor of torch or a plain tuple of them is returned"):
        from_torch(lambda x: [x])(tensor([1.0]))
    with pytest.raises(InputError, match=r"lie on the CPU; found torch\.float64 on meta"):
        from_torch(lambda x: x.to("meta"))(tensor([1.0]))


def test_there_and_back_is_the_same_function() -> None:
    x, y = tensor([0.3, -1.2], requires_grad=True), tensor([1.5, 0.4], requires_grad=True)
    found, expected = jacobian(from_torch(to_torch(ours)), (x, y)), jacobian(ours, (x, y))
    for block, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(block, other, **CLOSE)


def test_a_tangent_of_a_number_goes_through_torch() -> None:
    x = tensor(0.3, requires_grad=True)
    _, (dy,) = jvp(from_torch(lambda x: torch.sin(x) * 2.0), (x,), (1.0,))
    assert np.shape(dy) == () and dy == pytest.approx(2 * np.cos(0.3), rel=1e-13)
    _, (dz,) = jvp(lambda x: from_torch(lambda x: x * x)(ops.sin(x)), (x,), (1.0,))
    assert dz == pytest.approx(np.sin(0.6), rel=1e-13)
