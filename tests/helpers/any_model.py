"""Models made of shapes and a step, for small programs as a user writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, make_dataclass
from typing import Any

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.rollout import engine_of, rollout
from simphys.simulator import Model, Record, Shape

Shapes = Mapping[str, Shape]


def make_model(step: Callable[..., Any], params: Shapes, state: Shapes, **attributes: Any) -> Any:
    """Make a model with fields of these shapes, and with attributes such as index arrays."""
    names = {"Params": params, "State": state}
    records = {n: make_dataclass(n, [(f, Tensor) for f in s], bases=(Record,), frozen=True) for n, s in names.items()}
    body: dict[str, Any] = {
        "__annotations__": {"dt": float, **dict.fromkeys(attributes, object)},
        "param_shapes": lambda self: dict(params),
        "state_shapes": lambda self: dict(state),
        "control_shape": lambda self: None,
        **records,
    }
    made: Any = dataclass(frozen=True, eq=False)(type("AnyModel", (Model,), body))
    made.bind(step=step, engine=engine_of(step))
    return made(dt=0.1, **attributes)


def evaluate_step(
    model: Any, values: Mapping[str, Any], *, mode: Any = "fused", steps: int = 2
) -> dict[str, np.ndarray[Any, Any]]:
    """Return the final state, and the gradient of its weighted sum by each field."""
    leaves = {name: tensor(np.asarray(value, float), requires_grad=True) for name, value in values.items()}
    params = model.Params(**{name: leaves[name] for name in model.param_shapes()})
    state = model.State(**{name: leaves[name] for name in model.state_shapes()})
    final = rollout(model, params, state, steps=steps, mode=mode, keep="final").final
    total: Tensor = tensor(0.0)
    for number, x in enumerate(final.tensors()):
        weights = np.random.default_rng(number).uniform(0.5, 1.5, x.shape)
        total = total + (tensor(weights) * x).sum()
    total.backward()
    gradients = {f"gradient by {n}": np.zeros(x.shape) if x.grad is None else x.grad.data for n, x in leaves.items()}
    return {**{name: getattr(final, name).data for name in final.names()}, **gradients}


def assert_fused_is_nested(model: Any, values: Mapping[str, Any], *, steps: int = 2) -> dict[str, Any]:
    """Compare values and gradients of the fused rollout, and of fused steps, with the nested step; return them."""
    nested = evaluate_step(model, values, mode="nested", steps=steps)
    for mode in ("step", "fused"):
        found = evaluate_step(model, values, mode=mode, steps=steps)
        for name, expected in nested.items():
            np.testing.assert_allclose(found[name], expected, rtol=1e-12, atol=1e-13, err_msg=f"{mode}: {name}")
    return nested
