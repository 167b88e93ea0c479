"""Forward and reverse derivatives of functions agree with each other and with the formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Context, Function, GraphError, InputError, Tensor, runtime, tensor
from simphys.autograd.compose.functional import jacobian, jvp, linearize, vjp
from simphys.autograd.compose.pipe import combine
from simphys.autograd.errors import MissingJvp

pytestmark = pytest.mark.gpu

TOLERANCE = 1e-12 if runtime.real_dtype() == np.float64 else 1e-5


class Product(Function):
    """(x y, x + y) with both rules."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, y: Tensor) -> Any:
        ctx.save_for_backward(x, y)
        return x.data * y.data, x.data + y.data

    @staticmethod
    def backward(ctx: Context, adj_product: Tensor, adj_sum: Tensor) -> Any:
        x, y = ctx.saved_tensors
        return adj_product.data * y.data + adj_sum.data, adj_product.data * x.data + adj_sum.data

    @staticmethod
    def jvp(ctx: Context, dx: np.ndarray, dy: np.ndarray) -> Any:
        x, y = ctx.saved_tensors
        return dx * y.data + x.data * dy, dx + dy


class Reverse(Function):
    """2 x without a jvp."""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Any:
        return 2 * x.data

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> Any:
        return 2 * adj.data


def f(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """p = x^2 y and its sum q with x: fan-out, two outputs, a chain."""
    product, _ = Product.apply(x, y)
    result: tuple[Tensor, Tensor] = Product.apply(product, x)
    return result


X, Y = np.array([1.0, 2.0, -0.5]), np.array([3.0, 1.0, 2.0])


def inputs() -> tuple[Tensor, Tensor]:
    return tensor(X, requires_grad=True), tensor(Y, requires_grad=True)


def exact() -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Jacobians of (x^2 y, x y + x) by x and y."""
    return (np.diag(2 * X * Y), np.diag(X**2)), (np.diag(Y + 1), np.diag(X))


def check(found: Any, expected: Any) -> None:
    for row, wanted in zip(found, expected, strict=True):
        for block, want in zip(row, wanted, strict=True):
            np.testing.assert_allclose(block, want, rtol=TOLERANCE, atol=TOLERANCE)


# --- jacobian


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
def test_jacobian_is_that_of_the_formula_in_every_mode(mode: Any) -> None:
    check(jacobian(f, inputs(), mode=mode), exact())


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_a_block_has_the_shape_of_the_output_then_of_the_input(mode: Any) -> None:
    x = tensor(np.arange(6.0).reshape(2, 3))
    block = jacobian(lambda x: x[:, 0] * 2.0, x, mode=mode)
    expected = np.zeros((2, 2, 3))
    expected[[0, 1], [0, 1], 0] = 2.0
    assert block.shape == (2, 2, 3) and block.dtype == x.dtype
    np.testing.assert_allclose(block, expected)


def test_one_input_or_output_gives_no_tuple() -> None:
    x, y = inputs()
    assert jacobian(Reverse.apply, x).shape == (3, 3)
    assert [block.shape for block in jacobian(lambda x, y: (x * y).sum(), (x, y))] == [(3,), (3,)]
    assert jacobian(lambda x: (x * x).sum(), tensor(2.0)).shape == ()


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_independent_outputs_have_zero_blocks(mode: Any) -> None:
    constant = tensor([5.0])
    check(jacobian(lambda x, y: (x * x, constant, y), (tensor([3.0]), tensor([4.0])), mode=mode),
          [([[6.0]], [[0.0]]), ([[0.0]], [[0.0]]), ([[0.0]], [[1.0]])])  # fmt: skip


def test_auto_takes_the_cheaper_direction() -> None:
    passes: list[str] = []

    class Watched(Function):
        @staticmethod
        def forward(ctx: Context, x: Tensor, weights: np.ndarray) -> Any:
            ctx.weights = weights
            return weights @ x.data

        @staticmethod
        def backward(ctx: Context, adj: Tensor) -> Any:
            passes.append("reverse")
            return adj.data @ ctx.weights, None

        @staticmethod
        def jvp(ctx: Context, dx: np.ndarray, _: None) -> Any:
            passes.append("forward")
            return ctx.weights @ dx

    for shape, expected in {(5, 2): ["forward"] * 2, (2, 5): ["reverse"] * 2}.items():
        weights = np.arange(10.0).reshape(shape)
        passes.clear()
        np.testing.assert_allclose(
            jacobian(lambda x, w=weights: Watched.apply(x, w), tensor(np.ones(shape[1]))), weights
        )
        assert passes == expected


def test_auto_goes_in_reverse_where_a_jvp_is_missing() -> None:
    np.testing.assert_allclose(jacobian(Reverse.apply, tensor(X)), 2 * np.eye(3))


def test_forward_without_a_jvp_is_refused_with_the_function_and_the_remedy() -> None:
    with pytest.raises(GraphError, match=r'Reverse has no jvp.*jacobian\(mode="reverse"\)'):
        jacobian(Reverse.apply, tensor(X), mode="forward")


def test_a_missing_jvp_off_the_path_does_not_matter() -> None:
    x, y = inputs()
    block = jacobian(lambda x: Product.apply(x, Reverse.apply(y))[0], x, mode="forward")
    np.testing.assert_allclose(block, np.diag(2 * Y), rtol=TOLERANCE)


def test_the_caller_s_graph_and_gradients_stay_as_they_are() -> None:
    x, y = inputs()
    z, _ = f(x, y)
    jacobian(f, (x, y), mode="reverse")
    vjp(f, (x, y))[1](np.ones(3), None)
    assert x.grad is None and y.grad is None and x.requires_grad
    z.backward(np.ones(3))
    assert x.grad is not None


@pytest.mark.parametrize("way", [Reverse.apply, combine(Reverse.apply), combine(Reverse.apply, save="all")])
def test_auto_goes_in_reverse_where_a_function_has_no_jvp_inside_a_combined_node_too(way: Any) -> None:
    np.testing.assert_array_equal(jacobian(way, tensor(X)), np.diag([2.0, 2.0, 2.0]))
    with pytest.raises(MissingJvp, match="Reverse has no jvp"):
        jacobian(way, tensor(X), mode="forward")


# --- the tangents that a jvp receives


def received(*arguments: Any, materialize: bool = True) -> list[Any]:
    """The tangents that a jvp receives if the first argument alone moves."""
    found: list[Any] = []

    class Watched(Function):
        @staticmethod
        def forward(ctx: Context, *inputs: Any) -> Any:
            ctx.set_materialize_grads(materialize)
            return inputs[0].data.copy()

        @staticmethod
        def backward(ctx: Context, adj: Tensor) -> Any:
            return (adj,) + (None,) * (len(ctx.edges) - 1)

        @staticmethod
        def jvp(ctx: Context, *tangents: Any) -> Any:
            found.extend(tangents)
            return tangents[0]

    x = arguments[0]
    linearize(Watched.apply(*arguments), x)(np.ones(x.shape))
    return found


def test_a_jvp_receives_zeros_for_tensors_that_do_not_move() -> None:
    constant = tensor(np.ones((2, 1)), dtype=np.float32)
    moving, still = inputs()[:2]
    first, *others = received(moving, still, constant)
    np.testing.assert_array_equal(first, np.ones(3))
    for zeros, like in zip(others, (still.data, constant.data), strict=True):
        assert zeros.shape == like.shape and zeros.dtype == like.dtype and not zeros.any()


def test_a_jvp_receives_none_for_integers_and_for_other_values() -> None:
    assert received(inputs()[0], tensor([1, 2]), tensor([True]), np.ones(2), 0.5, None)[1:] == [None] * 5


def test_a_jvp_receives_none_for_all_that_does_not_move_when_materializing_is_off() -> None:
    assert received(*inputs(), tensor(1.0), materialize=False)[1:] == [None, None]


# --- one direction at a time


def test_jvp_is_the_jacobian_times_a_tangent() -> None:
    v = np.array([1.0, -2.0, 0.5])
    outputs, (dp, dq) = jvp(f, inputs(), (v, None))
    assert isinstance(outputs, tuple) and outputs[0].requires_grad
    np.testing.assert_allclose(dp, 2 * X * Y * v, rtol=TOLERANCE)
    np.testing.assert_allclose(dq, (Y + 1) * v, rtol=TOLERANCE)


def test_vjp_is_an_adjoint_times_the_jacobian_as_often_as_wanted() -> None:
    (p, _), pull = vjp(f, inputs())
    np.testing.assert_allclose(p.data, X**2 * Y, rtol=TOLERANCE)
    for u in (np.ones(3), np.array([1.0, -2.0, 0.5])):
        gx, gy = pull(u, 2 * u)
        np.testing.assert_allclose(gx, u * (2 * X * Y) + 2 * u * (Y + 1), rtol=TOLERANCE)
        np.testing.assert_allclose(gy, u * X**2 + 2 * u * X, rtol=TOLERANCE)
    assert not any(g.any() for g in pull(None, None))


def test_many_tangents_go_through_one_recorded_graph() -> None:
    x, y = inputs()
    push = linearize(f(x, y), (x, y))
    rows = [push(e, None)[0] for e in np.eye(3)]
    np.testing.assert_allclose(np.transpose(rows), exact()[0][0], rtol=TOLERANCE)
    assert not push(None, None)[0].any()


def test_tangents_start_at_intermediate_results_too_and_add_up_as_in_reverse() -> None:
    x, y = inputs()
    product, _ = Product.apply(x, y)
    p, _ = Product.apply(product, x)
    push = linearize(p, (product, x))
    v = np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(push(v, None)[0], X * v, rtol=TOLERANCE)
    np.testing.assert_allclose(push(None, v)[0], 2 * X * Y * v, rtol=TOLERANCE)
    np.testing.assert_allclose(push(v, v)[0], X * v + 2 * X * Y * v, rtol=TOLERANCE)


def test_a_result_never_shares_memory_with_a_tangent() -> None:
    x = tensor(X, requires_grad=True)
    v = np.ones(3, x.dtype)
    (dx,) = linearize(x, x)(v)
    assert not np.shares_memory(dx, v) and dx.tolist() == [1.0, 1.0, 1.0]


# --- mistakes


def test_shapes_are_checked() -> None:
    x, y = inputs()
    with pytest.raises(InputError, match=r"this tangent has shape \(3,\); found shape \(2,\)"):
        jvp(f, (x, y), (np.ones(2), None))
    with pytest.raises(InputError, match=r"this adjoint has shape \(3,\); found shape \(\)"):
        vjp(f, (x, y))[1](1.0, None)


def test_linearize_needs_inputs_with_a_gradient() -> None:
    x = tensor(X, requires_grad=True)
    with pytest.raises(InputError, match="input 1 requires a gradient"):
        linearize(Reverse.apply(x), (x, tensor(Y)))


def test_a_freed_graph_raises_before_and_after_linearizing() -> None:
    x, y = inputs()
    p, q = f(x, y)
    push = linearize(p, x)
    p.backward(np.ones(3))
    with pytest.raises(GraphError, match="ProductBackward was freed after linearize"):
        push(np.ones(3))
    with pytest.raises(GraphError, match=r"ProductBackward: its saved state was freed.*retain_graph=True"):
        linearize(q, x)


def test_a_change_of_saved_state_is_noticed_by_tangents_too() -> None:
    x, y = inputs()
    push = linearize(f(x, y), (x, y))
    with x.writable() as values:
        values[0] = 9.0
    with pytest.raises(GraphError, match="ProductBackward: saved tensor 0"):
        push(np.ones(3), None)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (np.ones(3), "jvp returned 1 tangents for 2 outputs"),
        ((None, np.ones(2)), r"tangent of output 1 has shape \(2,\)"),
    ],
)
def test_the_results_of_a_jvp_are_checked(returned: Any, message: str) -> None:
    class Broken(Product):
        @staticmethod
        def jvp(ctx: Context, dx: Any, dy: Any) -> Any:
            return returned

    with pytest.raises(GraphError, match=f"BrokenBackward: .*{message}"):
        jvp(Broken.apply, inputs(), (np.ones(3), None))


def test_a_jvp_may_say_none_for_no_tangent() -> None:
    class Half(Product):
        @staticmethod
        def jvp(ctx: Context, dx: Any, dy: Any) -> Any:
            return None, dx

    _, (dp, ds) = jvp(Half.apply, inputs(), (np.ones(3), None))
    assert not dp.any() and ds.tolist() == [1.0, 1.0, 1.0]


def test_a_long_chain_is_pushed_through_without_recursion() -> None:
    x = tensor(1.0, requires_grad=True)
    y = x
    for _ in range(5_000):
        y = y * 1.0
    assert linearize(y, x)(2.0)[0] == 2.0
