"""Functions as in PyTorch: recording, saved state, results."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Context, Function, GraphError, Tensor, enable_grad, grad, is_grad_enabled, ops, tensor
from simphys.autograd.node import AccumulateGrad


class Square(Function):
    @staticmethod
    def forward(ctx: Context, x: Tensor) -> np.ndarray:
        ctx.save_for_backward(x)
        return x.data**2

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> np.ndarray:
        (x,) = ctx.saved_tensors
        return 2 * x.data * adj.data


class Power(Function):
    """x to a plain Python power."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, power: int) -> np.ndarray:
        ctx.save_for_backward(x)
        ctx.power = power
        return x.data**power

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[np.ndarray, None]:
        (x,) = ctx.saved_tensors
        return ctx.power * x.data ** (ctx.power - 1) * adj.data, None


class Split(Function):
    """(2x, 3x)"""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> tuple[np.ndarray, np.ndarray]:
        return 2 * x.data, 3 * x.data

    @staticmethod
    def backward(ctx: Context, adj_a: Tensor, adj_b: Tensor) -> np.ndarray:
        return 2 * adj_a.data + 3 * adj_b.data


class Sum(Function):
    @staticmethod
    def forward(ctx: Context, *xs: Tensor) -> Any:
        return sum(x.data.sum() for x in xs)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> Any:
        return tuple([np.full(node.outputs[i][0], adj.data) for node, i in ctx.next_functions if node is not None])


def leaf(values: Any) -> Tensor:
    return tensor(values, requires_grad=True)


def gradient(x: Tensor) -> np.ndarray:
    assert x.grad is not None
    return x.grad.data


# --- the node


@pytest.mark.gpu
def test_a_result_has_the_node_that_made_it() -> None:
    x = leaf([1.0, 2.0])
    y = Square.apply(x)
    z = Sum.apply(y)
    assert y.grad_fn.name() == "SquareBackward"
    assert z.grad_fn.next_functions == ((y.grad_fn, 0),)
    assert repr(z.grad_fn) == "<SumBackward>"
    assert not y.is_leaf and y.requires_grad


@pytest.mark.gpu
def test_a_leaf_has_no_node_and_ends_paths_as_accumulate_grad() -> None:
    x = leaf([1.0, 2.0])
    y = Square.apply(x)
    ((end, index),) = y.grad_fn.next_functions
    assert x.is_leaf and x.grad_fn is None
    assert end.name() == "AccumulateGrad" and index == 0
    assert end.variable is x
    assert Square.apply(x).grad_fn.next_functions[0][0] is end  # one for each leaf


@pytest.mark.gpu
def test_next_functions_has_an_entry_for_each_tensor_and_none_where_no_gradient_flows() -> None:
    x, constant = leaf(1.0), tensor(2.0)
    y = Sum.apply(constant, x, constant)
    assert [node is not None for node, _ in y.grad_fn.next_functions] == [False, True, False]
    assert y.grad_fn.needs_input_grad == (False, True, False)


@pytest.mark.gpu
def test_arguments_that_are_no_tensors_make_no_edge() -> None:
    x = leaf([1.0, 2.0])
    node = AccumulateGrad, 0
    for y, expected in [
        (x.sum(), [node]),
        (x.sum(0, keepdims=True), [node]),
        (x * 2.0, [node, (None, 0)]),  # a number is an operand
        (2.0 - x, [(None, 0), node]),
        (x * np.ones(2), [node, (None, 0)]),
        (x**2, [node]),  # as in PyTorch, the exponent is not
        (x[:1], [node]),
        (ops.clip(x, 0.0, 1.0), [node]),
        (ops.where(x.data > 1, x, 2.0), [node, (None, 0)]),
        (ops.concatenate([np.ones(1), x]), [(None, 0), node]),
    ]:
        assert y.grad_fn is not None
        assert [(end and type(end), index) for end, index in y.grad_fn.next_functions] == expected


@pytest.mark.gpu
def test_next_functions_has_the_number_of_the_output() -> None:
    a, b = Split.apply(leaf(1.0))
    assert Sum.apply(b, a).grad_fn.next_functions == ((a.grad_fn, 1), (a.grad_fn, 0))


@pytest.mark.gpu
def test_nothing_is_recorded_when_no_input_requires_a_gradient() -> None:
    seen = []

    class Look(Square):
        @staticmethod
        def forward(ctx: Context, x: Tensor) -> np.ndarray:
            seen.append(ctx.needs_input_grad)
            return x.data * 1

    y = Look.apply(tensor([1.0]))
    assert y.grad_fn is None and not y.requires_grad and seen == [(False,)]


@pytest.mark.gpu
def test_arguments_that_are_not_tensors_pass_through() -> None:
    x = leaf([2.0, 3.0])
    Power.apply(x, 3).backward([1.0, 10.0])
    np.testing.assert_allclose(gradient(x), [12.0, 270.0])


# --- several outputs


@pytest.mark.gpu
def test_an_unused_output_arrives_in_backward_as_zeros() -> None:
    x = leaf([1.0, 1.0])
    _, b = Split.apply(x)
    b.backward([1.0, 2.0])
    np.testing.assert_allclose(gradient(x), [3.0, 6.0])


@pytest.mark.gpu
def test_an_unused_output_arrives_as_none_when_materializing_is_off() -> None:
    received = []

    class Bare(Function):
        @staticmethod
        def forward(ctx: Context, x: Tensor) -> tuple[np.ndarray, np.ndarray]:
            ctx.set_materialize_grads(False)
            return 2 * x.data, 3 * x.data

        @staticmethod
        def backward(ctx: Context, adj_a: Tensor | None, adj_b: Tensor | None) -> np.ndarray | None:
            received.append((adj_a, adj_b))
            return None if adj_a is None else 2 * adj_a.data

    x = leaf(1.0)
    Bare.apply(x)[0].backward()
    assert received[0][1] is None and gradient(x) == 2.0
    Bare.apply(x)[1].backward()
    assert gradient(x) == 2.0  # None adds nothing


@pytest.mark.gpu
def test_a_result_that_is_marked_carries_no_gradient() -> None:
    class Sorted(Function):
        @staticmethod
        def forward(ctx: Context, x: Tensor) -> tuple[np.ndarray, Tensor]:
            mask = Tensor((x.data > 0).astype(x.dtype))
            ctx.mark_non_differentiable(mask)
            return x.data * mask.data, mask

        @staticmethod
        def backward(ctx: Context, adj: Tensor, adj_mask: Tensor) -> np.ndarray:
            return adj.data

    y, mask = Sorted.apply(leaf([1.0, -1.0]))
    assert y.requires_grad and not mask.requires_grad and mask.grad_fn is None


@pytest.mark.gpu
def test_integer_results_carry_no_gradient() -> None:
    class Count(Split):
        @staticmethod
        def forward(ctx: Context, x: Tensor) -> Any:
            return 2 * x.data, np.arange(x.size)

    y, count = Count.apply(leaf([1.0, 2.0]))
    assert y.requires_grad and not count.requires_grad


# --- results own their memory

FORWARDS: dict[str, Any] = {
    "the input": lambda x: x,
    "an alias of the input": lambda x: x.detach(),
    "the input's memory": lambda x: x.data,
    "a view": lambda x: x.data[::1],
    "a transposed array": lambda x: np.stack([x.data, x.data]).T,
}


@pytest.mark.gpu
@pytest.mark.parametrize("forward", FORWARDS.values(), ids=FORWARDS)
def test_a_result_never_shares_memory_with_an_input(forward: Any) -> None:
    class Return(Function):
        @staticmethod
        def forward(ctx: Context, x: Tensor) -> Any:
            return forward(x)

    x = leaf([1.0, 2.0, 3.0])
    y = Return.apply(x)
    assert not np.shares_memory(y.data, x.data)
    assert y.data.flags.c_contiguous and not y.data.flags.writeable
    assert x.is_leaf and y.grad_fn.name() == "ReturnBackward"
    with x.writable() as values:
        values[:] = 7.0
    assert y.version == 0 and 7.0 not in y.data


@pytest.mark.gpu
@pytest.mark.parametrize("make", [np.copy, lambda array: Tensor(array.copy())], ids=["array", "tensor"])
def test_one_array_returned_twice_gives_two_results(make: Any) -> None:
    class Twice(Split):
        @staticmethod
        def forward(ctx: Context, x: Tensor) -> Any:
            y = make(x.data)
            return y, y

    x = leaf([1.0])
    a, b = Twice.apply(x)
    assert not np.shares_memory(a.data, b.data) and (a.output_index, b.output_index) == (0, 1)
    a.backward()
    assert gradient(x) == 2.0


@pytest.mark.gpu
def test_a_parameter_that_forward_returns_stays_a_leaf() -> None:
    parameter = leaf([5.0])

    class Constant(Function):
        @staticmethod
        def forward(ctx: Context, x: Tensor) -> Any:
            return parameter

    y = Constant.apply(leaf([1.0]))
    assert y is not parameter and parameter.is_leaf
    assert not np.shares_memory(y.data, parameter.data)


@pytest.mark.gpu
def test_a_forward_without_a_result_raises() -> None:
    class Silent(Function):
        @staticmethod
        def forward(ctx: Context, x: Tensor) -> Any:
            x.data * 2

    with pytest.raises(TypeError, match=r"Silent\.forward returned None"):
        Silent.apply(leaf(1.0))


# --- saved state is guarded


@pytest.mark.gpu
def test_writing_a_saved_input_between_forward_and_backward_raises_naming_function_tensor_and_versions() -> None:
    x = leaf([1.0, 2.0])
    y = Square.apply(x)
    with x.writable() as values:
        values[0] = 5.0
    with pytest.raises(
        GraphError, match=r"SquareBackward: saved tensor 0 \(shape \(2,\)\).*version 1, saved at version 0"
    ):
        y.backward([1.0, 1.0])


@pytest.mark.gpu
def test_writing_a_saved_intermediate_raises() -> None:
    y = Square.apply(leaf([1.0, 2.0]))
    z = Square.apply(y)
    with y.detach().writable() as values:  # the alias shares memory and version
        values[0] = 5.0
    with pytest.raises(GraphError, match=r"SquareBackward: saved tensor 0"):
        z.backward([1.0, 1.0])


class Root(Function):
    """sqrt(x), whose adjoint reads the result."""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Tensor:
        y = Tensor(np.sqrt(x.data))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> np.ndarray:
        (y,) = ctx.saved_tensors
        return adj.data / (2 * y.data)


@pytest.mark.gpu
def test_writing_a_saved_result_raises() -> None:
    y = Root.apply(leaf([4.0]))
    y.detach().raise_version()
    with pytest.raises(GraphError, match=r"RootBackward: saved tensor 0"):
        y.backward()


@pytest.mark.gpu
def test_a_saved_result_does_not_keep_its_node_alive() -> None:
    y = Root.apply(leaf([4.0]))
    node = weakref.ref(y.grad_fn)
    del y
    assert node() is None  # without the garbage collector


@pytest.mark.gpu
def test_writing_an_input_that_was_not_saved_is_allowed() -> None:
    x = leaf([1.0])
    a, _ = Split.apply(x)
    x.raise_version()
    a.backward()
    assert gradient(x) == 2.0


# --- Functions in Functions


@pytest.mark.gpu
def test_recording_is_off_inside_forward_and_backward() -> None:
    seen = []

    class Look(Square):
        @staticmethod
        def forward(ctx: Context, x: Tensor) -> Any:
            seen.append(is_grad_enabled())
            return Square.apply(x)

        @staticmethod
        def backward(ctx: Context, adj: Tensor) -> Any:
            seen.append(is_grad_enabled())
            return adj

    x = leaf(3.0)
    y = Look.apply(x)
    y.backward()
    assert y.grad_fn.name() == "LookBackward" and y.grad_fn.next_functions == ()  # one node, freed
    assert seen == [False, False] and is_grad_enabled()


@pytest.mark.gpu
def test_an_error_in_forward_leaves_recording_on() -> None:
    class Fail(Function):
        @staticmethod
        def forward(ctx: Context, x: Tensor) -> Any:
            raise ArithmeticError("blow-up")

    with pytest.raises(ArithmeticError):
        Fail.apply(leaf(1.0))
    assert is_grad_enabled()


class Hybrid(Function):
    """x^4 as two nested squares, differentiated by their own adjoints."""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Any:
        with enable_grad():
            ctx.x = x.detach().requires_grad_()
            ctx.y = Square.apply(Square.apply(ctx.x))
        return ctx.y.data

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> Any:
        return grad(ctx.y, ctx.x, (adj,), retain_graph=True)


class Undetached(Hybrid):
    """The same without cutting the inner graph from the outer."""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Any:
        with enable_grad():
            ctx.x = x
            ctx.y = Square.apply(Square.apply(x))
        return ctx.y.data


@pytest.mark.gpu
@pytest.mark.parametrize("function", [Hybrid, Undetached])
def test_a_hybrid_function_is_one_node_that_uses_the_adjoints_of_those_inside(function: type[Function]) -> None:
    x = leaf([1.0, 2.0])
    y = Square.apply(x)
    z = function.apply(y)
    assert z.grad_fn.next_functions == ((y.grad_fn, 0),)
    z.backward([1.0, 1.0])
    np.testing.assert_allclose(gradient(x), [8.0, 8.0 * 2.0**7])


@pytest.mark.gpu
def test_a_function_without_forward_or_backward_names_the_missing_one() -> None:
    class Empty(Function):
        pass

    class Half(Function):
        @staticmethod
        def forward(ctx: Context, x: Tensor) -> Any:
            return x.data * 0.5

    with pytest.raises(TypeError, match="must define forward"):
        Empty.apply(1.0)
    with pytest.raises(TypeError, match="must define backward"):
        Half.apply(leaf(1.0)).backward()


class WithMask(Function):
    """(2 x, 1 where x > 1), the second as an array that is marked."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, alone: bool) -> Any:
        mask = (x.data > 1).astype(x.dtype)
        ctx.mark_non_differentiable(mask)
        return mask if alone else (2 * x.data, mask)

    @staticmethod
    def backward(ctx: Context, *adjoints: Tensor) -> Any:
        return 2 * adjoints[0].data, None


def test_an_array_can_be_marked_as_non_differentiable() -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    doubled, mask = WithMask.apply(x, False)
    alone = WithMask.apply(x, True)
    assert doubled.requires_grad and not mask.requires_grad and not alone.requires_grad
    assert mask.data.tolist() == alone.data.tolist() == [0, 1]
