"""Hooks receive, and may replace, the adjoints in the graph, as in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import GraphError, InputError, Tensor, grad, ops, tensor


def leaf(values: Any) -> Tensor:
    return tensor(values, requires_grad=True)


def gradient(x: Tensor) -> Any:
    assert x.grad is not None
    return x.grad.data.tolist()


def test_a_hook_on_a_tensor_sees_its_whole_gradient_once() -> None:
    x = leaf(3.0)
    y = x * x
    seen: list[float] = []
    y.register_hook(lambda g: seen.append(g.item()))
    (y * 2 + y * 5).backward()
    assert seen == [7.0] and gradient(x) == 42.0


def test_the_result_of_a_hook_flows_on() -> None:
    x = leaf(3.0)
    y = x * x
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: g + 1)
    y.backward()
    assert gradient(x) == 66.0  # (1 * 10 + 1) * 2 x, in the order of registration


def test_a_hook_on_a_leaf_sees_the_sum_over_all_its_uses_and_changes_what_is_kept() -> None:
    x = leaf([1.0, 2.0])
    seen: list[Any] = []
    x.register_hook(lambda g: seen.append(g.data.tolist()))
    x.register_hook(lambda g: g * 0.5)
    (ops.sum(x) + ops.sum(x * x)).backward()
    assert seen == [[3.0, 5.0]] and gradient(x) == [1.5, 2.5]


def test_grad_runs_the_hooks_of_its_inputs() -> None:
    x = leaf(3.0)
    y = x * x
    y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g + 1)
    gy, gx = grad(y * 1.0, (y, x))
    assert (gy.item(), gx.item()) == (10.0, 61.0)


def test_retained_gradients_are_those_after_the_hooks() -> None:
    x = leaf(3.0)
    y = x * x
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    y.backward()
    assert gradient(y) == 10.0


def test_a_removed_hook_is_silent() -> None:
    x = leaf(3.0)
    y = x * x
    handle = y.register_hook(lambda g: g * 10)
    handle.remove()
    handle.remove()
    with x.register_hook(lambda g: g * 100):
        pass
    y.backward()
    assert gradient(x) == 6.0


def test_a_node_s_hook_sees_and_replaces_the_adjoints_of_its_inputs() -> None:
    x, y = leaf(3.0), leaf(4.0)
    z = x * y
    seen: list[Any] = []

    def hook(inputs: Any, outputs: Any) -> Any:
        seen.append(([g.item() for g in inputs], [g.item() for g in outputs]))
        return inputs[0] * 10, None

    assert z.grad_fn is not None
    z.grad_fn.register_hook(hook)
    z.backward()
    assert seen == [([4.0, 3.0], [1.0])] and gradient(x) == 40.0 and y.grad is None


def test_a_prehook_replaces_the_adjoints_of_its_node() -> None:
    x = leaf(3.0)
    y = x * x
    assert y.grad_fn is not None
    tenfold: Any = lambda outputs: (outputs[0] * 10,)  # noqa: E731
    y.grad_fn.register_prehook(tenfold)
    y.backward()
    assert gradient(x) == 60.0


def test_hooks_belong_to_the_graph_of_a_recorded_gradient() -> None:
    """The hook g -> g^2 on y = x^2 makes the gradient 2 x u^2 for a seed u; its derivative by u at 3 is 12 x."""
    x, u = leaf(2.0), leaf(3.0)
    y = x * x
    y.register_hook(lambda g: g * g)
    (g,) = grad(y, x, [u], create_graph=True)
    (by_u,) = grad(g, u)
    assert g.item() == 36.0 and by_u.item() == 24.0


def test_a_hook_may_not_change_shape_or_dtype_and_returns_a_tensor() -> None:
    x = leaf([1.0, 2.0])
    for wrong in (lambda g: ops.sum(g), lambda g: g.astype(np.float16), lambda g: g.data * 2):
        y = x * 2
        y.register_hook(wrong)
        with pytest.raises(GraphError, match="a hook on MulBackward returned"):
            y.backward([1.0, 1.0])


def test_a_hook_is_a_function_on_a_tensor_that_requires_a_gradient() -> None:
    with pytest.raises(InputError, match="a hook is a function"):
        leaf(1.0).register_hook(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="requires a gradient"):
        tensor(1.0).register_hook(lambda g: None)
