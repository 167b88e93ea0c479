"""Distances between shapes, or depths of their overlap, at one moment and on the host, for checks of a scene.

Each shape is a core, the points c + sum_k s_k g_k with |s_k| <= 1 (a point, a segment or a box), together with all
points within a radius of it. Separate cores have the distance min |c_a - c_b + G s| over all s, bounded least squares.
Others overlap by their least overlap along a normal of a side, or along a common normal of two edges (separating axis
theorem; Gottschalk, Lin and Manocha 1996, OBBTree).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from simphys.simulator import Array

from ..shapes import Plane, Shape, core_of


class Placed(NamedTuple):
    """Core of a shape at the pose of its body."""

    centre: Array
    """Centre c [m], [dim]."""
    edges: Array
    """Half edges g_k [m], [k, dim]; k = 0 for a point."""
    radius: float
    """Radius around the core [m]."""


def place_core(shape: Shape, position: Array, turn: Array) -> Placed:
    """Return the core of a shape of a body at `position` [dim] with rotation matrix `turn` [dim, dim]."""
    centre, half, radius = core_of(shape, len(position))
    return Placed(position + turn @ centre, np.diag(half)[half > 0] @ turn.T, radius)


def gap(one: Iterable[Placed], other: Iterable[Placed]) -> float:
    """Return the smallest gap between two groups of cores [m]; a negative gap is the depth of an overlap."""
    return min([_gap(a, b) for a, b in itertools.product(one, other)], default=np.inf)


def gap_to_plane(own: Iterable[Placed], plane: Plane) -> float:
    """Return the smallest gap between cores and a plane [m]."""
    normal = np.array(plane.normal)
    return min(
        [float(normal @ each.centre - abs(each.edges @ normal).sum() - each.radius) - plane.offset for each in own],
        default=np.inf,
    )


def _gap(a: Placed, b: Placed) -> float:
    apart, edges = b.centre - a.centre, np.concatenate([a.edges, b.edges])
    distance = _distance(apart, edges)
    if distance <= 1e-9 * (abs(apart).max() + abs(edges).max(initial=0.0)):
        distance = -min([abs(edges @ n).sum() - abs(apart @ n) for n in _normals(edges)], default=0.0)
    return float(distance - a.radius - b.radius)


def _distance(apart: Array, edges: Array) -> float:
    """Return the minimum of |apart + edges^T s|."""
    if not len(edges):
        return float(np.linalg.norm(apart))
    from scipy.optimize import lsq_linear

    return float(np.sqrt(2 * lsq_linear(edges.T, -apart, (-1, 1), method="bvls", tol=1e-14).cost))


def _normals(edges: Array) -> list[Array]:
    """Return unit normals: of each edge in the plane, of each pair of edges in space."""
    if edges.shape[1] == 2:
        across = [np.array([-edge[1], edge[0]]) for edge in edges]
    else:
        across = [np.cross(*pair) for pair in itertools.combinations(edges, 2)]
    lengths = [np.linalg.norm(each) for each in across]
    longest = max(lengths, default=0.0)
    return [each / length for each, length in zip(across, lengths, strict=True) if length > 1e-9 * longest]
