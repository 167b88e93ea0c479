"""Small basins of shallow water in which every term acts."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.autograd import Tensor, runtime, tensor
from simphys.wave.shallow import Params, ShallowWater, State

NAMES = (*State.names(), *Params.names())
"""The inputs of a step, in the order of `leaves`."""

CHANNEL = (5,), ("closed",)
BASIN = (4, 3), ("closed", "periodic")
"""Cells and boundaries, in one dimension and in the plane."""


def basin(
    cells: tuple[int, ...] = BASIN[0],
    boundaries: tuple[str, ...] = BASIN[1],
    *,
    dt: float = 0.05,
    batch: int | None = None,
    batched: tuple[str, ...] = NAMES,
    seed: int = 0,
) -> tuple[ShallowWater, Params, State]:
    """Random water; all its tensors require a gradient. With a `batch` the `batched` ones have that axis."""
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
    """All inputs of a step, in the order of NAMES."""
    return *state.tensors(), *params.tensors()


def unpacked(*tensors: Tensor) -> tuple[Params, State]:
    """The reverse of `leaves`."""
    return Params(*tensors[2:]), State(*tensors[:2])


def random_leaf(*shape: int, seed: int = 0) -> Tensor:
    """Random numbers that require a gradient."""
    return tensor(np.random.default_rng(seed).uniform(-1, 1, shape), requires_grad=True)


def assert_close(found: Any, expected: Any, relative: float, name: str = "") -> None:
    """Equal within a part of the largest value expected."""
    scale = float(np.abs(expected).max())
    np.testing.assert_allclose(found, expected, rtol=0, atol=relative * scale, err_msg=name)


def tolerance(f64: float, f32: float) -> float:
    """The one that fits the precision of this process."""
    return f64 if runtime.real_dtype() == np.float64 else f32
