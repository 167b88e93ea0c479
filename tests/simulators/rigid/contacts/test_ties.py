"""Conventions at the kinks of the geometry: two features are equally near, or the active feature changes."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import grad
from simphys.simulators.rigid import Box, Capsule, Sphere
from simphys.simulators.rigid.contacts.feature import BOX, CORNER, EDGES, ROUND
from simphys.simulators.rigid.contacts.pair import FAR

from ....helpers.rounding import assert_equal_but_for_rounding
from ..systems import tolerance
from .poses import compute_contacts, leaf, make_model, measure, slopes, upright

DIMS = pytest.mark.parametrize("dim", [2, 3])


def first(dim: int) -> list[float]:
    """Return the first axis."""
    return [1.0, 0.0, 0.0][:dim]


def at(dim: int, *places: tuple[float, float]) -> list[list[float]]:
    """Return positions in the plane, in space with third coordinate 0."""
    return [[*place, 0.0][:dim] for place in places]


# --- round features


@DIMS
def test_coinciding_centres_have_the_first_axis_as_normal(dim: int) -> None:
    model, x, q = make_model(Sphere(0.1), Sphere(0.2), dim=dim), at(dim, (0.5, 0.5), (0.5, 0.5)), upright(dim, 0.3, 0.7)
    c = compute_contacts(model, x, q)
    assert_equal_but_for_rounding(c.gap, [-0.3])
    np.testing.assert_array_equal(c.n, [first(dim)])
    adj_x, adj_q = slopes(model, x, q)
    np.testing.assert_array_equal(adj_x, [first(dim), np.negative(first(dim))])
    assert not adj_q.any()


@DIMS
def test_crossing_segments_have_the_first_axis_as_normal(dim: int) -> None:
    """In the plane this covers every position of a capsule deep in another."""
    model, q = make_model(Capsule(0.1, 0.5), Capsule(0.1, 0.4), dim=dim), upright(dim, 0.2, 1.1)
    c = compute_contacts(model, at(dim, (0.1, 0.0), (0.1, 0.05)) if dim == 2 else at(dim, (0.1, 0.0), (0.1, 0.0)), q)
    np.testing.assert_allclose(c.gap, [-0.2], rtol=1e-12)
    np.testing.assert_array_equal(c.n, [first(dim)])


@DIMS
@pytest.mark.parametrize(("shift", "middle"), [(0.0, 0.0), (0.6, 0.3), (-0.7, -0.35), (1.2, 0.5)])
def test_parallel_capsules_touch_in_the_middle_of_their_overlap(dim: int, shift: float, middle: float) -> None:
    """One segment extends from -0.5 to 0.5; the other is as long, and shifted."""
    model, q = make_model(Capsule(0.1, 0.5), Capsule(0.1, 0.5), dim=dim), upright(dim, 0.0, 0.0)
    c = compute_contacts(model, at(dim, (0.0, 0.15), (shift, 0.0)), q)
    np.testing.assert_allclose(c.r_a[0, 0], middle, atol=0.1 if shift > 1 else 1e-12)
    if shift < 1:
        np.testing.assert_allclose(c.gap, [-0.05], rtol=1e-12)
        assert_equal_but_for_rounding(c.n[0, :2], (0, 1))


@DIMS
def test_the_contact_point_of_parallel_capsules_is_fixed_on_the_second(dim: int) -> None:
    """It moves with body b along the segments, and stays while a slides along them."""
    model, q = make_model(Capsule(0.1, 0.5), Capsule(0.1, 0.5), dim=dim), upright(dim, 0.0, 0.0)
    x = leaf(at(dim, (0.0, 0.15), (0.6, 0.0)))
    frame = measure(model, x, leaf(q))[1]
    (adj_x,) = grad(frame[0, dim], x, retain_graph=True)  # of r_a, along the segments
    assert_equal_but_for_rounding(adj_x.data, np.outer((-1, 1), first(dim)))
    (adj_x,) = grad(frame[0, 2 * dim], x)  # of r_b
    assert_equal_but_for_rounding(adj_x.data, np.zeros((2, dim)), size=1.0)


@DIMS
def test_an_end_that_is_just_reached_is_held(dim: int) -> None:
    """A sphere past the end of a capsule only rotates the normal; before the end, the point moves."""
    model, q = make_model(Sphere(0.1), Capsule(0.1, 0.5), dim=dim), upright(dim, 0.0, 0.0)
    for place, slope in ((0.5, 0.1 / 0.15), (0.4, 1.0)):
        x = leaf(at(dim, (place, 0.15), (0.0, 0.0)))
        (adj_x,) = grad(measure(model, x, leaf(q))[1][0, 2 * dim], x)  # of r_b, along the segment
        np.testing.assert_allclose(adj_x.data[0, 0], slope, rtol=1e-12)


# --- a point and a box


@DIMS
def test_inside_a_box_the_first_of_the_nearest_sides_is_taken(dim: int) -> None:
    model, q = make_model(Sphere(0.1), Box((0.5,) * dim), dim=dim), upright(dim, 0.0, 0.0)
    for place in ((0.3, 0.3), (0.3, -0.3), (0.0, 0.0)):
        c = compute_contacts(model, at(dim, place, (0.0, 0.0)), q)
        assert_equal_but_for_rounding(c.gap, [place[0] - 0.6], size=1.0)
        np.testing.assert_array_equal(c.n, [first(dim)])
        np.testing.assert_array_equal(slopes(model, at(dim, place, (0.0, 0.0)), q)[0][0], first(dim))


@DIMS
def test_a_point_on_the_surface_of_a_box_is_inside(dim: int) -> None:
    model, q = make_model(Sphere(0.1), Box((0.5,) * dim), dim=dim), upright(dim, 0.0, 0.0)
    c = compute_contacts(model, at(dim, (0.2, 0.5), (0.0, 0.0)), q)
    assert_equal_but_for_rounding(c.gap, [-0.1], size=1.0)
    np.testing.assert_array_equal(c.n[0, :2], (0, 1))
    np.testing.assert_array_equal(slopes(model, at(dim, (0.2, 0.5), (0.0, 0.0)), q)[0][0, :2], (0, 1))
    c = compute_contacts(model, [[0.5] * dim, [0.0] * dim], q)  # exactly at the corner: the first of its sides
    np.testing.assert_array_equal(c.n, [first(dim)])


@DIMS
def test_around_a_corner_normal_and_gap_are_continuous(dim: int) -> None:
    """The point moves from above the side, over its end, to beyond it."""
    model, q = make_model(Sphere(0.1), Box((0.5,) * dim), dim=dim), upright(dim, 0.0, 0.0)
    before, after = [compute_contacts(model, at(dim, (0.5 + step, 0.55), (0.0, 0.0)), q) for step in (-1e-9, 1e-9)]
    np.testing.assert_allclose(after.gap, before.gap, atol=1e-8)
    np.testing.assert_allclose(after.n, before.n, atol=1e-7)


# --- boxes


@pytest.mark.gpu
@DIMS
def test_a_box_flush_on_another_stands_on_all_its_corners(dim: int) -> None:
    """This holds although each corner is as near to the neighbouring side, in which its depth is 0."""
    model, q = make_model(Box((0.5,) * dim), Box((0.5,) * dim), dim=dim), upright(dim, 0.0, 0.0)
    for x in (at(dim, (0.0, 0.99), (0.0, 0.0)), at(dim, (0.3, 1.29), (0.3, 0.3))):  # also with rounding
        c = compute_contacts(model, x, q)
        carries = c.gap < 0
        assert set(c.kind[carries].tolist()) == {CORNER}
        assert carries.sum() == 2 * 2 ** (dim - 1)  # for either box
        np.testing.assert_allclose(c.gap[carries], -0.01, atol=tolerance(1e-13, 1e-6))
        np.testing.assert_allclose(abs(c.n[carries, 1]), 1)


@DIMS
def test_shifted_boxes_stand_on_the_corners_that_are_over_the_other(dim: int) -> None:
    model, q = make_model(Box((0.5,) * dim), Box((0.5,) * dim), dim=dim), upright(dim, 0.0, 0.0)
    c = compute_contacts(model, at(dim, (0.2, 0.99), (0.0, 0.0)), q)
    places = (c.r_a + np.array(at(dim, (0.2, 0.99), (0.0, 0.0)))[c.body_a])[c.gap < 0]
    np.testing.assert_allclose(sorted(set(places[:, 0].round(12))), (-0.3, 0.5))


def test_a_box_rotated_on_another_stands_where_their_edges_cross() -> None:
    """They are rotated by 45 degrees: no corner is over the other box, and the edges cross in an octagon."""
    model = make_model(Box((0.5, 0.2, 0.5)), Box((0.5, 0.2, 0.5)), dim=3)
    half = np.pi / 8
    c = compute_contacts(model, [[0.0, 0.39, 0.0], [0.0, 0.0, 0.0]], [[np.cos(half), 0, np.sin(half), 0], [1, 0, 0, 0]])
    carries = c.gap < 0
    assert c.kind[carries].tolist() == [EDGES] * 8
    assert_equal_but_for_rounding(c.n[carries], [(0, 1, 0)] * 8)
    np.testing.assert_allclose(np.hypot(c.r_a[carries, 0], c.r_a[carries, 2]), 0.5 / np.cos(half), rtol=1e-12)


def test_two_edges_that_cross_touch_in_one_point() -> None:
    """One box stands on its edge, across an edge of the other box below."""
    model, half = make_model(Box((0.5, 0.2, 0.2)), Box((0.2, 0.2, 0.5)), dim=3), np.pi / 8
    x = [[0.05, 2 * 0.2 * np.sqrt(2) - 0.01, 0.02], [0.0, 0.0, 0.0]]
    c = compute_contacts(model, x, [[np.cos(half), np.sin(half), 0, 0], [np.cos(half), 0, 0, np.sin(half)]])
    carries = c.gap < 0
    assert c.kind[carries].tolist() == [EDGES]
    np.testing.assert_allclose(c.gap[carries], [-0.01], rtol=1e-10)
    assert_equal_but_for_rounding(c.n[carries], [(0, 1, 0)], ulps=64)
    assert_equal_but_for_rounding(c.r_a[carries], [(-0.05, -0.2 * np.sqrt(2), 0.0)], ulps=64, size=1.0)


# --- a capsule and a box


@DIMS
def test_a_capsule_on_a_box_lies_on_its_ends_and_where_it_leaves_the_side(dim: int) -> None:
    """One end is over the box, the other beyond its side."""
    model, q = make_model(Capsule(0.1, 0.5), Box((0.5,) * dim), dim=dim), upright(dim, 0.0, 0.0)
    c = compute_contacts(model, at(dim, (0.3, 0.59), (0.0, 0.0)), q)
    carries = c.gap < 0
    assert sorted(c.kind[carries].tolist()) == [BOX, ROUND]
    np.testing.assert_allclose(c.gap[carries], -0.01, rtol=1e-12)
    assert_equal_but_for_rounding(c.n[carries][:, :2], [(0, 1)] * 2)
    assert_equal_but_for_rounding(sorted(c.r_a[carries, 0]), (-0.5, 0.2), size=1.0)


@DIMS
def test_a_capsule_beside_a_corner_does_not_touch_it_from_within_the_side(dim: int) -> None:
    """Its end is over the side, nearer to the corner than the radius; only the side pushes."""
    model, q = make_model(Capsule(0.1, 0.5), Box((0.5,) * dim), dim=dim), upright(dim, np.pi / 2, 0.0)
    c = compute_contacts(model, at(dim, (0.46, 1.09), (0.0, 0.0)), q)
    carries = c.gap < 0
    assert c.kind[carries].tolist() == [BOX]
    assert_equal_but_for_rounding(c.n[carries][:, :2], [(0, 1)])


@DIMS
def test_inactive_candidates_are_far_and_have_no_derivative(dim: int) -> None:
    model, q = make_model(Box((0.5,) * dim), Box((0.5,) * dim), dim=dim), upright(dim, 0.1, 0.3)
    x, turns = leaf(at(dim, (0.0, 3.0), (2.9, 0.0))), leaf(q)
    gap, frame = measure(model, x, turns)
    far = gap.data == FAR
    assert far.any()
    np.testing.assert_array_equal(frame.data[far], np.tile([*first(dim), *[0.0] * (2 * dim)], (far.sum(), 1)))
    weights = leaf(far.astype(float))
    adj_x, adj_q = grad((gap * weights).sum() + (frame * weights[:, None]).sum(), (x, turns))
    assert not adj_x.data.any()
    assert not adj_q.data.any()
