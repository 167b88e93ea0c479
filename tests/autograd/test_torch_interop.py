"""Torch and this layer call each other: same values, same gradients, each side's guards in force."""

from __future__ import annotations

import gc
import importlib.util
import os
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Context, Function, GraphError, InputError, Tensor, grad, no_grad, ops, runtime, tensor
from simphys.autograd.compose import combine
from simphys.autograd.functional import jacobian, jvp
from simphys.autograd.gradcheck import gradcheck
from simphys.autograd.torch_interop import from_torch, to_torch
from simphys.mass_spring import Params, State, Topology, rollout, step

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"

torch = pytest.importorskip("torch", reason="PyTorch is not installed (pip install 'simphys[torch]')")


def leaf(*values: float, dtype: Any = torch.float64) -> Any:
    return torch.tensor(values, dtype=dtype, requires_grad=True)


def formula(x: Any, y: Any, math: Any) -> Any:
    return x * math.sin(y) + math.exp(x) / (1.0 + y * y)


def ours(x: Tensor, y: Tensor) -> Tensor:
    return formula(x, y, ops)


def theirs(x: Any, y: Any) -> Any:
    return formula(x, y, torch)


class Scale(Function):
    """factor * x and the count of elements; once differentiable."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, factor: float) -> tuple[np.ndarray, int]:
        ctx.factor = factor
        return factor * x.data, x.size

    @staticmethod
    def backward(ctx: Context, adj: Tensor, _: Tensor) -> tuple[np.ndarray, None]:
        return ctx.factor * adj.data, None


class Unreached(Function):
    """Its backward must not be called."""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> np.ndarray:
        return x.data.copy()


def network(inputs: int, outputs: int) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = torch.nn.Linear(inputs, 5), torch.nn.Tanh(), torch.nn.Linear(5, outputs)
        return torch.nn.Sequential(*layers).double()


# --- to_torch


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-15), (torch.float32, 5e-7)])
def test_a_function_of_ours_has_in_torch_the_values_and_gradients_of_torch_s_own(dtype: Any, tolerance: float) -> None:
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
    assert third[0] == pytest.approx(third[1], rel=1e-14)


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
    with pytest.raises(RuntimeError, match="does not require grad"):
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


def test_torch_guards_what_was_saved_and_frees_it_with_its_own_graph() -> None:
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
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        z.backward()
    x = leaf(1.0) * 1.0
    z = to_torch(fn)(x)
    x += 1.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
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


# --- from_torch


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-15), (np.float32, 5e-7)])
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
    np.testing.assert_allclose(x.grad.data, inputs.grad, rtol=1e-14, atol=1e-15)
    for expected, parameter in zip(there.parameters(), here.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, expected.grad, rtol=1e-14, atol=1e-15)
    (from_torch(here)(tensor(values)) ** 2).sum().backward()  # also where no input requires a gradient; it adds
    for expected, parameter in zip(there.parameters(), here.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, 2 * expected.grad, rtol=1e-14, atol=1e-15)


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
    assert x.grad is not None and y.grad is not None and np.array_equal(x.grad.data, y.grad.data)
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
            np.testing.assert_allclose(block, other, rtol=1e-14, atol=1e-15)
    _, (dz, ds, dc) = jvp(fn, (x, y), (None, [1.0, 0.0, 0.0]))
    np.testing.assert_allclose(dz[:, 0], x.data * np.cos(1.0), rtol=1e-14)
    assert not dz[:, 1:].any() and ds == 0.0 and not dc.any()
    for constant in (lambda x, y: torch.sin(y), lambda x, y: torch.sign(x) + y):
        _, (dz,) = jvp(from_torch(constant), (x, x), ([1.0, 1.0], None))
        assert not dz.any()


def test_a_second_derivative_raises_and_names_the_function() -> None:
    x = tensor([0.5], requires_grad=True)
    (dx,) = grad(from_torch(torch.sin)(x), x, create_graph=True)
    assert dx.data == np.cos(0.5)
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
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
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
        np.testing.assert_allclose(block, other, rtol=1e-15, atol=1e-16)


# --- with a simulator


def swing() -> tuple[Topology, Params, State]:
    """Three nodes on two springs, the first pinned."""
    params = Params(
        stiffness=tensor([20.0, 30.0]),
        damping=tensor([0.1, 0.2]),
        rest_length=tensor([0.4, 0.5]),
        mass=tensor([1.0, 1.0, 2.0]),
        drag=tensor([0.1, 0.1, 0.1]),
        gravity=tensor([0.0, -9.8]),
    )
    state = State(tensor([[0.0, 0.0], [0.5, 0.1], [1.0, 0.0]]), tensor(np.zeros((3, 2))))
    return Topology(np.array([[0, 1], [1, 2]], np.int32), np.array([True, False, False]), 2, 0.01), params, state


@pytest.mark.parametrize("way", ["nested step", "rollout"])
def test_gradients_through_a_simulator_are_the_native_ones(way: str) -> None:
    topology, params, state = swing()

    def final(rest_length: Tensor, velocity: Tensor) -> Tensor:
        given, start = params.replace(rest_length=rest_length), state.replace(velocity=velocity)
        if way == "rollout":
            return rollout(topology, given, start, steps=5).final.position
        for _ in range(5):
            start = step(topology, given, start)
        return start.position

    rest_length, velocity = (tensor(x.data, requires_grad=True) for x in (params.rest_length, state.velocity))
    (final(rest_length, velocity) ** 2).sum().backward()
    inputs = [torch.tensor(x.data.tolist(), dtype=torch.float64, requires_grad=True) for x in (rest_length, velocity)]
    (to_torch(final)(*inputs) ** 2).sum().backward()
    for native, there in zip((rest_length, velocity), inputs, strict=True):
        assert native.grad is not None
        np.testing.assert_allclose(there.grad, native.grad.data, rtol=1e-14, atol=1e-16)


def test_the_example_s_network_learns_and_its_loss_falls_to_a_hundredth() -> None:
    spec = importlib.util.spec_from_file_location("torch_controller", EXAMPLES / "torch_controller.py")
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    losses = example.main(iterations=40)
    assert len(losses) == 40 and losses[-1] < losses[0] / 100


# --- torch itself


def test_without_torch_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    for wrap in (to_torch, from_torch):
        with pytest.raises(InputError, match=rf"{wrap.__name__}: PyTorch is needed.*pip install 'simphys\[torch\]'"):
            wrap(ours)


def test_importing_the_layer_leaves_torch_alone() -> None:
    code = "import sys, simphys.autograd, simphys.autograd.torch_interop, simphys; print('torch' in sys.modules)"
    environment = os.environ | {"SIMPHYS_COMPILER": "taichi"}  # quadrants itself imports torch
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


def test_torch_keeps_its_threads_and_precision() -> None:
    before = torch.get_num_threads(), torch.get_num_interop_threads(), torch.get_default_dtype()
    runtime.settings()
    to_torch(from_torch(torch.sin))(leaf(1.0).detach())
    assert (torch.get_num_threads(), torch.get_num_interop_threads(), torch.get_default_dtype()) == before
