"""Chains in which no term vanishes, away from symmetric states."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.simulators.pendulum.chain import Chain, Params, State
from simphys.simulators.pendulum.chain.moments import Moments

NAMES = (*State.names(), *Params.names())
"""Names of a step's inputs."""


def chain(
    links: int,
    integrator: str = "rk4",
    *,
    dt: float = 0.05,
    batch: int | None = None,
    batched: tuple[str, ...] = NAMES,
    seed: int = 0,
    friction: bool = False,
    **given: Any,
) -> tuple[Chain, Params, State]:
    """Make a random chain whose tensors all require a gradient. With a `batch`, the `batched` ones have that axis.

    given: values of fields that replace random ones.
    """
    random = np.random.default_rng(seed)
    model = Chain(links, dt, integrator, friction)
    shapes = {**model.state_shapes(), **model.param_shapes()}
    if batch is not None:
        shapes |= {name: (batch, *shapes[name]) for name in batched if shapes[name] != (0,)}
    values = {
        "angle": random.uniform(-2, 2, shapes["angle"]),
        "rate": random.uniform(-2, 2, shapes["rate"]),
        "length": random.uniform(0.5, 1.5, shapes["length"]),
        "mass": random.uniform(0.5, 2, shapes["mass"]),
        "damping": random.uniform(0.05, 0.3, shapes["damping"]),
        "gravity": random.uniform(5, 10, shapes["gravity"]),
        "tilt": random.uniform(0.1, 0.3, shapes["tilt"]),
        "centre": random.uniform(0.4, 1.2, shapes["centre"]),
        "inertia": random.uniform(0.05, 0.2, shapes["inertia"]),
        "dry_friction": random.uniform(0.2, 0.6, shapes["dry_friction"]),
        "transition_rate": random.uniform(0.3, 0.8, shapes["transition_rate"]),
        "drag": random.uniform(0.05, 0.2, shapes["drag"]),
    } | {name: np.broadcast_to(np.asarray(value, float), shapes[name]) for name, value in given.items()}
    tensors = [tensor(values[name], requires_grad=values[name].size > 0) for name in NAMES]
    return model, Params(*tensors[2:]), State(*tensors[:2])


def moments(model: Chain, params: Params) -> tuple[Tensor, Tensor]:
    """First and second moments of the links, as inputs of sub-steps that require a gradient."""
    found = Moments.apply(model, params.length, params.mass, params.centre, params.inertia)
    first, second = [tensor(each.data, requires_grad=True) for each in found]
    return first, second


def friction_of(params: Params) -> tuple[Tensor, Tensor, Tensor]:
    """Friction and drag, in the order in which sub-steps take them."""
    return params.dry_friction, params.transition_rate, params.drag


def torques(steps: int, links: int, batch: int | None = None) -> Tensor:
    """Random motor torques for each step."""
    shape: tuple[int, ...] = (steps, links) if batch is None else (batch, steps, links)
    return tensor(np.random.default_rng(7).uniform(-2, 2, shape), requires_grad=True)


def numbers(links: int, seed: int = 3) -> Tensor:
    """Random numbers, one for each link."""
    return tensor(np.random.default_rng(seed).uniform(-2, 2, links), requires_grad=True)


def places(params: Params, i: int) -> np.ndarray:
    """Part [n] of each link on the way to the centre of mass of link i [m]."""
    L, q, n = params.length.data, params.centre.data, np.arange(params.length.size)
    return np.where(n < i, L, np.where(n == i, q * L, 0.0))


def mass_matrix(params: Params, angle: np.ndarray) -> np.ndarray:
    """Mass matrix M [n, n] = I + sum_k m_k J_k^T J_k, from the derivatives of the centres of mass by the angles."""
    total = np.diag(params.inertia.data)
    for k, mass in enumerate(params.mass.data):
        jacobian = np.array([np.cos(angle), np.sin(angle)]) * places(params, k)
        total += mass * jacobian.T @ jacobian
    return total


def energy(params: Params, angle: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """Total energy over time [J], from the positions and velocities of the centres of mass."""
    e, g = float(params.tilt.data), float(params.gravity.data)
    total: np.ndarray = (params.inertia.data * rate**2).sum(axis=-1) / 2
    for k, mass in enumerate(params.mass.data):
        way = places(params, k)
        across, along = (way * np.cos(angle) * rate).sum(axis=-1), (way * np.sin(angle) * rate).sum(axis=-1)
        height = -(way * np.cos(angle - e)).sum(axis=-1)
        total = total + mass * (across**2 + along**2) / 2 + mass * g * height
    return total
