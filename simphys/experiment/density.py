"""Density of bodies on a regular grid of cells, a smooth function of their positions.

    rho_c = sum over bodies of m w_c(x) / h^dim           w_c(x) = product over the axes of B((x - origin)/h - c - 1/2)

m mass [kg], h the edge of a cell [m], B the quadratic B-spline, so that a body is shared out to 3 cells an axis, with
weights that add up to 1. What falls outside of the grid does not count. Adjoint, with g_c = adj_rho_c:

    adj_x = m / h^dim sum over cells of g_c grad w_c(x)       adj_m = 1 / h^dim sum over cells of g_c w_c(x)

Source: the B-splines of numerics/bspline.py; the density as a target is that of Huang et al. 2021 (PlasticineLab).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from simphys.autograd import Context, Function, Tensor
from simphys.autograd.errors import InputError

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Cells:
    """A regular grid."""

    counts: tuple[int, ...]
    """Along each axis."""
    spacing: float
    """Edge of a cell [m]."""
    origin: tuple[float, ...]
    """The first cell's lower corner [m]."""


class Density(Function):
    """Density [counts] in cells of bodies at position [n, dim] with mass [n]."""

    @staticmethod
    def forward(ctx: Context, cells: Cells, position: Tensor, mass: Tensor) -> Array:
        ctx.cells = cells
        ctx.save_for_backward(position, mass)
        density = np.zeros(cells.counts, position.dtype)
        for at, seen, weight, _ in _shares(cells, position.data):
            np.add.at(density, at, (mass.data * weight)[seen])
        return density

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Any, ...]:
        position, mass = ctx.saved_tensors
        adj_position, adj_mass = np.zeros(position.shape, position.dtype), np.zeros(mass.shape, mass.dtype)
        for at, seen, weight, slope in _shares(ctx.cells, position.data):
            g = adj.data[at]
            adj_position[seen] += (g * mass.data[seen])[:, None] * slope[seen]
            adj_mass[seen] += g * weight[seen]
        return None, adj_position, adj_mass

    @staticmethod
    def jvp(ctx: Context, _: None, dposition: Array, dmass: Array) -> Array:
        position, mass = ctx.saved_tensors
        ddensity = np.zeros(ctx.cells.counts, position.dtype)
        for at, seen, weight, slope in _shares(ctx.cells, position.data):
            moved = mass.data * (slope * dposition).sum(axis=1) + weight * dmass
            np.add.at(ddensity, at, moved[seen])
        return ddensity


def _shares(cells: Cells, position: Array) -> Iterator[tuple[tuple[Array, ...], Array, Array, Array]]:
    """For each of the 3^dim cells that a body sees: the indices of those on the grid, and which bodies these are of;

    w_c / h^dim of all bodies [n], and its derivative by their positions [n, dim].
    """
    dim, spacing = len(cells.counts), cells.spacing
    place = (position - np.asarray(cells.origin, position.dtype)) / spacing - 0.5  # from the first cell's middle
    first = np.floor(place - 0.5)
    f = place - first
    w = np.stack([0.5 * (1.5 - f) ** 2, 0.75 - (f - 1) ** 2, 0.5 * (f - 0.5) ** 2])
    s = np.stack([f - 1.5, -2 * (f - 1), f - 0.5]) / spacing
    axes = range(dim)
    for offset in product(range(3), repeat=dim):
        index = first.astype(np.int64) + offset
        seen = np.all((index >= 0) & (index < cells.counts), axis=1)
        of = np.stack([w[offset[d], :, d] for d in axes], axis=1)
        slope = np.stack([_product(of, s[offset[d], :, d], d) for d in axes], axis=1)
        yield tuple(index[seen].T), seen, of.prod(axis=1) / spacing**dim, slope / spacing**dim


def _product(factors: Array, instead: Array, axis: int) -> Array:
    """Multiply the factors [n, dim], with another one along an axis."""
    others: Array = np.delete(factors, axis, axis=1).prod(axis=1)
    return others * instead


def read(file: str | Path, counts: tuple[int, ...]) -> Array:
    """The density of each of so many cells [counts] from text. Errors: InputError where there are not as many."""
    constraint = f"a density for each of {' x '.join(map(str, counts))} cells"
    try:
        values = np.loadtxt(file, comments=("%", "#"), ndmin=1)
    except OSError as error:
        raise InputError(str(file), constraint, error.strerror or str(error), "Correct the path.") from error
    except ValueError as error:
        raise InputError(str(file), constraint, str(error), "Give numbers, as many in each row.") from error
    if values.size != np.prod(counts) or not np.isfinite(values).all():
        raise InputError(str(file), constraint, f"{np.isfinite(values).sum()} numbers", "Correct the file, or cells.")
    return values.reshape(counts)
