"""Pairs of features that may touch: a list made once, of which the motion activates some.

    plane     sphere: its centre        capsule: both ends         box: its corners
    sphere    sphere, capsule: points and segments with radii      box: its centre
    capsule   capsule: both segments    box: both ends, and against the segment the corners, in space the edges
    box       box: corners of each against the other, in space edges of both that cross

A capsule that lies on a side of a box, and a box that stands on another, touch with several features, so that they come
to rest. Two parallel capsules, or a capsule in the corner of others, touch in one point per pair.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from simphys.simulator import Array

from ..joints.joint import WORLD
from ..shapes import Box, Capsule, Plane, Shape, Sphere, core_of
from . import feature
from .feature import BOX, CORNER, EDGES, PLANE, ROUND


class Feature(NamedTuple):
    """A part of a box, with a radius about it, in the body's frame; feature.py reads it."""

    centre: Array
    """Centre o of the box [m], [dim]."""
    half: Array
    """Half extents h [m], [dim]."""
    signs: Array
    """Signs sigma of the sides, [dim]."""
    radius: float
    """Radius rho [m]."""

    def on_sides(self, *signs: float) -> Feature:
        """Return the part of it on these sides."""
        return self._replace(signs=np.array(signs, float))

    def numbers(self) -> list[float]:
        return [*self.centre, *self.half, *self.signs, self.radius]


class Candidate(NamedTuple):
    """Two features that may touch."""

    kind: int
    body_a: int
    a: Feature
    body_b: int
    b: Feature


@dataclass(frozen=True)
class Candidates:
    """Pairs of features that may touch, M of them."""

    kind: Array
    """Kind of each pair, see pair.py, [M]."""
    body_a: Array
    """Body of the first feature, [M]."""
    body_b: Array
    """Body of the second feature, [M]; -1 for the world."""
    constants: Array
    """Both features, as feature.py reads them, [M, 2 (3 dim + 1)]."""

    @property
    def count(self) -> int:
        """Number of pairs, M."""
        return len(self.kind)

    @cached_property
    def share(self) -> Array:
        """Share of each body in a property of the pair, such as friction: 1/2, or 1 against the world, [M]."""
        return np.where(self.body_b == WORLD, 1.0, 0.5)

    @cached_property
    def kinds(self) -> frozenset[int]:
        """Kinds that occur."""
        return frozenset(self.kind.tolist())


def list_pairs(bodies: int, fixed: Collection[int], apart: Iterable[Collection[int | None]]) -> list[tuple[int, int]]:
    """List the pairs (a, b) of bodies that may touch, a < b: not both of them fixed, and none that is kept apart."""
    never = {frozenset(pair) for pair in apart}
    every = itertools.combinations(range(bodies), 2)
    return [pair for pair in every if frozenset(pair) not in never and not {*pair} <= {*fixed}]


def find_candidates(
    dim: int,
    shapes: Sequence[Sequence[Shape]],
    planes: Sequence[Plane],
    *,
    fixed: Container[int],
    pairs: Iterable[tuple[int, int]],
) -> Candidates:
    """Pair the shapes of all moving bodies with all planes, and those of `pairs` of bodies with each other."""
    found = [
        candidate
        for body in range(len(shapes))
        if body not in fixed
        for shape, plane in itertools.product(shapes[body], planes)
        for candidate in _plane_candidates(body, shape, plane, dim)
    ]
    for a, b in pairs:
        for one, other in itertools.product(shapes[a], shapes[b]):
            ordered = sorted([(one, a), (other, b)], key=lambda each: _ORDER.index(type(each[0])))
            found += _pair_candidates(*ordered[0], *ordered[1], dim)
    numbers = [[*each.a.numbers(), *each.b.numbers()] for each in found]
    return Candidates(
        np.array([each.kind for each in found], np.int32),
        np.array([each.body_a for each in found], np.int32),
        np.array([each.body_b for each in found], np.int32),
        np.array(numbers, float).reshape(len(found), 2 * feature.numbers(dim)),
    )


_ORDER = (Sphere, Capsule, Box)


def _plane_candidates(body: int, shape: Shape, plane: Plane, dim: int) -> Iterator[Candidate]:
    side = Feature(np.array(plane.normal), np.zeros(dim), np.zeros(dim), plane.offset)
    for point in _points(shape, dim):
        yield Candidate(PLANE, body, point, WORLD, side)


def _pair_candidates(one: Shape, a: int, other: Shape, b: int, dim: int) -> Iterator[Candidate]:
    """Yield the candidates of two shapes; `one` comes before `other` in _ORDER."""
    first, second = _whole_feature(one, dim), _whole_feature(other, dim)
    if isinstance(one, Box):
        yield from [Candidate(CORNER, a, corner, b, second) for corner in _points(one, dim)]
        yield from [Candidate(CORNER, b, corner, a, first) for corner in _points(other, dim)]
        for edges in itertools.product(_edges(first), _edges(second)):
            yield Candidate(EDGES, a, edges[0], b, edges[1])
    elif isinstance(other, Box):
        yield from [Candidate(BOX, a, point, b, second) for point in _points(one, dim)]
        if isinstance(one, Capsule):
            yield from [Candidate(ROUND, a, first, b, each) for each in (*_points(other, dim), *_edges(second))]
    else:
        yield Candidate(ROUND, a, first, b, second)


def _whole_feature(shape: Shape, dim: int) -> Feature:
    core = core_of(shape, dim)
    return Feature(core.centre, core.half, np.zeros(dim), core.radius)


def _points(shape: Shape, dim: int) -> list[Feature]:
    """Return the centre of a sphere, the ends of a capsule, or the corners of a box."""
    whole = _whole_feature(shape, dim)
    choices = [(-1, 1) if extent else (0,) for extent in whole.half]
    return [whole.on_sides(*signs) for signs in itertools.product(*choices)]


def _edges(box: Feature) -> list[Feature]:
    """Return the edges of a box in space; none in the plane, where a segment on a side touches it with an end."""
    dim = len(box.half)
    edge_signs = [[(0,) if axis == k else (-1, 1) for k in range(dim)] for axis in range(dim if dim == 3 else 0)]
    return [box.on_sides(*signs) for choices in edge_signs for signs in itertools.product(*choices)]
