"""The list of features that may touch is complete, without duplicates."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from simphys.simulators.rigid import WORLD, Box, Capsule, Joint, Plane, RigidBodies, Sphere
from simphys.simulators.rigid.contacts.feature import BOX, CORNER, EDGES, PLANE, ROUND
from simphys.simulators.rigid.shapes import Shape

from .poses import make_model

CORNERS = {2: 4, 3: 8}
EDGES_OF = {2: 0, 3: 12}


def shapes(dim: int) -> tuple[Shape, Shape, Shape]:
    return Sphere(0.3), Capsule(0.2, 0.5), Box((0.4, 0.3, 0.5)[:dim])


def kinds(*pair: Shape, dim: int, planes: tuple[Plane, ...] = ()) -> Counter[int]:
    return Counter(make_model(*pair, dim=dim, planes=planes).candidates.kind.tolist())


@pytest.mark.parametrize("dim", [2, 3])
def test_each_pair_of_shapes_has_its_features(dim: int) -> None:
    sphere, capsule, box = shapes(dim)
    corners, edges = CORNERS[dim], EDGES_OF[dim]
    assert kinds(sphere, sphere, dim=dim) == {ROUND: 1}
    assert kinds(sphere, capsule, dim=dim) == {ROUND: 1}
    assert kinds(capsule, capsule, dim=dim) == {ROUND: 1}
    assert kinds(sphere, box, dim=dim) == {BOX: 1}
    assert kinds(capsule, box, dim=dim) == {BOX: 2, ROUND: corners + edges}
    assert kinds(box, box, dim=dim) == ({CORNER: 16, EDGES: 144} if dim == 3 else {CORNER: 8})
    floor = (Plane((0.0, 1.0, 0.0)[:dim]),)
    assert [kinds(shape, dim=dim, planes=floor)[PLANE] for shape in shapes(dim)] == [1, 2, corners]


def test_order_of_bodies_does_not_matter() -> None:
    one, other = shapes(2)[:2]
    there, back = make_model(one, other, dim=2).candidates, make_model(other, one, dim=2).candidates
    np.testing.assert_array_equal(there.constants, back.constants)
    assert (there.body_a[0], there.body_b[0], back.body_a[0], back.body_b[0]) == (0, 1, 1, 0)


def test_shapes_of_a_body_have_their_offsets() -> None:
    body = (Sphere(0.1, (0.2, 0.3)), Sphere(0.1, (-0.2, 0.3)))
    found = RigidBodies(2, 0.01, (body, (Sphere(0.5),))).candidates
    assert found.count == 2
    np.testing.assert_array_equal(found.constants[:, :2], [(0.2, 0.3), (-0.2, 0.3)])


def test_joined_or_fixed_bodies_do_not_touch() -> None:
    ball, floor = Sphere(0.1), (Plane((0.0, 1.0)),)
    joint = Joint("revolute", 0, 1, (0.1, 0.0), (-0.1, 0.0))
    found = RigidBodies(2, 0.01, ((ball,), (ball,), (ball,)), floor, (joint,), fixed=(2,)).candidates
    pairs = sorted(zip(found.body_a.tolist(), found.body_b.tolist(), strict=True))
    assert pairs == [(0, WORLD), (0, 2), (1, WORLD), (1, 2)]


def test_bodies_without_shapes_touch_nothing() -> None:
    found = RigidBodies(2, 0.01, ((), ())).candidates
    assert found.count == 0
    assert found.constants.shape == (0, 14)
