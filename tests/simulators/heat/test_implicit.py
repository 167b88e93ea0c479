"""Implicit steps at any magnitude, and with heat that is not finite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, runtime, tensor
from simphys.rollout import BlowUp, rollout
from simphys.simulators.heat import Heat, Params, State

CELLS = (4, 3)


def run(values: dict[str, Any], scheme: Any, mode: Any = "fused") -> tuple[np.ndarray, dict[str, Tensor]]:
    """Return the change of the temperature in a step of a body at 0, and the parameters as leaves."""
    fields: dict[str, Any] = {"conductivity": np.ones(CELLS), "heat_capacity": np.ones(CELLS)}
    fields |= {"source": np.zeros(CELLS), "side_temperature": np.zeros(4)}
    for name, value in values.items():
        fields[name] = np.full(fields[name].shape, value)
    leaves = {name: tensor(value.astype(runtime.real_dtype()), requires_grad=True) for name, value in fields.items()}
    model = Heat(CELLS, 1.0, 1.0 if scheme != "explicit" else 0.1, scheme, ("fixed",) * 4)
    start = State(tensor(np.zeros(CELLS, runtime.real_dtype())))
    final = rollout(model, Params(**leaves), start, steps=1, mode=mode).final.temperature
    final.sum().backward()
    return final.data, leaves


@pytest.mark.parametrize("mode", ["fused", "nested"])
@pytest.mark.parametrize("scheme", ["explicit", "crank_nicolson", "implicit"])
@pytest.mark.parametrize("name", ["source", "side_temperature"])
def test_heat_that_is_not_finite_blows_up_in_every_scheme(name: str, scheme: str, mode: str) -> None:
    with pytest.raises(BlowUp, match=rf"params\.{name}\[0.* = inf is not finite: correct it"):
        run({name: np.inf}, scheme, mode)


@pytest.mark.parametrize("scheme", ["crank_nicolson", "implicit"])
@pytest.mark.parametrize("scale", [2.0**-80, 2.0**80])
def test_large_and_small_powers_heat_by_as_much(scheme: str, scale: float) -> None:
    with runtime.using(runtime.Settings(precision="f32")):
        expected, once = run({"source": 1.0}, scheme)
        found, leaves = run({"source": scale}, scheme)
        np.testing.assert_array_equal(found / np.float32(scale), expected)
        for name in ("conductivity", "source"):  # the gradients of a number that is in proportion to the power
            grad, usual = (each[name].grad for each in (leaves, once))
            assert grad is not None and usual is not None
            factor = np.float32(scale if name == "conductivity" else 1.0)
            np.testing.assert_allclose(grad.data / factor, usual.data, rtol=1e-5)


@pytest.mark.parametrize("scale", [2.0**-80, 2.0**80])
def test_the_gradient_of_a_scaled_loss_is_scaled(scale: float) -> None:
    with runtime.using(runtime.Settings(precision="f32")):
        fields = dict.fromkeys(("conductivity", "heat_capacity", "source"), np.ones(8, np.float32))

        def pull(factor: float) -> dict[str, np.ndarray]:
            leaves = {name: tensor(value, requires_grad=True) for name, value in fields.items()}
            params = Params(**leaves, side_temperature=tensor(np.zeros(2, np.float32)))
            start = State(tensor(np.arange(8, dtype=np.float32)))
            final = rollout(Heat((8,), 1.0, 1.0, "implicit"), params, start, steps=1).final.temperature
            (final.sum() * factor).backward()
            return {name: leaf.grad.data for name, leaf in leaves.items() if leaf.grad is not None}

        usual, found = pull(1.0), pull(scale)
        for name, values in usual.items():
            np.testing.assert_array_equal(found[name] / np.float32(scale), values)
