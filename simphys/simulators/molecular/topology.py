"""Molecules: atoms that bonds and angles link, and their start positions in a periodic box."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.simulator import Array


def link(bonds: Array, angles: Array) -> Array:
    """List the pairs of atoms that bonds and angles link, [m, 2]."""
    return np.concatenate([bonds.reshape(-1, 2), angles[:, :2].reshape(-1, 2), angles[:, 1:].reshape(-1, 2)])


def _graph(links: Array, atoms: int) -> Any:
    from scipy.sparse import coo_array  # only where it is used

    return coo_array((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(atoms, atoms)).tocsr()


def number_molecules(links: Array, atoms: int) -> Array:
    """Number the molecules from 1: that of each atom, [atoms]."""
    from scipy.sparse.csgraph import connected_components  # only where it is used

    found: Array = connected_components(_graph(links, atoms), directed=False)[1] + 1
    return found


def unwrap(position: Array, links: Array, box: tuple[float, ...]) -> Array:
    """Move atoms by lengths of the box, so that atoms that are linked lie beside each other."""
    from scipy.sparse.csgraph import breadth_first_order  # only where it is used

    if not len(links):
        return position
    atoms, found = len(position), position.copy()
    _, first = np.unique(number_molecules(links, atoms), return_index=True)
    roots = np.stack([np.full(len(first), atoms), first], axis=1)  # from an atom that is not there to each molecule
    graph = _graph(np.concatenate([links, roots]), atoms + 1)
    order, before = breadth_first_order(graph, atoms, directed=False)
    period = np.where(np.isfinite(box), box, 0.0)
    for atom in order[1:]:
        if before[atom] != atoms:
            steps = (found[atom] - found[before[atom]]) / np.where(period > 0, period, 1.0)
            found[atom] -= period * np.round(steps)
    return found


def find_lengths(position: Array, links: Array) -> Array:
    """Distances [m] of the two atoms of each link."""
    d = position[links[:, 0]] - position[links[:, 1]]
    return np.asarray(np.sqrt((d * d).sum(axis=1)))


def find_angles(position: Array, angles: Array) -> Array:
    """Angles [rad] at the middle atom of each triple."""
    u, w = (position[angles[:, end]] - position[angles[:, 1]] for end in (0, 2))
    cosine = (u * w).sum(axis=1) / np.sqrt((u * u).sum(axis=1) * (w * w).sum(axis=1))
    return np.asarray(np.arccos(np.clip(cosine, -1, 1)))
