"""Random programs of operations: gradients, and gradients of gradients, are the differences, and are torch's.

By default 100 programs a test; `pytest tests/autograd/test_fuzz.py --hypothesis-profile=thorough` runs 2,000.
A program that fails is shrunk and printed as a script.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, find, given, reject, settings

from simphys.autograd import Tensor, grad, ops, tensor
from simphys.autograd.ops import functions
from simphys.autograd.proof.gradcheck import GradcheckError, gradcheck, gradgradcheck

from .programs import OPERATIONS, Program, programs

Array = np.ndarray
Derivatives = tuple[float, list[Array], list[Array]]
"""Loss of a program, gradient by each leaf, and Hessian times a vector."""

EPS = np.geomspace(1e-2, 1e-7, 8)
TOLERANCE = 1e-6
"""Tolerance of differences, relative to the derivative in a random direction.

In 2,500 programs the worst error was 1.5e-8, and the worst spread (the differences' own estimate of their accuracy)
5e-8. The error of a wrong rule is far larger."""
ROUNDING = 1e-13
"""Size of a derivative that is 0 but for rounding, as that of sin(1 - x) + sin(x - 1): programs have numbers near 1."""


def leaves_of(program: Program) -> list[Tensor]:
    return [tensor(value, dtype=np.float64, requires_grad=True) for value in program.leaves.values()]


def check(program: Program, checker: Any) -> None:
    """Compare a program's derivatives with differences, and its tangents with its adjoints."""
    run = partial(program.run, ops)
    try:
        checker(run, leaves_of(program), mode="projected", eps=EPS, tolerance=TOLERANCE, repeats=1)
    except GradcheckError as error:
        assert error.report is not None
        worst = error.report.worst
        cancels = max(abs(worst.adjoint), abs(worst.finite_difference)) < ROUNDING
        if cancels or error.report.outcome == "untrusted":  # it proves nothing
            reject()
        raise


@given(programs())
def test_gradients_are_the_differences(program: Program) -> None:
    check(program, gradcheck)


@given(programs())
def test_gradients_of_gradients_are_the_differences_of_gradients(program: Program) -> None:
    check(program, gradgradcheck)


def test_every_operation_is_drawn() -> None:
    assert set(OPERATIONS) == set(ops.__all__)


def test_a_wrong_rule_is_found_and_shrunk_to_a_script_of_a_few_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """The derivative of y = tanh x is 1 - y in place of 1 - y^2."""
    rule = staticmethod(lambda ctx, adj: adj * (1 - ctx.read_saved()[0]))
    monkeypatch.setattr(functions.Tanh, "backward", rule)
    monkeypatch.setattr(functions.Tanh, "jvp", rule)

    def wrong(program: Program) -> bool:
        try:
            check(program, gradcheck)
        except GradcheckError:
            return True
        return False

    quick = settings(phases=[Phase.generate, Phase.shrink], max_examples=1000, database=None)
    found = find(programs(), wrong, settings=quick)
    assert len(found.lines) == 2 and found.lines[0] == "v0 = o.tanh(x0)"
    script: dict[str, Any] = {}
    exec(repr(found), script)
    assert script["loss"].item() == found.run(ops, *leaves_of(found)).item()


# --- the same programs by torch


def torch_operations(torch: Any) -> types.SimpleNamespace:
    """The functions that a program calls, for tensors of torch."""

    def constant(x: Any) -> Any:
        return x if isinstance(x, torch.Tensor) else torch.tensor(x, dtype=torch.float64)

    def index(key: Any) -> Any:
        if isinstance(key, tuple):
            return tuple(map(index, key))
        return torch.tensor(key) if isinstance(key, list) else key

    def put(base: Any, key: Any, values: Any) -> Any:
        result = base.clone()
        result[index(key)] = values
        return result

    def all_axes(x: Any, axis: Any) -> Any:
        return tuple(range(x.ndim)) if axis is None else axis

    def of(function: Any) -> Any:
        return lambda *operands: function(*map(constant, operands))

    names = ["neg", "sin", "cos", "exp", "log", "sqrt", "tanh", "sigmoid", "square", "clone", "abs"]
    names += ["add", "sub", "mul", "div", "pow", "maximum", "minimum", "matmul"]
    return types.SimpleNamespace(
        **{name: of(getattr(torch, name)) for name in names},
        softplus=of(torch.nn.functional.softplus),
        sum=lambda x, axis=None, keepdims=False: torch.sum(x, all_axes(x, axis), keepdims),
        mean=lambda x, axis=None, keepdims=False: torch.mean(x, all_axes(x, axis), keepdims),
        max=lambda x, axis, keepdims: torch.amax(x, all_axes(x, axis), keepdims),
        min=lambda x, axis, keepdims: torch.amin(x, all_axes(x, axis), keepdims),
        norm=lambda x, axis, keepdims: torch.linalg.vector_norm(x, 2, all_axes(x, axis), keepdims),
        clip=lambda x, low, high: x.clone() if low is high is None else torch.clamp(x, low, high),
        where=lambda mask, x, y: torch.where(torch.tensor(mask, dtype=torch.bool), x, constant(y)),
        reshape=torch.reshape,
        transpose=lambda x, axes: torch.permute(x, tuple(range(x.ndim))[::-1] if axes is None else axes),
        broadcast_to=torch.broadcast_to,
        astype=lambda x, dtype: x.to(getattr(torch, dtype)),
        stack=torch.stack,
        concatenate=torch.cat,
        getitem=lambda x, key: x[index(key)],
        put=put,
    )


def directions(program: Program) -> list[Array]:
    random = np.random.default_rng(0)
    return [random.standard_normal(value.shape) for value in program.leaves.values()]


def ours(program: Program) -> Derivatives:
    leaves = leaves_of(program)
    loss = program.run(ops, *leaves)
    first = grad(loss, leaves, create_graph=True)
    slope = sum([ops.sum(g * v) for g, v in zip(first, directions(program), strict=True)], start=tensor(0.0))
    second = grad(slope, leaves, allow_unused=True)
    return loss.item(), [g.data for g in first], arrays(second, leaves)


def torchs(torch: Any, program: Program) -> Derivatives:
    leaves = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in program.leaves.values()]
    loss = program.run(torch_operations(torch), *leaves)
    first = torch.autograd.grad(loss, leaves, create_graph=True)
    slope = sum([torch.sum(g * torch.tensor(v)) for g, v in zip(first, directions(program), strict=True)])
    second = torch.autograd.grad(slope, leaves, allow_unused=True)
    return loss.item(), [g.detach().numpy() for g in first], arrays(second, leaves)


def arrays(gradients: Sequence[Any], leaves: Sequence[Any]) -> list[Array]:
    return [np.zeros(tuple(x.shape)) if g is None else g.numpy() for g, x in zip(gradients, leaves, strict=True)]


def assert_close(found: Sequence[Array], expected: Sequence[Array]) -> None:
    """The tolerance is 1e-10 of the largest element of all leaves, at least of 1e-2: smaller ones have cancelled."""
    size = max([float(np.max(abs(g), initial=1e-2)) for g in expected])
    for g, h in zip(found, expected, strict=True):
        np.testing.assert_allclose(g, h, rtol=0, atol=1e-10 * size)


@given(programs())
def test_gradients_and_hessian_products_are_torchs(program: Program) -> None:
    torch = pytest.importorskip("torch", reason="torch, which the gradients are compared with, is not installed")
    (loss, first, second), (other_loss, other_first, other_second) = ours(program), torchs(torch, program)
    assert loss == pytest.approx(other_loss, rel=1e-10, abs=1e-10)
    assert_close(first, other_first)
    assert_close(second, other_second)
