"""Small systems in which no term vanishes: stretched and damped springs, drag, a pinned node, contact with friction."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from simphys.autograd import Tensor, runtime, tensor
from simphys.nn import Controller
from simphys.simulators.mass_spring.model import MassSpring, Params, State

NAMES = ("position", "velocity", *(field.name for field in fields(Params)))
"""Names of a step's inputs, in the order of `leaves`."""


def system(
    dim: int,
    *,
    integrator: str = "semi_implicit_euler",
    nodes: int = 5,
    springs: int = 7,
    dt: float = 0.01,
    damping: float = 0.3,
    ground: float = 40.0,
    free: bool = False,
    air: bool = False,
    actuators: int = 0,
    controlled: bool = False,
    seed: int = 0,
) -> tuple[MassSpring, Params, State]:
    """Make a random system, all tensors of which require a gradient.

    The last node is isolated; unless `free`, node 1 is pinned. Each actuator drives several springs; some springs have
    none. A controller has 3 waves and 5 hidden units. Half of the nodes lie below the ground's height of 0.1 m; all are
    at least 0.05 m away from it.
    """
    random = np.random.default_rng(seed)
    joined = max(nodes - 1, 2)
    ends = np.array([random.choice(joined, 2, replace=False) for _ in range(springs)], np.int32).reshape(-1, 2)
    pinned = np.zeros(nodes, bool)
    pinned[1:2] = not free
    position = random.uniform(-1, 1, (nodes, dim))
    position[:, -1] = 0.1 + np.where(np.arange(nodes) % 2, 1, -1) * random.uniform(0.05, 0.5, nodes)
    gravity = random.uniform(-1, 1, dim)
    gravity[-1] = -9.8
    values: dict[str, Any] = {
        "stiffness": random.uniform(10, 30, springs),
        "damping": damping * random.uniform(0.5, 1, springs),
        "rest_length": random.uniform(0.3, 0.8, springs),
        "mass": random.uniform(0.5, 2, nodes),
        "drag": random.uniform(0.1, 0.5, nodes),
        "gravity": gravity,
        "ground_height": 0.1,
        "ground_stiffness": ground,
        "ground_friction": 0.2,
        "air_drag": random.uniform(0.1, 0.5, nodes if air else 0),
    }
    velocity = random.uniform(-1, 1, (nodes, dim))
    values["amplitude"] = random.uniform(0.1, 0.3, springs if actuators else 0)
    actuator = (np.arange(springs, dtype=np.int32) % (actuators + 1) - 1) if actuators else None
    controller = (
        Controller(waves=3, hidden=5, goal=tuple(random.uniform(0.5, 1, dim)), scale=0.7) if controlled else None
    )
    model = MassSpring(ends, pinned, dim, dt, integrator, actuator=actuator, air=air, controller=controller)
    if model.network is not None:
        values |= {name: random.normal(size=shape) for name, shape in model.network.shapes().items()}
    params = Params(**{name: tensor(value, requires_grad=True) for name, value in values.items()})
    state = State(tensor(position, requires_grad=True), tensor(velocity, requires_grad=True))
    return model, params, state


def controls(model: MassSpring, steps: int, *batch: int, seed: int = 3) -> Tensor:
    """Make random controls of all actuators, or a random pattern for the controller; they require a gradient."""
    shape = (*batch, steps, *(model.control_shape() or (0,)))
    return tensor(np.random.default_rng(seed).uniform(-1, 1, shape), requires_grad=True)


def springs_only(
    ends: list[list[int]],
    position: list[list[float]],
    *,
    pinned: list[int] | None = None,
    stiffness: float = 1.0,
    damping: float = 0.0,
    rest_length: float = 0.0,
    drag: float = 0.0,
    gravity: list[float] | None = None,
    velocity: list[list[float]] | None = None,
    dt: float = 0.01,
    integrator: str = "semi_implicit_euler",
    **ground: float,
) -> tuple[MassSpring, Params, State]:
    """Make a system of equal springs between nodes of unit mass."""
    n, dim = np.shape(position)
    held = np.zeros(n, bool)
    held[pinned or []] = True
    params = Params(
        stiffness=tensor(np.full(len(ends), stiffness)),
        damping=tensor(np.full(len(ends), damping)),
        rest_length=tensor(np.full(len(ends), rest_length)),
        mass=tensor(np.ones(n)),
        drag=tensor(np.full(n, drag)),
        gravity=tensor(np.zeros(dim) if gravity is None else gravity),
        **{name: tensor(value) for name, value in ground.items()},
    )
    state = State(tensor(position), tensor(np.zeros((n, dim)) if velocity is None else velocity))
    return MassSpring(np.array(ends, np.int32).reshape(-1, 2), held, dim, dt, integrator), params, state


def leaves(params: Params, state: State) -> tuple[Tensor, ...]:
    """All inputs of a step, in the order of NAMES."""
    return (state.position, state.velocity, *params.tensors())


def fresh(tensors: tuple[Tensor, ...], wanted: tuple[str, ...] = NAMES) -> tuple[Params, State]:
    """Copy the inputs to new leaves without gradients; only the `wanted` ones require one."""
    new = [tensor(x.data, requires_grad=name in wanted) for name, x in zip(NAMES, tensors, strict=True)]
    return unpacked(*new)


def unpacked(*tensors: Tensor) -> tuple[Params, State]:
    """Params and State from the inputs of a step; the inverse of `leaves`."""
    return Params(*tensors[2:]), State(*tensors[:2])


def gradients(params: Params, state: State) -> dict[str, np.ndarray]:
    """Gradients from the last backward pass, by name; zeros if there is none."""
    found = zip(NAMES, leaves(params, state), strict=True)
    return {name: np.zeros(x.shape) if x.grad is None else x.grad.data for name, x in found}


def weights(shape: tuple[int, ...], seed: int = 1) -> Tensor:
    """Random weights that reduce a result to a scalar without favouring any entry."""
    return tensor(np.random.default_rng(seed).standard_normal(shape))


def tolerance(f64: float, f32: float) -> float:
    """Select the tolerance for the precision of this process."""
    return f64 if runtime.real_dtype() == np.float64 else f32
