"""Torch and a simulator together; torch itself stays unchanged, or is reported as missing."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from simphys.autograd import InputError, Tensor, runtime, tensor
from simphys.autograd.bridges.pytorch import from_torch, to_torch
from simphys.rollout import rollout
from simphys.simulators.mass_spring import MassSpring, Params, State, step

from .torch_functions import leaf, ours

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"

torch = pytest.importorskip("torch", reason="PyTorch is not installed (pip install 'simphys[torch]')")


def swing() -> tuple[MassSpring, Params, State]:
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
    return MassSpring(np.array([[0, 1], [1, 2]], np.int32), np.array([True, False, False]), 2, 0.01), params, state


@pytest.mark.parametrize("way", ["nested step", "rollout"])
def test_gradients_through_a_simulator_are_the_native_ones(way: str) -> None:
    model, params, state = swing()

    def final(rest_length: Tensor, velocity: Tensor) -> Tensor:
        given, start = params.replace(rest_length=rest_length), state.replace(velocity=velocity)
        if way == "rollout":
            return rollout(model, given, start, steps=5).final.position
        for _ in range(5):
            start = step(model, given, start)
        return start.position

    rest_length, velocity = (tensor(x.data, requires_grad=True) for x in (params.rest_length, state.velocity))
    (final(rest_length, velocity) ** 2).sum().backward()
    inputs = [torch.tensor(x.data.tolist(), dtype=torch.float64, requires_grad=True) for x in (rest_length, velocity)]
    (to_torch(final)(*inputs) ** 2).sum().backward()
    for native, there in zip((rest_length, velocity), inputs, strict=True):
        assert native.grad is not None
        np.testing.assert_allclose(there.grad, native.grad.data, rtol=1e-12, atol=1e-14)


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
    code = "import sys, simphys.autograd, simphys.autograd.bridges.pytorch, simphys; print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


def test_torch_keeps_its_threads_and_precision() -> None:
    before = torch.get_num_threads(), torch.get_num_interop_threads(), torch.get_default_dtype()
    runtime.settings()
    to_torch(from_torch(torch.sin))(leaf(1.0).detach())
    assert (torch.get_num_threads(), torch.get_num_interop_threads(), torch.get_default_dtype()) == before
