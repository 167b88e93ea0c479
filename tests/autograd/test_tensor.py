"""A Tensor: locked memory with a version, a place in the graph, and NumPy's arithmetic."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simphys.autograd import InputError, Tensor, no_grad, ops, runtime, tensor

pytestmark = pytest.mark.gpu


# --- memory


def test_a_tensor_holds_a_copy() -> None:
    values = np.ones(3)
    x = tensor(values)
    values[0] = 9.0
    assert x.data.tolist() == [1.0, 1.0, 1.0] and x.shape == (3,) and len(x) == x.size == 3


def test_its_memory_is_read_only_and_c_contiguous() -> None:
    x = tensor(np.arange(6.0).reshape(2, 3).T)
    assert x.data.flags.c_contiguous and x.shape == (3, 2)
    for array in (x.data, x.numpy(), x.data[1:]):
        with pytest.raises(ValueError):
            array[0] = 1.0


def test_floats_take_the_precision_of_the_run_and_others_keep_their_dtype() -> None:
    assert tensor(np.float32(1.0)).dtype == tensor([1.0, 2]).dtype == runtime.real_dtype()
    assert tensor([True]).dtype == bool and tensor([1]).dtype.kind == "i"
    assert tensor([1.0], dtype=np.float32).dtype == np.float32


def test_writable_opens_the_memory_for_the_block_and_raises_the_version() -> None:
    x = tensor([1.0, 2.0])
    with x.writable() as values:
        values += 1.0
    assert x.version == 1 and x.data.tolist() == [2.0, 3.0]
    with pytest.raises(ValueError):
        values[0] = 9.0
    with pytest.raises(ValueError):
        x.data[0] = 9.0


def test_writable_locks_again_after_an_error() -> None:
    x = tensor([1.0])
    with pytest.raises(ZeroDivisionError), x.writable() as values:
        1 / 0  # noqa: B018
    assert not values.flags.writeable and not x.data.flags.writeable and x.version == 1


def test_a_computed_tensor_is_written_only_without_recording() -> None:
    y = tensor([1.0], requires_grad=True) * 2.0
    with pytest.raises(InputError, match=r"a computed tensor is not written in place.*MulBackward"), y.writable():
        pass
    with no_grad(), y.writable() as values:
        values[0] = 7.0
    assert y.item() == 7.0 and y.version == 1


def test_detach_shares_memory_and_version_and_leaves_the_graph() -> None:
    x = tensor([1.0], requires_grad=True)
    y = x * 2.0
    alias = y.detach()
    assert alias.data is y.data and alias.is_leaf and not alias.requires_grad
    with alias.writable() as values:
        values[0] = 5.0
    assert y.version == alias.version == 1 and y.item() == 5.0


def test_clone_is_a_copy_in_the_graph() -> None:
    x = tensor([1.0], requires_grad=True)
    y = x.clone()
    assert not np.shares_memory(x.data, y.data)
    y.backward()
    assert x.grad is not None and x.grad.item() == 1.0


# --- the graph


def test_only_floating_point_leaves_can_require_a_gradient() -> None:
    with pytest.raises(InputError, match="only floating-point tensors have gradients; found int64"):
        tensor([1, 2], requires_grad=True)
    y = tensor([1.0], requires_grad=True) * 2.0
    with pytest.raises(InputError, match=r"only leaves can change it; found <MulBackward>"):
        y.requires_grad_(False)


def test_requires_grad_can_be_switched_on_a_leaf() -> None:
    x = tensor([1.0])
    assert x.requires_grad_() is x and (x * 2.0).requires_grad
    assert not (x.requires_grad_(False) * 2.0).requires_grad


def test_a_gradient_is_a_tensor_of_the_leaf_s_shape_and_starts_as_none() -> None:
    x = tensor([[1.0, 2.0]], requires_grad=True)
    before = x.grad
    (x * x).sum().backward()
    assert before is None and x.grad is not None
    assert type(x.grad) is Tensor and x.grad.shape == (1, 2) and not x.grad.requires_grad


def test_a_tensor_has_a_readable_repr() -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    assert repr(x) == "tensor([1., 2.], requires_grad=True)"
    assert repr(x * 2.0) == "tensor([2., 4.], grad_fn=<MulBackward>)"
    assert repr(tensor(1.5)) == "tensor(1.5)"


def test_scalars_convert_to_python() -> None:
    x = tensor([[2.5]])
    assert (x.item(), float(x), bool(x)) == (2.5, 2.5, True)
    with pytest.raises(ValueError):
        tensor([1.0, 2.0]).item()


# --- arithmetic


def test_operators_give_numpy_s_values_with_tensors_arrays_and_numbers_on_either_side() -> None:
    a = np.array([1.0, 2.0], runtime.real_dtype())
    x = tensor(a)
    others: list[Any] = [3.0, np.array([[4.0], [5.0]], a.dtype), tensor([6.0, 7.0])]
    for other in others:
        b = other.data if isinstance(other, Tensor) else other
        np.testing.assert_allclose((x + other).data, a + b)
        np.testing.assert_allclose((other + x).data, b + a)
        np.testing.assert_allclose((x - other).data, a - b)
        np.testing.assert_allclose((other - x).data, b - a)
        np.testing.assert_allclose((other * x).data, b * a)
        np.testing.assert_allclose((other / x).data, b / a)
    np.testing.assert_allclose((-(x**2) + abs(x)).data, -(a**2) + abs(a))
    np.testing.assert_allclose((x @ x).data, a @ a)
    assert x[1].item() == 2.0 and x.sum().item() == 3.0 and x.mean().item() == 1.5


METHODS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    **{
        name: (operator.methodcaller(name), getattr(ops, name))
        for name in ("abs", "cos", "exp", "log", "sigmoid", "sin", "sqrt", "square", "tanh")
    },
    "pow": (lambda x: x.pow(3), lambda x: ops.pow(x, 3)),
    "pow by a Tensor": (lambda x: x.pow(x), lambda x: ops.pow(x, x)),
    "clamp": (lambda x: x.clamp(0.5, 1.5), lambda x: ops.clip(x, 0.5, 1.5)),
    "clamp below": (lambda x: x.clamp(min=1.0), lambda x: ops.clip(x, 1.0, None)),
    "clip": (lambda x: x.clip(0.5, 1.5), lambda x: ops.clip(x, 0.5, 1.5)),
    "clip above": (lambda x: x.clip(max=1.0), lambda x: ops.clip(x, None, 1.0)),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_of_pytorch_s_name_is_the_operation_with_its_gradient(name: str) -> None:
    method, operation = METHODS[name]
    x, y = (tensor([0.3, 1.2, 2.0], requires_grad=True) for _ in range(2))
    found, expected = method(x), operation(y)
    np.testing.assert_array_equal(found.data, expected.data)
    assert found.grad_fn is not None and expected.grad_fn is not None
    assert found.grad_fn.name() == expected.grad_fn.name()
    (found * found).sum().backward()
    (expected * expected).sum().backward()
    assert x.grad is not None and y.grad is not None
    np.testing.assert_array_equal(x.grad.data, y.grad.data)


def test_a_plain_number_does_not_widen_the_dtype() -> None:
    x = tensor([1.0], dtype=np.float32)
    assert (x * 2.0 + 1).dtype == (2.0 / x).dtype == np.float32


def test_an_array_that_became_a_constant_may_change_afterwards() -> None:
    x, factor = tensor([2.0], requires_grad=True), np.array([3.0], runtime.real_dtype())
    y = x * factor
    factor[0] = 100.0
    y.backward()
    assert x.grad is not None and x.grad.item() == 3.0


def test_a_tensor_is_a_key_by_identity() -> None:
    x, y = tensor(1.0), tensor(1.0)
    assert {x: "x", y: "y"}[y] == "y"


def test_equality_is_elementwise() -> None:
    x = tensor([0.0, 1.0])
    assert (x == 0).data.tolist() == (x == 0).data.tolist() == [True, False]
    assert (x != np.array([0, 2])).data.tolist() == [False, True] and (x == x).data.all()
    assert ops.where(x == 0, 9.0, x).data.tolist() == [9.0, 1.0]


def test_a_tensor_is_not_equal_to_what_is_no_number() -> None:
    x = tensor([0.0])
    assert (x == None) is False and (x != "0") is True  # noqa: E711
    assert {x: 1}[x] == 1 and x in {x} and tensor([0.0]) not in {x: 1}
