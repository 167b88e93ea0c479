"""Operands of operations: promotion, constants and their copies, types without gradients, guarded saved state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis.extra.numpy as shapes_of
import numpy as np
import pytest
from hypothesis import given, settings

from simphys.autograd import GraphError, InputError, Tensor, grad, no_grad, ops, tensor

BINARY = {
    "add": (ops.add, np.add),
    "sub": (ops.sub, np.subtract),
    "mul": (ops.mul, np.multiply),
    "div": (ops.div, np.divide),
    "pow": (ops.pow, np.power),
    "maximum": (ops.maximum, np.maximum),
    "minimum": (ops.minimum, np.minimum),
}


def f32(values: Any) -> Tensor:
    return tensor(values, dtype=np.float32, requires_grad=True)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("number", [2, 0.1])
@pytest.mark.parametrize("values", [1.5, [1.5, 2.5]])
def test_numbers_of_python_do_not_widen_f32(name: str, number: float, values: Any) -> None:
    op = BINARY[name][0]
    x = f32(values)
    for y in (op(x, number), op(number, x)):
        assert y.dtype == np.float32
        (adj,) = grad(y, x, [np.ones(y.shape)])
        assert adj is not None and adj.dtype == np.float32


@pytest.mark.parametrize("name", BINARY)
def test_mixed_precision_widens_the_result_and_gives_each_input_an_adjoint_of_its_own_type(name: str) -> None:
    x, y = f32([1.5, 2.5]), tensor([2.0, 1.0], dtype=np.float64, requires_grad=True)
    z = BINARY[name][0](x, y)
    assert z.dtype == np.float64
    adj_x, adj_y = grad(z, (x, y), [np.ones(2)])
    assert adj_x is not None and adj_x.dtype == np.float32
    assert adj_y is not None and adj_y.dtype == np.float64


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.bool_])
def test_integers_and_bools_promote_as_in_numpy_and_carry_no_gradient(dtype: Any) -> None:
    count = np.array([3, 2, 1]).astype(dtype)
    x = tensor([1.0, 2.0, 3.0], dtype=np.float64, requires_grad=True)
    for op, reference in BINARY.values():
        y = op(x, tensor(count))
        np.testing.assert_allclose(y.data, reference(x.data, count))
        assert y.grad_fn is not None
        assert [bool(edge) for edge in y.grad_fn.edges] == [True, False]
    assert not ops.sum(tensor(count)).requires_grad
    assert ops.sum(tensor(count)).data == count.sum()
    assert ops.mean(tensor(count)).dtype == np.float64


def test_minimum_with_unsigned_integers_does_not_wrap() -> None:
    x = tensor([1.0, 3.0], dtype=np.float64, requires_grad=True)
    (adj,) = grad(ops.minimum(x, np.array([2, 2], np.uint8)), x, [np.ones(2)])
    assert adj is not None and adj.data.tolist() == [1.0, 0.0]


@given(shapes_of.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=3, min_side=0))
@settings(max_examples=60)
def test_adjoints_have_the_shapes_of_their_inputs_and_sum_over_broadcast_axes(
    shapes: shapes_of.BroadcastableShapes,
) -> None:
    rng = np.random.default_rng(1)
    arrays = [rng.normal(size=shape) for shape in shapes.input_shapes]
    condition, u = rng.normal(size=shapes.result_shape) > 0, rng.normal(size=shapes.result_shape)

    def adjoints(inputs: list[Tensor]) -> list[np.ndarray]:
        x, y, z = inputs
        w = ops.where(condition, x * y + z, z / (2.0 + y * y) - x)
        assert w.shape == shapes.result_shape
        return [adj.data for adj in grad(w, inputs, [u]) if adj is not None]

    repeated = [np.broadcast_to(array, shapes.result_shape) for array in arrays]
    own = adjoints([tensor(array, dtype=np.float64, requires_grad=True) for array in arrays])
    whole = adjoints([tensor(array, dtype=np.float64, requires_grad=True) for array in repeated])
    for array, adj, adj_whole in zip(arrays, own, whole, strict=True):
        assert adj.shape == array.shape
        summed = adj_whole.sum(tuple(range(adj_whole.ndim - array.ndim)))
        summed = summed.sum(tuple([i for i, n in enumerate(array.shape) if n == 1]), keepdims=True)
        np.testing.assert_allclose(adj, summed, atol=1e-12)


@pytest.mark.parametrize(
    "op",
    [
        lambda x, c: x * c,
        lambda x, c: c / x,
        lambda x, c: x**c,
        lambda x, c: ops.maximum(c, x),
        lambda x, c: ops.clip(x, c),
        lambda x, c: ops.where(c > 1, x, 0.0),
        lambda x, c: ops.matmul(c, x),
        lambda x, c: x[c.astype(int)],
        lambda x, c: ops.put(x, c > 1, 0.0),
    ],
)
def test_a_constant_array_changed_after_forward_does_not_change_the_gradient(op: Callable[..., Tensor]) -> None:
    x = tensor([2.0, 1.5, 0.5], dtype=np.float64, requires_grad=True)
    c = np.array([2.0, 1.0, 0.0])
    y = op(x, c)
    (expected,) = grad(y, x, [np.ones(y.shape)], retain_graph=True)
    c[:] = [0.0, 2.0, 1.0]
    (adj,) = grad(y, x, [np.ones(y.shape)])
    assert adj is not None and expected is not None
    np.testing.assert_array_equal(adj.data, expected.data)


def test_an_index_array_changed_after_forward_does_not_change_the_gradient() -> None:
    x = tensor([1.0, 2.0, 3.0], dtype=np.float64, requires_grad=True)
    index = np.array([0, 0])
    y, z = x[index], x[(index,)]
    index[:] = 2
    for result in (y, z):
        (adj,) = grad(result, x, [np.ones(2)])
        assert adj is not None and adj.data.tolist() == [2.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "op",
    [
        lambda x: x * x,
        lambda x: 1.0 / x,
        lambda x: x**3,
        lambda x: ops.maximum(x, 1.0),
        lambda x: ops.clip(x, 1.0),
        ops.abs,
        ops.log,
        ops.sin,
        ops.cos,
        ops.softplus,
        ops.max,
        ops.min,
        ops.norm,
        lambda x: x @ x,
    ],
)
def test_an_input_written_between_forward_and_backward_is_noticed(op: Callable[..., Tensor]) -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    y = op(x)
    with x.writable() as values:
        values[0] = 5.0
    with pytest.raises(GraphError, match="changed after forward"):
        y.backward(np.ones(y.shape))


@pytest.mark.parametrize("op", [ops.exp, ops.sqrt, ops.tanh, ops.sigmoid, ops.norm])
def test_a_result_written_between_forward_and_backward_is_noticed(op: Callable[..., Tensor]) -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    y = op(x)
    with no_grad(), y.writable() as values:
        values[...] = 5.0
    with pytest.raises(GraphError, match="changed after forward"):
        y.backward(np.ones(y.shape))


def test_a_write_to_an_operand_that_no_rule_reads_is_allowed() -> None:
    x, w = tensor([1.0, 2.0], requires_grad=True), tensor([3.0, 4.0])
    y = ops.sum(w * x + x)
    with x.writable() as values:
        values[...] = 0.0
    y.backward()
    assert x.grad is not None and x.grad.data.tolist() == [4.0, 5.0]


@pytest.mark.parametrize("other", [None, "1"])
def test_a_value_that_is_no_operand_is_refused(other: Any) -> None:
    with pytest.raises(InputError, match="operand"):
        tensor([1.0, 2.0]) * other


def test_a_list_of_tensors_is_an_operand_unless_a_gradient_would_be_lost() -> None:
    product = tensor([1.0, 2.0]) * [tensor(3.0), tensor(4.0)]
    assert product.data.tolist() == [3.0, 8.0]
    with pytest.raises(InputError, match="requires a gradient"):
        tensor([1.0, 2.0]) * [tensor(3.0, requires_grad=True), tensor(4.0)]


def test_shapes_that_do_not_broadcast_raise_numpys_error() -> None:
    with pytest.raises(ValueError):
        tensor([1.0, 2.0]) + tensor([1.0, 2.0, 3.0])


def test_arrays_on_the_left_leave_the_operation_to_the_tensor() -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    for y in (np.ones(2) * x, np.ones(2) - x, np.ones(2) / x, np.ones(2) @ x, np.float64(2.0) ** x):
        assert isinstance(y, Tensor) and y.requires_grad


@pytest.mark.parametrize(
    ("op", "name"),
    [
        (lambda x: x + x, "AddBackward"),
        (lambda x: x - x, "SubBackward"),
        (lambda x: x * x, "MulBackward"),
        (lambda x: x / x, "DivBackward"),
        (lambda x: -x, "NegBackward"),
        (lambda x: x**2, "PowBackward"),
        (ops.square, "PowBackward"),
        (abs, "AbsBackward"),
        (lambda x: ops.clip(x, 0), "ClampBackward"),
        (ops.exp, "ExpBackward"),
        (ops.log, "LogBackward"),
        (lambda x: x.sum(), "SumBackward"),
        (lambda x: x.mean(), "MeanBackward"),
        (ops.max, "AmaxBackward"),
        (ops.norm, "LinalgVectorNormBackward"),
        (lambda x: x[0], "IndexBackward"),
        (lambda x: ops.put(x, 0, 1.0), "IndexPutBackward"),
        (lambda x: x.reshape(-1), "ReshapeBackward"),
        (lambda x: x.T, "TransposeBackward"),
        (lambda x: x.clone(), "CloneBackward"),
        (lambda x: ops.concatenate([x]), "CatBackward"),
        (lambda x: ops.stack([x]), "StackBackward"),
        (lambda x: ops.broadcast_to(x, (2, 2)), "ExpandBackward"),
        (lambda x: x @ x, "MatmulBackward"),
    ],
)
def test_nodes_bear_pytorchs_names(op: Callable[[Tensor], Tensor], name: str) -> None:
    node = op(tensor([1.0, 2.0], requires_grad=True)).grad_fn
    assert node is not None and node.name() == name
