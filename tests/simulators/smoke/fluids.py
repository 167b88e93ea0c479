"""Small flows without symmetry, in which every sub-step matters."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.simulators.smoke import Params, Smoke, State

from .flows import CHANNEL, leaf, some, velocity

NAMES = (*State.names(), *Params.names())
"""The inputs of a step, in the order of `leaves`."""

KINDS: dict[str, dict[str, Any]] = {
    "channel": {"boundaries": CHANNEL, "projection": "conjugate_gradients", "has_obstacle": True},
    "torus": {"projection": "fft", "advection": "semi_lagrangian"},
    "walls": {
        "grid": "collocated",
        "boundaries": ("periodic", "periodic", "closed", "closed"),
        "projection": "jacobi",
        "has_obstacle": True,
    },
    "space": {
        "cells": (4, 3, 3),
        "boundaries": ("inflow", "open", "closed", "closed", "periodic", "periodic"),
        "projection": "conjugate_gradients",
        "has_obstacle": True,
    },
}


def fluid(kind: str, *, batch: int | None = None, batched: tuple[str, ...] = NAMES) -> tuple[Smoke, Params, State]:
    """Build a flow of a kind, whose tensors require gradients; those named in `batched` have a batch axis."""
    model = Smoke(**{"cells": (6, 5), "spacing": 0.5, "dt": 0.2, "tolerance": 1e-14, **KINDS[kind]})
    members = [_values(model, seed) for seed in range(batch or 1)]
    values = {
        name: leaf(np.stack([member[name] for member in members]) if batch and name in batched else members[0][name])
        for name in NAMES
    }
    return model, *unpacked(*values.values())


def _values(model: Smoke, seed: int) -> dict[str, Any]:
    middle = [n * model.spacing / 2.2 for n in model.cells]
    centre = np.meshgrid(*[model.spacing * (np.arange(n) + 0.5) for n in model.cells], indexing="ij")
    distance = np.sqrt(sum((x - m) ** 2 for x, m in zip(centre, middle, strict=True))) - 0.6 * model.spacing
    shapes = {**model.state_shapes(), **model.param_shapes()}
    numbers = {name: some(*shape, seed=10 * seed + place).data for place, (name, shape) in enumerate(shapes.items())}
    return {
        **numbers,
        "velocity": velocity(model, seed=seed).data,
        "viscosity": 0.05 + 0.01 * seed,
        "obstacle": distance if model.has_obstacle else numbers["obstacle"],
    }


def leaves(params: Params, state: State) -> tuple[Tensor, ...]:
    """List all inputs of a step, in the order of NAMES."""
    return *state.tensors(), *params.tensors()


def unpacked(*tensors: Tensor) -> tuple[Params, State]:
    """Rebuild the records from `leaves`."""
    return Params(*tensors[3:]), State(*tensors[:3])


def fresh(tensors: tuple[Tensor, ...]) -> tuple[Params, State]:
    """Copy the inputs to new leaves without gradients."""
    return unpacked(*[tensor(each.data, requires_grad=each.requires_grad) for each in tensors])
