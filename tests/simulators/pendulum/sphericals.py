"""Spherical pendulums in which no term vanishes."""

from __future__ import annotations

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.simulators.pendulum.spherical import Params, Spherical, State

NAMES = (*State.names(), *Params.names())
"""Names of a step's inputs, in the order of `leaves`."""


def spherical(
    integrator: str = "rk4",
    *,
    dt: float = 0.05,
    batch: int | None = None,
    batched: tuple[str, ...] = NAMES,
    damping: float | None = None,
    seed: int = 0,
) -> tuple[Spherical, Params, State]:
    """Make a random pendulum; all its tensors require a gradient. With a `batch`, the `batched` ones have that axis."""
    random = np.random.default_rng(seed)
    model = Spherical(dt, integrator)
    shapes = {**model.state_shapes(), **model.param_shapes()}
    if batch is not None:
        shapes |= {name: (batch, *shapes[name]) for name in batched}
    direction = random.normal(size=shapes["direction"])
    direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
    rate = random.uniform(-2, 2, shapes["rate"])
    if direction.ndim == rate.ndim:
        rate -= (rate * direction).sum(axis=-1, keepdims=True) * direction
    values = {
        "direction": direction,
        "rate": rate,
        "length": random.uniform(0.5, 1.5, shapes["length"]),
        "mass": random.uniform(0.5, 2, shapes["mass"]),
        "damping": random.uniform(0.05, 0.3, shapes["damping"]),
        "gravity": random.uniform(-1, 1, shapes["gravity"]) - [0, 0, 8],
    }
    if damping is not None:
        values["damping"] = np.full(shapes["damping"], damping)
    params, state = unpacked(*[tensor(values[name], requires_grad=True) for name in NAMES])
    return model, params, state


def leaves(params: Params, state: State) -> tuple[Tensor, ...]:
    """All inputs of a step, in the order of NAMES."""
    return *state.tensors(), *params.tensors()


def unpacked(*tensors: Tensor) -> tuple[Params, State]:
    """Params and State from the inputs of a step; the inverse of `leaves`."""
    return Params(*tensors[2:]), State(*tensors[:2])


def torques(steps: int, batch: int | None = None) -> Tensor:
    """Random torques for each step."""
    shape: tuple[int, ...] = (steps, 3) if batch is None else (batch, steps, 3)
    return tensor(np.random.default_rng(7).uniform(-2, 2, shape), requires_grad=True)


def vector(seed: int) -> Tensor:
    """Random vector, away from every axis."""
    return tensor(np.random.default_rng(seed).uniform(0.3, 1.5, 3), requires_grad=True)
