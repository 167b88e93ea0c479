"""Small basins of shallow water in which every term matters."""

from __future__ import annotations

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.simulators.wave.shallow import Params, ShallowWater, State

NAMES = (*State.names(), *Params.names())
"""The inputs of a step, in the order of `leaves`."""

CHANNEL = (5,), ("closed",)
BASIN = (4, 3), ("closed", "periodic")
"""Numbers of cells, and boundaries, in one and two dimensions."""


def basin(
    cells: tuple[int, ...] = BASIN[0],
    boundaries: tuple[str, ...] = BASIN[1],
    *,
    dt: float = 0.05,
    batch: int | None = None,
    batched: tuple[str, ...] = NAMES,
    seed: int = 0,
) -> tuple[ShallowWater, Params, State]:
    """Build a random state and parameters that require gradients. Those named in `batched` have a batch axis."""
    random = np.random.default_rng(seed)
    model = ShallowWater(cells, 0.5, dt, boundaries)
    shapes = {**model.state_shapes(), **model.param_shapes()}
    if batch is not None:
        shapes |= {name: (batch, *shapes[name]) for name in batched}
    values = {
        "elevation": random.uniform(-0.3, 0.3, shapes["elevation"]),
        "velocity": random.uniform(-0.5, 0.5, shapes["velocity"]),
        "depth": random.uniform(1, 2, shapes["depth"]),
        "gravity": random.uniform(1, 2, shapes["gravity"]),
        "friction": random.uniform(0.3, 0.6, shapes["friction"]),
    }
    params, state = unpacked(*[tensor(values[name], requires_grad=True) for name in NAMES])
    return model, params, state


def leaves(params: Params, state: State) -> tuple[Tensor, ...]:
    """List all inputs of a step, in the order of NAMES."""
    return *state.tensors(), *params.tensors()


def unpacked(*tensors: Tensor) -> tuple[Params, State]:
    """Rebuild the records from `leaves`."""
    return Params(*tensors[2:]), State(*tensors[:2])


def random_leaf(*shape: int, seed: int = 0) -> Tensor:
    """Draw random numbers that require a gradient."""
    return tensor(np.random.default_rng(seed).uniform(-1, 1, shape), requires_grad=True)
