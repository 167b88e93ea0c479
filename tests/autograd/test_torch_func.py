"""Functions of ours under torch.func, forward mode and torch.compile, against torch's own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, ops, tensor, to_torch
from simphys.autograd.errors import GraphError
from simphys.autograd.kernels.compiler import COMPILERS, VARIABLE, installed
from simphys.experiment.scene import load_scene
from simphys.rollout import rollout

from .torch_functions import Scale, ours, theirs, torch

SCENES = Path(__file__).resolve().parents[2] / "scenes"
X, Y = torch.tensor([0.3, -0.7, 1.1], dtype=torch.float64), torch.tensor([1.2, 0.4, -0.5], dtype=torch.float64)
V = torch.tensor([1.0, 2.0, -3.0], dtype=torch.float64)


def total(fn: Any) -> Any:
    return lambda x, y: fn(x, y).sum()


TRANSFORMS: dict[str, Any] = {
    "grad": lambda f: torch.func.grad(total(f), argnums=(0, 1))(X, Y),
    "vjp": lambda f: torch.func.vjp(f, X, Y)[1](V),
    "jvp": lambda f: torch.func.jvp(f, (X, Y), (V, Y)),
    "jvp of one input": lambda f: torch.func.jvp(lambda x: f(x, Y), (X,), (V,)),
    "jacrev": lambda f: torch.func.jacrev(f, argnums=1)(X, Y),
    "jacfwd": lambda f: torch.func.jacfwd(f, argnums=(0, 1))(X, Y),
    "vmap": lambda f: torch.func.vmap(f)(torch.stack([X, V]), torch.stack([Y, X])),
    "vmap of one input": lambda f: torch.func.vmap(f, in_dims=(1, None))(torch.stack([X, V], dim=1), Y),
    "vmap of vmap": lambda f: torch.func.vmap(torch.func.vmap(f))(X[None], Y[None]),
    "gradients of each": lambda f: torch.func.vmap(torch.func.grad(total(f)), (0, None))(torch.stack([X, V]), Y),
    "hessian": lambda f: torch.func.hessian(total(f), argnums=(0, 1))(X, Y),
    "reverse over reverse": lambda f: torch.func.jacrev(torch.func.jacrev(total(f)))(X, Y),
}


def flat(found: Any) -> list[Any]:
    return [part for each in found for part in flat(each)] if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transformation_gives_what_it_gives_of_torch_s_own(name: str) -> None:
    found, known = (flat(TRANSFORMS[name](fn)) for fn in (to_torch(ours), theirs))
    assert len(found) == len(known)
    for one, other in zip(found, known, strict=True):
        assert one.shape == other.shape and one.numpy() == pytest.approx(other.numpy(), rel=1e-12, abs=1e-12)


def test_results_without_a_gradient_and_other_arguments_pass_through() -> None:
    scale = to_torch(Scale.apply)
    gradient, (_, count) = torch.func.grad(lambda x: ((y := scale(x, 3.0))[0].sum(), y), has_aux=True)(X)
    assert gradient.tolist() == [3.0] * 3 and int(count) == 3


def test_forward_mode_without_torch_func() -> None:
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        tangent = forward.unpack_dual(to_torch(ops.sin)(forward.make_dual(X, V))).tangent
    assert tangent.numpy() == pytest.approx(np.cos(X.numpy()) * V.numpy())


def test_a_captured_tensor_and_a_derivative_that_there_is_not_are_refused() -> None:
    captured = tensor(2.0, requires_grad=True)
    with pytest.raises(GraphError):
        torch.func.grad(to_torch(lambda x: (x * captured).sum()))(X)

    def square(x: Tensor) -> Tensor:
        return (x * x).sum()

    with pytest.raises(GraphError, match="not differentiated in reverse"):
        torch.func.jacrev(torch.func.jacfwd(to_torch(square)))(X)


def test_compiled_code_leaves_it_alone() -> None:
    fn, x = to_torch(ours), X.clone().requires_grad_()
    compiled = torch.compile(lambda x: 2 * fn(x, Y).sum(), backend="eager")
    compiled(x).backward()
    assert x.grad.numpy() == pytest.approx(2 * torch.func.grad(total(theirs))(X, Y).numpy())


@pytest.mark.parametrize("compiler", [name for name in COMPILERS if installed(name)])
def test_setuptools_can_be_imported_after_a_compiler(compiler: str) -> None:
    """The default backend of torch.compile imports it; both compilers import pip, which is in its way."""
    if importlib.util.find_spec("setuptools") is None:
        pytest.skip("setuptools is not installed")  # not imported here, where another test may have been in its way
    code = "from simphys.autograd.kernels.runtime import ti; print(ti.__name__); import setuptools"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, VARIABLE: compiler},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.strip(), done.returncode) == (compiler, 0), done.stderr


def test_records_hold_tensors_of_torch_in_and_out() -> None:
    chain = load_scene(SCENES / "pendulum" / "double.toml")
    length = torch.tensor([0.5, 0.4], dtype=torch.float64, requires_grad=True)

    def end(params: Any, state: Any) -> Any:
        return rollout(chain.model, params, state, steps=20, keep="final").final

    found = to_torch(end)(chain.params.replace(length=length), chain.state)
    assert type(found) is type(chain.state) and isinstance(found.angle, torch.Tensor)
    (2 * found.angle.sum() + found.rate[0]).backward()
    own = tensor(length.detach().numpy(), requires_grad=True)
    ours = end(chain.params.replace(length=own), chain.state)
    (2 * ours.angle.sum() + ours.rate[0]).backward()
    assert own.grad is not None
    assert found.angle.detach().numpy() == pytest.approx(ours.angle.data, rel=1e-12)
    assert length.grad.numpy() == pytest.approx(own.grad.data, rel=1e-12)
    assert isinstance(to_torch(lambda x: end(chain.params.replace(length=x), chain.state))(length).rate, torch.Tensor)
