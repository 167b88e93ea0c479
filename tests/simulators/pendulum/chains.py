"""Chains in which no term vanishes, away from symmetric states."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.simulators.pendulum.chain import Chain, Params, State

NAMES = (*State.names(), *Params.names())
"""Names of a step's inputs, in the order of `leaves`."""


def chain(
    links: int,
    integrator: str = "rk4",
    *,
    dt: float = 0.05,
    batch: int | None = None,
    batched: tuple[str, ...] = NAMES,
    seed: int = 0,
    **given: Any,
) -> tuple[Chain, Params, State]:
    """Make a random chain whose tensors all require a gradient. With a `batch`, the `batched` ones have that axis.

    given: values of fields that replace random ones.
    """
    random = np.random.default_rng(seed)
    model = Chain(links, dt, integrator)
    shapes = {**model.state_shapes(), **model.param_shapes()}
    if batch is not None:
        shapes |= {name: (batch, *shapes[name]) for name in batched}
    values = {
        "angle": random.uniform(-2, 2, shapes["angle"]),
        "rate": random.uniform(-2, 2, shapes["rate"]),
        "length": random.uniform(0.5, 1.5, shapes["length"]),
        "mass": random.uniform(0.5, 2, shapes["mass"]),
        "damping": random.uniform(0.05, 0.3, shapes["damping"]),
        "gravity": random.uniform(5, 10, shapes["gravity"]),
        "tilt": random.uniform(0.1, 0.3, shapes["tilt"]),
    } | {name: np.broadcast_to(np.asarray(value, float), shapes[name]) for name, value in given.items()}
    params, state = unpacked(*[tensor(values[name], requires_grad=True) for name in NAMES])
    return model, params, state


def leaves(params: Params, state: State) -> tuple[Tensor, ...]:
    """All inputs of a step, in the order of NAMES."""
    return *state.tensors(), *params.tensors()


def unpacked(*tensors: Tensor) -> tuple[Params, State]:
    """Params and State from the inputs of a step; the inverse of `leaves`."""
    return Params(*tensors[2:]), State(*tensors[:2])


def torques(steps: int, links: int, batch: int | None = None) -> Tensor:
    """Random motor torques for each step."""
    shape: tuple[int, ...] = (steps, links) if batch is None else (batch, steps, links)
    return tensor(np.random.default_rng(7).uniform(-2, 2, shape), requires_grad=True)


def numbers(links: int, seed: int = 3) -> Tensor:
    """Random numbers, one for each link."""
    return tensor(np.random.default_rng(seed).uniform(-2, 2, links), requires_grad=True)


def mass_matrix(params: Params, angle: np.ndarray) -> np.ndarray:
    """Mass matrix M [n, n] = sum_k m_k J_k^T J_k, from the derivatives of the positions with respect to the angles."""
    L, m = params.length.data, params.mass.data
    n = len(L)
    total = np.zeros((n, n))
    for k in range(n):
        jacobian = np.array([L * np.cos(angle), L * np.sin(angle)]) * (np.arange(n) <= k)
        total += m[k] * jacobian.T @ jacobian
    return total


def energy(params: Params, angle: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """Total energy over time [J], from the positions and velocities of the masses."""
    L, m = params.length.data, params.mass.data
    e = float(params.tilt.data)
    across = np.cumsum(L * np.cos(angle) * rate, axis=-1)
    along = np.cumsum(L * np.sin(angle) * rate, axis=-1)
    height = -np.cumsum(L * np.cos(angle - e), axis=-1)
    return (m * (across**2 + along**2) / 2 + m * float(params.gravity.data) * height).sum(axis=-1)
