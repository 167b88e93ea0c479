"""Small systems of rigid bodies in which every term matters."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.autograd import Tensor, runtime, tensor
from simphys.nn import Controller
from simphys.simulators.rigid import WORLD, Box, Capsule, Joint, Params, Plane, RigidBodies, Sphere, Spring, State

System = tuple[RigidBodies, Params, State]
NAMES = (*State.names(), *Params.names())
"""The inputs of a step, in the order of `leaves`."""

UP = {2: (0.0, 1.0), 3: (0.0, 0.0, 1.0)}
GRAVITY = 9.81


def system(model: RigidBodies, *, seed: int = 0, state: dict[str, Any] | None = None, **params: Any) -> System:
    """Return a model with parameters off all symmetries; all tensors require a gradient. Arguments override values."""
    random = np.random.default_rng(seed)
    shapes = {**model.state_shapes(), **model.param_shapes()}
    values = {name: random.uniform(0.5, 1.5, shape) for name, shape in shapes.items()}
    values["gravity"] = -GRAVITY * np.array(UP[model.dim])
    values["inertia"] *= 0.02
    values["friction"] *= 0.4
    values["restitution"] *= 0.4
    values["contact_stiffness"] *= 3000
    values["contact_damping"] *= 0.1
    values["spring_stiffness"] *= 20
    values["joint_damping"] *= 0.02
    values["joint_dry_friction"] *= 0.2
    for name in ("hidden_weight", "hidden_bias", "output_weight", "output_bias"):
        values[name] = random.normal(0, 0.5, shapes[name])
    values["orientation"] = np.zeros(shapes["orientation"])
    values["orientation"][:, 0] = model.dim == 3
    values |= {name: np.broadcast_to(value, shapes[name]) for name, value in {**(state or {}), **params}.items()}
    leaves = {name: tensor(np.array(value, float), requires_grad=True) for name, value in values.items()}
    return (
        model,
        Params(**{name: leaves[name] for name in Params.names()}),
        State(**{name: leaves[name] for name in State.names()}),
    )


def tumbling_in_plane(
    law: str = "impulse", *, dt: float = 0.01, steepness: float = 0.0, off_centre: bool = False
) -> System:
    """Two boxes and a sphere that fall on a plane and on each other, with friction.

    With `off_centre`, here and below, their centres of mass are parameters, beside the centres of the shapes.
    """
    normal = (float(np.sin(steepness)), float(np.cos(steepness)))
    shapes = ((Box((0.2, 0.1)),), (Box((0.15, 0.1)),), (Sphere(0.12),))
    model = RigidBodies(2, dt, shapes, planes=(Plane(normal),), law=law, sweeps=8, free_anchors=off_centre)
    state = {
        "position": [[0.0, 0.16], [0.1, 0.45], [0.55, 0.19]],
        "orientation": [[0.2], [-0.3], [0.1]],
        "velocity": [[0.7, -1.0], [0.3, -1.5], [-0.9, -0.8]],
        "angular_velocity": [[0.4], [-1.0], [2.0]],
    }
    return system(model, state=state, **(centres(model) if off_centre else {}))


def tumbling_in_space(law: str = "impulse", *, dt: float = 0.01, off_centre: bool = False) -> System:
    """A box that falls on a plane and a capsule that falls on both; all bodies rotate."""
    shapes = ((Box((0.2, 0.15, 0.1)),), (Capsule(0.1, 0.15),))
    model = RigidBodies(3, dt, shapes, planes=(Plane((0.0, 0.0, 1.0)),), law=law, sweeps=8, free_anchors=off_centre)
    state = {
        "position": [[0.0, 0.02, 0.2], [0.05, 0.0, 0.5]],
        "orientation": [[0.95, 0.15, -0.1, 0.2], [0.9, 0.1, 0.2, -0.3]],
        "velocity": [[0.5, 0.2, -1.0], [-0.2, 0.3, -1.5]],
        "angular_velocity": [[1.0, -2.0, 0.5], [-1.0, 1.5, 2.0]],
    }
    return system(model, state=state, **(centres(model) if off_centre else {}))


def centres(model: RigidBodies) -> dict[str, Any]:
    """Centres of mass of bodies that nothing joins, within 1 cm of the origins of their frames."""
    return {"centre_of_mass": np.random.default_rng(3).uniform(-0.01, 0.01, (model.bodies, model.dim))}


def chain(dim: int = 2, *, dt: float = 0.01, controlled: bool = False) -> System:
    """Links on a revolute, a prismatic and a fixed joint in a row; a spring holds the last.

    The control drives the first two joints, which rub, or a network does, and they do not. Anchors and centres of mass
    are parameters of the first one.
    """
    zero, along = (0.0,) * dim, (0.2,) + (0.0,) * (dim - 1)
    back = (-0.2,) + (0.0,) * (dim - 1)
    axis = None if dim == 2 else (0.0, 0.8, 0.6)
    turned = (0.3,) if dim == 2 else (0.96, 0.0, 0.28, 0.0)
    joints = (
        Joint("revolute", 0, WORLD, back, zero, axis=axis, motor=True),
        Joint("prismatic", 1, 0, back, along, axis=(1.0,) + (0.0,) * (dim - 1), motor=True),
        Joint("fixed", 2, 1, back, along, relative=turned),
    )
    springs = (Spring(2, WORLD, along, (1.0, -0.5, 0.3)[:dim]), Spring(0, 2, along, zero))
    controller = Controller(waves=3, hidden=4, goal=(1.0, -0.5, 0.3)[:dim], scale=0.3) if controlled else None
    options: dict[str, Any] = {"joint_friction": not controlled, "controller": controller}
    options["free_anchors"] = not controlled
    model = RigidBodies(dim, dt, ((), (), ()), joints=joints, springs=springs, sweeps=8, **options)
    steps = np.zeros((3, dim))
    steps[:, 0] = (0.2, 0.6, 1.0)
    state = {"position": steps, "velocity": 0.1 * steps[::-1], "angular_velocity": 0.2}
    return system(model, state=state, **({} if controlled else anchors(joints, springs, dim)))


def anchors(joints: tuple[Joint, ...], springs: tuple[Spring, ...], dim: int) -> dict[str, Any]:
    """Anchors of joints and springs between bodies whose frames begin beside their centres of mass."""
    centres = np.random.default_rng(5).uniform(-0.1, 0.1, (len(joints) + 1, dim))
    centres[WORLD] = 0.0
    return {
        "joint_anchor_a": [joint.anchor_a + centres[joint.a] for joint in joints],
        "joint_anchor_b": [joint.anchor_b + centres[joint.b] for joint in joints],
        "spring_anchor_a": [spring.anchor_a + centres[spring.a] for spring in springs],
        "spring_anchor_b": [spring.anchor_b + centres[spring.b] for spring in springs],
        "centre_of_mass": centres[:WORLD],
    }


def controls(model: RigidBodies, steps: int, batch: int | None = None) -> Tensor | None:
    """Random controls for each step; None if the model takes none."""
    shape = model.control_shape()
    if shape is None:
        return None
    full = (steps, *shape) if batch is None else (batch, steps, *shape)
    return tensor(np.random.default_rng(7).uniform(-1, 1, full), requires_grad=True)


def leaves(params: Params, state: State) -> tuple[Tensor, ...]:
    """Return all inputs of a step, in the order of NAMES."""
    return *state.tensors(), *params.tensors()


def unpack(*tensors: Tensor) -> tuple[Params, State]:
    """Return params and state from tensors in the order of `leaves`."""
    return Params(*tensors[4:]), State(*tensors[:4])


def weights(shape: tuple[int, ...], seed: int = 1) -> Tensor:
    """Return random weights, whose product with a result sums up to a scalar in which no entry is special."""
    return tensor(np.random.default_rng(seed).standard_normal(shape))


def tolerance(f64: float, f32: float) -> float:
    """Return the tolerance for the precision of this process."""
    return f64 if runtime.real_dtype() == np.float64 else f32
