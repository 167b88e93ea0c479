"""Small systems of charges of either sign, in which no term vanishes."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.autograd import Tensor, runtime, tensor
from simphys.simulators.charges import Charges, Params, State

NAMES = (*State.names(), *Params.names())
"""Names of a step's inputs, in the order of `leaves`."""


def system(
    dim: int,
    *,
    bodies: int = 5,
    integrator: str = "semi_implicit_euler",
    dt: float = 0.02,
    batch: int | None = None,
    batched: tuple[str, ...] = NAMES,
    seed: int = 0,
) -> tuple[Charges, Params, State]:
    """Make a random system whose tensors all require a gradient. With a `batch`, the `batched` ones have that axis."""
    random = np.random.default_rng(seed)
    model = Charges(bodies, dim, dt, integrator)
    shapes = {**model.state_shapes(), **model.param_shapes()}
    if batch is not None:
        shapes |= {name: (batch, *shapes[name]) for name in batched}
    values = {
        "position": random.uniform(-1, 1, shapes["position"]),
        "velocity": random.uniform(-1, 1, shapes["velocity"]),
        "charge": random.uniform(0.5, 1.5, shapes["charge"]) * np.where(random.random(shapes["charge"]) < 0.5, -1, 1),
        "mass": random.uniform(0.5, 2, shapes["mass"]),
        "coupling": random.uniform(0.5, 1, shapes["coupling"]),
        "softening": random.uniform(0.2, 0.4, shapes["softening"]),
    }
    params, state = unpacked(*[tensor(values[name], requires_grad=True) for name in NAMES])
    return model, params, state


def two_bodies(
    distance: float,
    *,
    charge: tuple[float, float] = (1.0, -1.0),
    mass: tuple[float, float] = (1.0, 1.0),
    softening: float = 0.1,
    speed: float = 0.0,
    dt: float = 0.01,
    integrator: str = "velocity_verlet",
) -> tuple[Charges, Params, State]:
    """Two bodies on the first axis of the plane, moving across it at opposite velocities; coupling 1."""
    params = Params(tensor(charge), tensor(mass), tensor(1.0), tensor(softening))
    position = tensor([[-distance / 2, 0.0], [distance / 2, 0.0]])
    state = State(position, tensor([[0.0, -speed], [0.0, speed]]))
    return Charges(2, 2, dt, integrator), params, state


def leaves(params: Params, state: State) -> tuple[Tensor, ...]:
    """All inputs of a step, in the order of NAMES."""
    return *state.tensors(), *params.tensors()


def unpacked(*tensors: Tensor) -> tuple[Params, State]:
    """Params and State from the inputs of a step; the inverse of `leaves`."""
    return Params(*tensors[2:]), State(*tensors[:2])


def fresh(tensors: tuple[Tensor, ...]) -> tuple[Params, State]:
    """Copy the inputs to new leaves without gradients."""
    return unpacked(*[tensor(each.data, requires_grad=True) for each in tensors])


def fields(steps: int, dim: int, batch: int | None = None) -> Tensor:
    """A random external field for each step."""
    shape: tuple[int, ...] = (steps, dim) if batch is None else (batch, steps, dim)
    return tensor(np.random.default_rng(7).uniform(-1, 1, shape), requires_grad=True)


def weights(shape: tuple[int, ...], seed: int = 1) -> Tensor:
    """Random weights that reduce a result to a scalar without favouring any entry."""
    return tensor(np.random.default_rng(seed).standard_normal(shape))


def assert_close(found: Any, expected: Any, relative: float, name: str = "") -> None:
    """Require equality within a fraction of the largest expected value."""
    scale = float(np.abs(expected).max())
    np.testing.assert_allclose(found, expected, rtol=0, atol=relative * scale, err_msg=name)


def tolerance(f64: float, f32: float) -> float:
    """Select the tolerance for the precision of this process."""
    return f64 if runtime.real_dtype() == np.float64 else f32
