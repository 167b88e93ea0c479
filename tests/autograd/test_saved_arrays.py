"""Saved arrays are guarded, whoever else holds them: a Tensor, a list, a view, a bound launch."""

from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import Function, GraphError, InputError, Tensor, kernel, runtime, tensor
from simphys.autograd.kernels.memory import held

ti = runtime.ti
real = runtime.real()
dtype = runtime.real_dtype()
Reals = ti.types.ndarray(dtype=real, ndim=1)


class Scaled(Function):
    """w * values, of which the values are saved."""

    @staticmethod
    def forward(ctx: Any, w: Tensor, values: Any) -> Any:
        ctx.save_for_backward(values)
        return w.data * np.asarray(values)

    @staticmethod
    def backward(ctx: Any, adj: Tensor) -> Any:
        (values,) = ctx.saved_tensors
        return adj.data * values.data, None


def weights() -> Tensor:
    return tensor(np.ones(3, dtype), requires_grad=True)


def gradient(loss: Tensor, w: Tensor) -> list[float]:
    loss.sum().backward()
    assert w.grad is not None
    return w.grad.data.tolist()


def test_the_memory_of_a_tensor_is_saved_as_a_copy() -> None:
    w, x = weights(), tensor(np.ones(3, dtype))
    result = Scaled.apply(w, x.data)
    with x.writable() as a:
        a[:] = 9
    assert gradient(result, w) == [1, 1, 1]


def test_an_array_with_a_view_elsewhere_is_saved_as_a_copy() -> None:
    w, array = weights(), np.ones(3, dtype)
    part = array[1:]
    result = Scaled.apply(w, array)
    part[:] = 9
    assert gradient(result, w) == [1, 1, 1]


def test_an_array_made_in_forward_is_saved_without_a_copy() -> None:
    made = []

    class Doubled(Function):
        @staticmethod
        def forward(ctx: Any, w: Tensor) -> Any:
            factor, result = np.full(3, 2, dtype), w.data * 2
            made.extend([factor.ctypes.data, result.ctypes.data])
            ctx.save_for_backward(factor, result)
            return result

        @staticmethod
        def backward(ctx: Any, adj: Tensor) -> Any:
            factor, result = ctx.saved_tensors
            assert [factor.data.ctypes.data, result.data.ctypes.data] == made
            return adj.data * factor.data

    w = weights()
    result = Doubled.apply(w)
    assert result.data.ctypes.data == made[1]
    assert gradient(result, w) == [2, 2, 2]


@pytest.mark.parametrize("pack", [lambda x: [x], lambda x: (x,), lambda x: {"x": x}])
def test_tensors_inside_another_value_are_refused(pack: Any) -> None:
    class Packed(Function):
        @staticmethod
        def forward(ctx: Any, w: Tensor) -> Any:
            ctx.save_for_backward(pack(w))

    with pytest.raises(InputError, match=r"save_for_backward: .* found one inside a (list|tuple|dict)\. Unpack"):
        Packed.apply(weights())


@no_type_check
@kernel
def double(x: Reals, y: Reals):
    for i in x:
        y[i] = 2 * x[i]


class Launched(Function):
    """w times the array that a bound launch writes, which is saved and (for 0) returned."""

    @staticmethod
    def forward(ctx: Any, w: Tensor, launch: Any, out: Any, returned: int) -> Any:
        launch()
        if not returned:
            return out
        ctx.save_for_backward(out)
        return w.data * out

    @staticmethod
    def backward(ctx: Any, adj: Tensor) -> Any:
        (factor,) = ctx.saved_tensors
        return adj.data * factor.data, None, None, None


def test_what_a_bound_launch_writes_does_not_become_a_tensor() -> None:
    w, x, out = weights(), tensor(np.ones(3, dtype)), np.zeros(3, dtype)
    launch = double.bind(x, out)
    returned, scaled = Launched.apply(w, launch, out, 0), Launched.apply(w, launch, out, 1)
    with x.writable() as a:
        a[:] = 5
    launch()
    assert out.tolist() == [10, 10, 10] and returned.data.tolist() == [2, 2, 2]
    assert gradient(scaled, w) == [2, 2, 2]


def test_a_whole_array_of_which_a_bound_launch_writes_a_part_does_not_become_a_tensor() -> None:
    whole = np.zeros(4, dtype)
    launch = double.bind(np.ones(2, dtype), whole[2:])
    result = Tensor(whole)
    launch()
    assert whole.tolist() == [0, 0, 2, 2] and result.data.tolist() == [0, 0, 0, 0]


def test_arrays_are_free_after_the_last_bound_launch() -> None:
    before, out = dict(held), np.zeros(3, dtype)
    first, second = double.bind(np.ones(3, dtype), out), double.bind(np.ones(3, dtype), out)
    assert held[id(out)] == 2
    del first, second
    assert held == before and Tensor(out).data is out


# --- blocks that write


def test_an_operation_on_a_tensor_that_is_open_for_writing_is_refused() -> None:
    x = tensor(np.ones(3, dtype), requires_grad=True)
    with pytest.raises(GraphError, match=r"saved tensor 0 \(shape \(3,\)\) is open for writing"), x.writable():
        (x * x).sum()
    assert (x * x).sum().item() == 3


def test_an_alias_is_open_with_the_tensor() -> None:
    x = tensor(np.ones(3, dtype))
    with pytest.raises(GraphError, match="open for writing"), x.writable():
        weights() * x.detach()


def test_an_unrecorded_operation_may_use_a_tensor_that_is_open_for_writing() -> None:
    x = tensor(np.full(3, 2, dtype))
    with x.writable() as a:
        a += (x * x).data
    assert x.data.tolist() == [6, 6, 6]


def test_a_view_that_outlives_the_block_is_refused() -> None:
    x = tensor(np.ones(3, dtype))
    with pytest.raises(InputError, match="views of the values end with the block"), x.writable() as a:
        _part = a[:]
    with x.writable() as b:
        part = b[:]
        part[0] = 5
        del part
    assert x.data[0] == 5 and not b.flags.writeable


def test_memory_lives_as_long_as_the_view_of_a_block() -> None:
    with tensor(np.arange(1000.0, dtype=dtype)).writable() as a:
        pass
    assert (a == np.arange(1000)).all()
