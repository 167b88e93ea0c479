"""Neighbours of particles in a box: how many there are within reach, the nearest two, and room in lists of them.

A model with lists has `box`, `cutoff`, `skin` and `neighbours`, the room in a list.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.autograd.errors import InputError

from .arrays import Array


def build_tree(position: Array, box: tuple[float, ...]) -> Any:
    """Build a tree of positions in a box, for searches of neighbours."""
    from scipy.spatial import cKDTree  # only where it is used

    periodic = np.isfinite(box)
    lengths = np.where(periodic, box, 1.0)
    low = np.where(periodic, 0.0, position.min(axis=0))  # trees of boxes take no negative numbers
    inside = np.where(periodic, position - lengths * np.floor(position / lengths), position - low)
    inside = np.where(periodic & (inside >= lengths), 0.0, inside)  # by rounding
    return cKDTree(inside, boxsize=np.where(periodic, box, 0.0))


def count_most(position: Array, box: tuple[float, ...], reach: float) -> int:
    """Count the neighbours within reach of the particle that has most."""
    tree = build_tree(position, box)
    return int(tree.query_ball_point(tree.data, reach, return_length=True).max()) - 1


def find_nearest(position: Array, box: tuple[float, ...], molecule: Array | None = None) -> tuple[float, int, int]:
    """Find the two particles that are nearest to each other: their distance, inf for a single one, and their numbers.

    Particles of one molecule do not count, if molecules are given.
    """
    tree = build_tree(position, box)
    largest = 1 if molecule is None else int(np.bincount(molecule).max())
    distances, others = tree.query(tree.data, k=np.arange(2, max(largest, 1) + 2))
    if molecule is not None:
        inside = others < len(position)
        same = molecule[np.where(inside, others, 0)] == molecule[:, None]
        distances = np.where(inside & same, np.inf, distances)
    one, place = np.unravel_index(distances.argmin(), distances.shape)
    distance, other = float(distances[one, place]), int(others[one, place])
    return distance, int(one), other if np.isfinite(distance) else int(one)


def require_room(model: Any, position: Array, factor: float, what: str) -> None:
    """Raise InputError if a list has no room for the neighbours of a particle; the remedy gives `factor` times it."""
    most = count_most(position, model.box, model.cutoff + model.skin)
    if most > model.neighbours:
        constraint = f"room for the {most} neighbours of {what} at the start, and some more"
        remedy = f"Set simulator.neighbours to {int(factor * most)}, or leave it out."
        raise InputError("simulator.neighbours", constraint, f"{model.neighbours}", remedy)


def advise_room(model: Any, position: Array, what: str) -> str:
    """Name a list of neighbours that is full; '' if there is none."""
    most = count_most(position, model.box, model.cutoff + model.skin) if np.isfinite(position).all() else 0
    if most <= model.neighbours:
        return ""
    room = f"{what} has {most} neighbours within cut-off and skin, and room for {model.neighbours}"
    return f"{room}: raise `neighbours`."
