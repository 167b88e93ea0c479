"""Two shapes at given poses, and the results of the contact geometry."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from simphys.autograd import Tensor, grad, tensor
from simphys.simulators.rigid import Box, Capsule, Plane, RigidBodies, Sphere
from simphys.simulators.rigid.contacts.distances import Contacts
from simphys.simulators.rigid.contacts.pair import FAR
from simphys.simulators.rigid.contacts.time_of_impact import TimeOfImpact
from simphys.simulators.rigid.shapes import Shape

Array = np.ndarray[Any, Any]


NO_CENTRES = (tensor(np.zeros(0)),)


class Found(NamedTuple):
    """Return the active candidates."""

    kind: Array
    gap: Array
    n: Array
    r_a: Array
    r_b: Array
    body_a: Array
    body_b: Array


def all_kinds(dim: int) -> RigidBodies:
    """Return four shapes and a plane, with candidates of every kind."""
    sphere, capsule, plane = Sphere(0.3, (0.1, 0.2, -0.1)[:dim]), Capsule(0.2, 0.5), Plane((0.6, 0.8, 0.0)[:dim], -0.3)
    boxes = Box((0.4, 0.3, 0.5)[:dim], (0.1, -0.2, 0.15)[:dim]), Box((0.3, 0.6, 0.4)[:dim])
    return RigidBodies(dim, 0.01, ((sphere,), (capsule,), (boxes[0],), (boxes[1],)), (plane,))


def make_model(*shapes: Shape, dim: int, planes: tuple[Plane, ...] = ()) -> RigidBodies:
    """Return bodies of each shape with the kernels for all kinds, which all tests share."""
    model = RigidBodies(dim, 0.01, tuple([(shape,) for shape in shapes]), planes)
    vars(model.candidates)["kinds"] = all_kinds(dim).candidates.kinds
    return model


def measure(model: RigidBodies, x: Tensor, q: Tensor, *centres: Tensor) -> Any:
    """Return gap and frame of all candidates; without centres of mass, shapes count from them."""
    return Contacts.apply(model, x, q, *(centres or NO_CENTRES))


def meet(model: RigidBodies, x: Tensor, q: Tensor, twist: Tensor, *centres: Tensor) -> Any:
    """Return the results of TimeOfImpact."""
    return TimeOfImpact.apply(model, x, q, twist, *(centres or NO_CENTRES))


def compute_contacts(model: RigidBodies, x: Any, q: Any) -> Found:
    gap, frame = [each.data for each in measure(model, leaf(x), leaf(q))]
    counts, vectors = gap < FAR, frame.reshape(len(gap), 3, model.dim)
    own, (n, r_a, r_b) = model.candidates, [vectors[counts, k] for k in range(3)]
    return Found(own.kind[counts], gap[counts], n, r_a, r_b, own.body_a[counts], own.body_b[counts])


def slopes(model: RigidBodies, x: Any, q: Any, candidate: int = 0) -> tuple[Array, Array]:
    """Return the derivatives of a candidate's gap by all positions, and by all orientations."""
    inputs = leaf(x), leaf(q)
    adj_x, adj_q = grad(measure(model, *inputs)[0][candidate], inputs)
    return adj_x.data, adj_q.data


def leaf(values: Any) -> Tensor:
    return tensor(np.array(values, float), requires_grad=True)


def upright(dim: int, *angles: float) -> Array:
    """Return orientations rotated about the last axis: one for each body."""
    angle = np.array(angles)
    if dim == 2:
        return angle[:, None]
    return np.stack([np.cos(angle / 2), 0 * angle, 0 * angle, np.sin(angle / 2)], axis=1)


def random_turns(dim: int, bodies: int, random: np.random.Generator) -> Array:
    q = random.standard_normal((bodies, 1 if dim == 2 else 4))
    return q if dim == 2 else q / np.linalg.norm(q, axis=1, keepdims=True)


def matrix(q: Array) -> Array:
    if len(q) == 1:
        return np.array([[np.cos(q[0]), -np.sin(q[0])], [np.sin(q[0]), np.cos(q[0])]])
    w, r = q[0], q[1:]
    cross = np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
    R: Array = np.eye(3) + 2 * w * cross + 2 * cross @ cross
    return R
