"""Memory that a kernel overwrites between forward and backward: an error or the right gradient, never a wrong one.

The cases are those in which a tool that reads current memory in backward is silently wrong: a write to an input, to an
intermediate result, to a saved output, and by a kernel to a buffer that it was not given as output.
"""

from collections.abc import Callable
from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import Context, Function, GraphError, InputError, Tensor, kernel, no_grad, runtime, tensor
from simphys.autograd.proof.gradcheck import gradcheck

pytestmark = pytest.mark.gpu

ti = runtime.ti
real = runtime.real()
dtype = runtime.real_dtype()
Reals = ti.types.ndarray(dtype=real, ndim=1)


@no_type_check
@kernel
def exponential(x: Reals, y: Reals):
    for i in range(x.shape[0]):
        y[i] = ti.exp(x[i])


@no_type_check
@kernel
def product(factor: real, x: Reals, y: Reals, z: Reals):
    for i in range(x.shape[0]):
        z[i] = factor * x[i] * y[i]


@no_type_check
@kernel
def double(x: Reals, y: Reals):
    for i in range(x.shape[0]):
        y[i] = 2 * x[i]


@no_type_check
@kernel
def clear(x: Reals):
    for i in range(x.shape[0]):
        x[i] = 0.0


@no_type_check
@kernel
def double_and_clear(x: Reals, y: Reals):
    for i in range(x.shape[0]):
        y[i] = 2 * x[i]
        x[i] = 0.0


def empty(like: Tensor) -> Tensor:
    return Tensor(np.empty(like.shape, like.dtype))


class Exp(Function):
    """A Function that keeps its output."""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Tensor:
        y = empty(x)
        exponential(x, y)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Context, adj_y: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        adj_x = empty(y)
        product(1.0, y, adj_y, adj_x)
        return adj_x


class Square(Function):
    """A Function that keeps its input."""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        y = empty(x)
        product(1.0, x, x, y)
        return y

    @staticmethod
    def backward(ctx: Context, adj_y: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        adj_x = empty(x)
        product(2.0, x, adj_y, adj_x)
        return adj_x


class Double(Function):
    """A Function that keeps nothing."""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Tensor:
        y = empty(x)
        double(x, y)
        return y

    @staticmethod
    def backward(ctx: Context, adj_y: Tensor) -> Tensor:
        adj_x = empty(adj_y)
        double(adj_y, adj_x)
        return adj_x


def leaf() -> Tensor:
    return tensor([1.0, 2.0], requires_grad=True)


def seed() -> np.ndarray:
    return np.ones(2, dtype)


def gradient(x: Tensor) -> list[float]:
    assert x.grad is not None
    return x.grad.data.tolist()


@pytest.mark.parametrize("function", [Exp, Square, Double])
@pytest.mark.skipif(dtype != np.float64, reason="finite differences need f64")
def test_left_alone_their_gradients_are_right(function: type[Function]) -> None:
    gradcheck(function.apply, leaf())


# --- an input


def test_an_input_that_was_saved() -> None:
    x = leaf()
    y = Square.apply(x)
    clear(x)
    with pytest.raises(GraphError, match=r"SquareBackward: saved tensor 0 \(shape \(2,\)\) was changed after forward"):
        y.backward(seed())


def test_an_input_that_backward_does_not_read() -> None:
    x = leaf()
    y = Double.apply(x)
    clear(x)
    y.backward(seed())
    assert gradient(x) == [2.0, 2.0]


def test_an_input_written_by_a_launch_that_was_bound_before() -> None:
    x = leaf()
    clear_x = clear.bind(x)
    y = Square.apply(x)
    clear_x()
    with pytest.raises(GraphError, match="SquareBackward"):
        y.backward(seed())


# --- an intermediate result


@pytest.mark.parametrize("first", [Square, Exp])
def test_an_intermediate_result_that_was_saved(first: type[Function]) -> None:
    z = first.apply(leaf())
    y = Square.apply(z)
    with pytest.raises(InputError, match="kernel clear, argument x: a computed tensor is not written in place"):
        clear(z)
    with no_grad():
        clear(z)
    with pytest.raises(GraphError, match="SquareBackward: saved tensor 0"):
        y.backward(seed())


def test_an_intermediate_result_that_backward_does_not_read() -> None:
    x = leaf()
    z = Double.apply(x)
    y = Double.apply(z)
    with no_grad():
        clear(z)
    y.backward(seed())
    assert gradient(x) == [4.0, 4.0]


# --- a saved output


def through_itself(y: Tensor) -> None:
    with no_grad():
        clear(y)


def through_an_alias(y: Tensor) -> None:
    clear(y.detach())


def through_a_bound_launch(y: Tensor) -> None:
    clear.bind(y.detach())()


@pytest.mark.parametrize("overwrite", [through_itself, through_an_alias, through_a_bound_launch])
def test_a_saved_output(overwrite: Callable[[Tensor], None]) -> None:
    y = Exp.apply(leaf())
    overwrite(y)
    with pytest.raises(GraphError, match="ExpBackward: saved tensor 0"):
        y.backward(seed())


@pytest.mark.parametrize("view", [lambda y: y.data, lambda y: y.numpy()[:], lambda y: y.data.reshape(2)])
def test_the_array_of_a_saved_output_is_locked(view: Callable[[Tensor], np.ndarray]) -> None:
    x = leaf()
    y = Exp.apply(x)
    with pytest.raises(InputError, match="argument x: it writes to this argument; found a read-only array"):
        clear(view(y))
    y.backward(seed())
    np.testing.assert_allclose(gradient(x), np.exp([1.0, 2.0]), rtol=1e-6)


# --- a buffer that was not given as output


def function_of(forward: Callable[..., Any]) -> type[Function]:
    return type("Mine", (Double,), {"forward": staticmethod(forward)})


def test_an_input_that_forward_writes_on_the_way() -> None:
    def forward(ctx: Context, x: Tensor) -> Tensor:
        y = empty(x)
        double_and_clear(x, y)
        return y

    with pytest.raises(GraphError, match=r"Mine: forward wrote to input 0 \(shape \(2,\)\)"):
        function_of(forward).apply(Double.apply(leaf()))


def test_a_tensor_that_another_node_saved() -> None:
    x = leaf()
    z = Double.apply(x)
    y = Square.apply(z)

    def forward(ctx: Context, x: Tensor) -> Tensor:
        clear(z)  # captured, not an input
        return x

    function_of(forward).apply(x)
    with pytest.raises(GraphError, match="SquareBackward: saved tensor 0"):
        y.backward(seed())


def test_memory_that_forward_returned_before() -> None:
    buffer = np.empty(2, dtype)

    def forward(ctx: Context, x: Tensor) -> np.ndarray:
        double(x, buffer)
        return buffer

    mine, x = function_of(forward), leaf()
    y = mine.apply(x)
    with pytest.raises(InputError, match=r"kernel double, argument y: .* found a read-only array"):
        mine.apply(Square.apply(x))
    y.backward(seed())
    assert gradient(x) == [2.0, 2.0]


def test_a_field_that_no_argument_names() -> None:
    total = ti.field(real, shape=1)

    @no_type_check
    def double_and_sum(x: Reals, y: Reals):
        for i in range(x.shape[0]):
            y[i] = 2 * x[i]
            total[0] += x[i]

    with pytest.raises(InputError, match="kernel double_and_sum: it writes to its arguments only; found total"):
        kernel(double_and_sum)


# --- arrays, which have no version of their own


class ExpOfArray(Exp):
    """A Function that keeps its output as an array."""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Any:
        y = np.empty(x.shape, x.dtype)
        exponential(x, y)
        ctx.save_for_backward(y)
        return y


def test_a_saved_array_is_guarded_as_the_result_that_it_becomes() -> None:
    x = leaf()
    y = ExpOfArray.apply(x)
    with no_grad():
        exponential(tensor([0.0, 0.0]), y)
    with pytest.raises(GraphError, match=r"ExpOfArrayBackward: saved tensor 0 .* version 1, saved at version 0"):
        y.sum().backward()


def test_scratch_memory_that_was_saved_cannot_be_written_to_again() -> None:
    scratch = np.empty(2, dtype)

    class Scratch(Exp):
        @staticmethod
        def forward(ctx: Context, x: Tensor) -> Any:
            exponential(x, scratch)
            ctx.save_for_backward(scratch)
            return scratch * 1.0

    Scratch.apply(leaf())
    with pytest.raises(InputError, match="a read-only array"):
        Scratch.apply(leaf())


def test_a_backward_that_writes_to_the_adjoint_it_is_given_raises() -> None:
    class InPlace(Double):
        @staticmethod
        def backward(ctx: Context, adj: Tensor) -> Tensor:
            double(adj, adj)
            return adj

    x = leaf()
    with pytest.raises(GraphError, match="InPlaceBackward: backward wrote to its argument, the adjoint of output 0"):
        (InPlace.apply(x) + x * 3.0).sum().backward()
