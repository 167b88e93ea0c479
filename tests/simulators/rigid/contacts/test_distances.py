"""Gaps are distances or depths, frames give contact points, and the adjoint is the transpose of the Jacobian."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from simphys.autograd import grad
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.simulators.rigid import Box, Capsule, Sphere
from simphys.simulators.rigid.contacts.feature import BOX, CORNER, EDGES, PLANE, ROUND
from simphys.simulators.rigid.contacts.pair import FAR

from ....helpers.rounding import assert_equal_but_for_rounding
from .poses import Array, all_kinds, compute_contacts, leaf, make_model, matrix, measure, random_turns, upright

CENTRES = np.array([[0.05, -0.1, 0.08], [-0.2, 0.04, 0.06], [0.1, 0.12, -0.09], [-0.07, 0.15, 0.11]])
"""Centres of mass in the frames of four bodies [m]."""
DIMS = pytest.mark.parametrize("dim", [2, 3])


def close_together(dim: int, seed: int) -> tuple[Array, Array]:
    """Return four bodies that overlap."""
    random = np.random.default_rng(seed)
    return random.uniform(-0.5, 0.5, (4, dim)), random_turns(dim, 4, random)


@DIMS
def test_every_element_of_the_jacobian_is_right(dim: int) -> None:
    """Active pairs of every kind, of bodies whose centres of mass are not the origins of their frames."""
    model = all_kinds(dim)
    x, q = close_together(dim, 1)
    moved = x + np.array([matrix(turn) @ centre for turn, centre in zip(q, CENTRES[:, :dim], strict=True)])
    inputs = leaf(moved), leaf(q), leaf(CENTRES[:, :dim])
    gradcheck(lambda *given: measure(replace(model, free_anchors=True), *given), inputs, tolerance=1e-7)
    assert set(compute_contacts(model, x, q).kind.tolist()) == {PLANE, BOX, CORNER, ROUND, EDGES} - (
        {EDGES} if dim == 2 else set()
    )


@DIMS
def test_a_centre_of_mass_moves_no_shape(dim: int) -> None:
    """Bodies whose frames are where they were have the same gaps and normals, and arms to the same points."""
    model = all_kinds(dim)
    x, q = close_together(dim, 1)
    offset = np.array([matrix(turn) @ centre for turn, centre in zip(q, CENTRES[:, :dim], strict=True)])
    gap, frame = measure(model, leaf(x), leaf(q))
    moved_gap, moved_frame = measure(
        replace(model, free_anchors=True), leaf(x + offset), leaf(q), leaf(CENTRES[:, :dim])
    )
    is_active = gap.data < FAR
    np.testing.assert_allclose(moved_gap.data, gap.data, atol=1e-13)
    before, after = [each.data.reshape(-1, 3, dim)[is_active] for each in (frame, moved_frame)]
    np.testing.assert_allclose(after[:, 0], before[:, 0], atol=1e-13)
    bodies = np.stack([model.candidates.body_a, model.candidates.body_b], axis=1)[is_active]
    of_body = np.vstack([offset, np.zeros((1, dim))])[bodies]  # the last one is the world's
    np.testing.assert_allclose(after[:, 1:], before[:, 1:] - of_body, atol=1e-13)


@DIMS
def test_both_surfaces_touch_where_the_gap_closes(dim: int) -> None:
    """x_a + r_a = x_b + r_b + gap n, and n is a unit vector."""
    model = all_kinds(dim)
    x, q = close_together(dim, 1)
    c = compute_contacts(model, x, q)
    of_b = np.where((c.body_b >= 0)[:, None], x[c.body_b], 0.0)
    meet = of_b + c.r_b + c.gap[:, None] * c.n
    assert_equal_but_for_rounding(x[c.body_a] + c.r_a, meet, ulps=64, size=max(1.0, abs(c.gap).max()))
    assert_equal_but_for_rounding(np.linalg.norm(c.n, axis=1), np.ones(len(c.n)), ulps=64)


@DIMS
def test_a_common_motion_of_all_bodies_changes_no_gap(dim: int) -> None:
    model = make_model(*[shape for (shape,) in all_kinds(dim).shapes], dim=dim)
    x, q = close_together(dim, 1)
    R = matrix(upright(dim, 0.7)[0])
    turned = q + 0.7 if dim == 2 else np.array([_product(upright(3, 0.7)[0], each) for each in q])
    before, after = compute_contacts(model, x, q), compute_contacts(model, x @ R.T + 1.0, turned)
    np.testing.assert_allclose(after.gap, before.gap, atol=1e-13)
    for name in ("n", "r_a", "r_b"):
        np.testing.assert_allclose(getattr(after, name), getattr(before, name) @ R.T, atol=1e-13)


def _product(p: Array, q: Array) -> Array:
    return np.array([p[0] * q[0] - p[1:] @ q[1:], *(p[0] * q[1:] + q[0] * p[1:] + np.cross(p[1:], q[1:]))])


@DIMS
def test_round_shapes_are_as_far_apart_as_their_points(dim: int) -> None:
    """The gap is the minimal distance of all points of both segments."""
    random = np.random.default_rng(5)
    model = make_model(Capsule(0.1, 0.5), Capsule(0.2, 0.3), Sphere(0.15), dim=dim)
    for _ in range(10):
        x, q = random.uniform(-0.6, 0.6, (3, dim)), random_turns(dim, 3, random)
        c = compute_contacts(model, x, q)
        u = [length * matrix(turn)[:, 0] for length, turn in zip((0.5, 0.3, 0.0), q, strict=True)]
        radius = (0.1, 0.2, 0.15)
        for a, b, gap in zip(c.body_a, c.body_b, c.gap, strict=True):
            np.testing.assert_allclose(gap, distance(x[a] - x[b], u[a], u[b]) - radius[a] - radius[b], atol=1e-6)


def distance(m: Array, u: Array, v: Array) -> float:
    """Minimize the distance of two segments without using the geometry's formulas."""
    least = minimize(
        lambda s: ((m + s[0] * u - s[1] * v) ** 2).sum(), (0.1, -0.1), bounds=((-1, 1), (-1, 1)), tol=1e-15
    )
    return float(np.sqrt(least.fun))


@DIMS
def test_a_sphere_outside_of_a_box_is_as_far_as_the_nearest_point(dim: int) -> None:
    random = np.random.default_rng(2)
    half = np.array((0.4, 0.3, 0.5)[:dim])
    model = make_model(Sphere(0.1), Box(tuple(half)), dim=dim)
    for _ in range(20):
        x, q = random.uniform(-1, 1, (2, dim)), random_turns(dim, 2, random)
        p = matrix(q[1]).T @ (x[0] - x[1])
        outside = p - np.clip(p, -half, half)
        distance = np.linalg.norm(outside) - (half - abs(p)).min() * (not outside.any())
        np.testing.assert_allclose(compute_contacts(model, x, q).gap, [distance - 0.1], atol=1e-13)


def least_overlap(x: Array, q: Array, half: tuple[Array, Array]) -> float:
    """Return the distance of two boxes by separating axes; negative if they overlap."""
    R, d = [matrix(each) for each in q], x[0] - x[1]
    axes = [*R[0].T, *R[1].T]
    if len(d) == 3:
        axes += [np.cross(a, b) for a, b in itertools.product(R[0].T, R[1].T)]
    units = [axis / np.linalg.norm(axis) for axis in axes]
    return float(max([abs(d @ n) - half[0] @ abs(R[0].T @ n) - half[1] @ abs(R[1].T @ n) for n in units]))


@DIMS
def test_the_depth_of_two_boxes_agrees_with_their_separating_axes(dim: int) -> None:
    """A corner in a side, or two crossing edges, give the depth; no other candidate is much deeper."""
    random = np.random.default_rng(3)
    touched = set()
    for _ in range(25):
        half = random.uniform(0.2, 0.6, (2, dim))
        model, q = make_model(*[Box(tuple(each)) for each in half], dim=dim), random_turns(dim, 2, random)
        direction, depth = random.standard_normal(dim), -(10.0 ** random.uniform(-6, -2))
        near, far = 0.0, 3 / float(np.linalg.norm(direction))
        for _ in range(60):
            middle = (near + far) / 2
            x = np.array([middle * direction, 0 * direction])
            near, far = (middle, far) if least_overlap(x, q, (half[0], half[1])) < depth else (near, middle)
        c = compute_contacts(model, x, q)
        tells = abs(c.gap - depth) < 1e-9
        assert tells.any()
        assert c.gap.min() > 2.001 * depth
        assert np.einsum("ij,ij->i", c.n, x[c.body_a] - x[c.body_b])[tells].min() > 0
        touched |= set(c.kind[tells].tolist())
    assert touched == ({CORNER} if dim == 2 else {CORNER, EDGES})


@DIMS
def test_without_candidates_there_are_no_contacts(dim: int) -> None:
    model = make_model(Sphere(0.1), dim=dim)
    x, q = leaf(np.ones((1, dim))), leaf(upright(dim, 0.3))
    gap, frame = measure(model, x, q)
    assert (gap.shape, frame.shape) == ((0,), (0, 3 * dim))
    (adj_x,) = grad(gap.sum() + frame.sum(), x)
    assert not adj_x.data.any()


def test_a_nan_adjoint_is_not_lost() -> None:
    """Candidates with zero adjoints are skipped, but not those with NaN."""
    model = all_kinds(2)
    x, q = [leaf(each) for each in close_together(2, 1)]
    (adj_x,) = grad((measure(model, x, q)[0] * np.nan).sum(), x)
    assert np.isnan(adj_x.data).all()
