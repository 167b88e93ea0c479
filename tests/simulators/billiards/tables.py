"""Small tables of balls with impacts, and helpers for tests of their motion."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.autograd import Tensor, no_grad, runtime, tensor
from simphys.rollout import rollout
from simphys.simulators.billiards import Billiards, Params, State

NAMES = (*State.names(), *Params.names())
"""The inputs of a step, in the order of `leaves`."""


def table(
    position: Any,
    velocity: Any,
    *,
    dt: float = 0.1,
    radius: Any = 0.05,
    mass: Any = 1.0,
    restitution: float = 0.8,
    cushion_restitution: float = 0.7,
    deceleration: float = 0.0,
    corners: tuple[list[float], list[float]] | None = None,
    max_impacts: int = 100,
) -> tuple[Billiards, Params, State]:
    """Return a table with balls at `position` [n, 2]; `corners` of the cushions. All inputs require a gradient."""
    n = len(position)
    sizes = [np.broadcast_to(np.asarray(value, float), (n,)) for value in (radius, mass)]
    lower, upper = corners or (np.zeros(0), np.zeros(0))
    values = (*sizes, restitution, cushion_restitution, deceleration, lower, upper)
    params = Params(*[leaf(value) for value in values])
    model = Billiards(n, dt, cushions=corners is not None, max_impacts=max_impacts)
    return model, params, State(leaf(position), leaf(velocity))


def leaf(value: Any) -> Tensor:
    """Return a Tensor in the precision of this process that requires a gradient."""
    return tensor(np.array(value, runtime.real_dtype()), requires_grad=True)


def busy(*, deceleration: float = 0.3, dt: float = 0.1, cushions: bool = True) -> tuple[Billiards, Params, State]:
    """Return four different balls that hit each other and cushions within a second; one comes to rest by itself."""
    return table(
        [[0.2, 0.31], [0.5, 0.33], [0.8, 0.6], [0.25, 0.72]],
        [[1.0, 0.1], [0.03, -0.02], [0.2, -1.0], [0.7, 0.4]],
        dt=dt,
        radius=[0.05, 0.06, 0.04, 0.045],
        mass=[1.0, 1.4, 0.7, 0.9],
        deceleration=deceleration,
        corners=([0.0, 0.1], [1.0, 0.8]) if cushions else None,
    )


def leaves(params: Params, state: State) -> tuple[Tensor, ...]:
    """Return all inputs of a step, in the order of NAMES."""
    return *state.tensors(), *params.tensors()


def unpack(*tensors: Tensor) -> tuple[Params, State]:
    """Return params and state from tensors in the order of `leaves`."""
    return Params(*tensors[2:]), State(*tensors[:2])


def move(case: tuple[Billiards, Params, State], time: float) -> tuple[np.ndarray, np.ndarray]:
    """Return position and velocity after a time, whatever the time step is."""
    model, params, state = case
    with no_grad():
        found = rollout(model, params, state, steps=round(time / model.dt), keep="final").final
    return found.position.data, found.velocity.data
