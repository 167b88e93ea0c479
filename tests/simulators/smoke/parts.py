"""Adjoints of sub-steps that launch kernels, for targets that lie within an array, as in an engine."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from simphys.autograd import tensor
from simphys.autograd.kernels import device
from simphys.simulator import Array
from simphys.simulators.smoke.model import Smoke
from simphys.substep import Entries, Target


def check_parts_of_arrays(model: Smoke, function: Any, adjoint: Any, inputs: dict[str, Array], result: str) -> None:
    """Check that each adjoint is set, or added to what its place holds, and nothing else is.

    `adjoint` reads all inputs, or those that it has parameters for, and that of the `result`.
    """
    leaves = {name: tensor(values, requires_grad=True) for name, values in inputs.items()}
    outcome = function.apply(model, *leaves.values())
    random = np.random.default_rng(0)
    g = random.normal(size=outcome.shape).astype(outcome.data.dtype)
    outcome.backward(g)
    given: dict[str, Any] = {name: _within(values, 3) for name, values in (*inputs.items(), (f"adj_{result}", g))}
    given |= {"moment": None}
    read = {name: entries for name, entries in given.items() if name in inspect.signature(adjoint).parameters}
    for name, leaf in leaves.items():
        held = random.normal(size=leaf.shape).astype(g.dtype)
        for adds in (False, True):
            target = _within(held, 5)
            adjoint(model, **read, out={name: Target(target, adds)})()
            found = device.to_host(target.numbers, (held.size + 12,))
            assert leaf.grad is not None
            np.testing.assert_allclose(found[5:-7], (leaf.grad.data + adds * held).reshape(-1), atol=1e-5)
            assert (found[:5] == 0.5).all() and (found[-7:] == 0.5).all()


def _within(values: Array, begin: int) -> Entries:
    """Bring values to the device, within an array of others."""
    around = np.pad(np.asarray(values).reshape(-1), (begin, 7), constant_values=0.5)
    return Entries(device.to_device(around), begin)
