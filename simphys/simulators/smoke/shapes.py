"""Signed distances of balls and ellipsoids on a grid, as differentiable functions of position and size.

    phi = (q - 1) / |grad q|,     q = |(x - c) / r|,     |grad q| = |(x - c) / r^2| / q

c centre, r radii along the axes [m]. For a ball phi = |x - c| - r. With other radii phi is 0 with slope 1 at the
surface, and is the distance only near it, which suffices for volume penalization. Source: Taubin 1991.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from simphys.simulator import Array

from .model import Smoke
from .obstacle import LAYER


def distance(model: Smoke, centre: Any, radii: Any) -> Any:
    """Compute the signed distance of the cell centres to an ellipsoid, [*cells] [m], negative inside.

    centre [dim] and radii, [dim] or one for all axes, are numbers or Tensors. With a Tensor the result is a Tensor, so
    that `Params.obstacle` is a function of a shape. `numpy.minimum` unites shapes.
    """
    tiny = (1e-6 * model.spacing) ** 2  # avoids division by 0 at the centre
    ball = np.shape(radii) == () if not hasattr(radii, "shape") else radii.shape == ()
    q, slope = 0.0, 0.0
    for axis, x in enumerate(coordinates(model)):
        square = (x - centre[axis]) ** 2 + tiny
        r = radii if ball else radii[axis]
        q, slope = q + square / r**2, slope + square / r**4
    return (np.sqrt(q) - 1) * np.sqrt(q / slope)


def fraction_inside(distance: Array, spacing: float) -> Array:
    """Compute the fraction of a shape at a point, like chi of obstacle.py."""
    t: Array = np.clip(0.5 - distance / (LAYER * spacing), 0, 1)
    return t * t * (3 - 2 * t)


def coordinates(model: Smoke, component: int | None = None) -> list[Array]:
    """Compute the coordinates [m] of cell centres, or of a velocity component's entries: an array for each axis."""
    counts = model.cells if component is None else model.faces
    on_faces = model.grid == "staggered"
    axes = [np.arange(n) + (0.0 if on_faces and axis == component else 0.5) for axis, n in enumerate(counts)]
    return [model.spacing * x for x in np.meshgrid(*axes, indexing="ij")]


def connected(free: Array, boundaries: Sequence[str]) -> Array:
    """Number the connected part of each free cell, from 1; cells that are not free get 0.

    Cells are connected through faces, also across periodic sides.
    """
    from scipy import ndimage
    from scipy.sparse import coo_array, csgraph

    parts, count = ndimage.label(free)
    joined = [np.zeros((2, 0), np.int64)]
    for axis in range(free.ndim):
        if boundaries[2 * axis] == "periodic":
            ends = np.stack([parts.take(0, axis).ravel(), parts.take(-1, axis).ravel()])
            joined.append(ends[:, (ends > 0).all(axis=0)])
    pairs = np.concatenate(joined, axis=1)
    graph = coo_array((np.ones(pairs.shape[1], bool), (pairs[0], pairs[1])), shape=(count + 1, count + 1))
    return csgraph.connected_components(graph, directed=False)[1][parts].astype(np.int64)
