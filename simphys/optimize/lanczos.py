"""Lanczos: the directions in which a large symmetric positive semidefinite matrix A acts most, from products A v alone.

After k products A V = V T + beta v_{k+1} e_k^T, with an orthonormal basis V and a tridiagonal T. By Nystroem

    A V T^-1 V^T A        with  A V = [V v_{k+1}] [T; beta e_k^T]

is a lower bound of A: their difference is positive semidefinite. It grows with every product, and ends as A.
Source: Parlett 1998, The Symmetric Eigenvalue Problem, 13. All of the basis is made orthogonal, twice, in each product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

NEGLIGIBLE = 1e-12
"""Length of a new direction, relative to the largest eigenvalue, below which the basis holds all that it leads to."""


class Lanczos:
    """Basis of a symmetric positive semidefinite matrix [p, p], which grows with each product."""

    def __init__(self, multiply: Callable[[Array], Array], size: int, *, seed: int = 0) -> None:
        self._multiply, self._size = multiply, size
        self._random = np.random.default_rng(seed)
        self._basis: list[Array] = [self._new_direction([])]
        self._diagonal: list[float] = []
        self._beside: list[float] = []
        self._rounding = 0.0

    @property
    def products(self) -> int:
        """Number of products so far."""
        return len(self._diagonal)

    @property
    def complete(self) -> bool:
        """True if the basis spans the whole space."""
        return self.products == self._size

    def extend(self) -> None:
        """Multiply once more."""
        new = np.asarray(self._multiply(self._basis[-1]), float)
        parts = [float(each @ new) for each in self._basis]
        self._diagonal.append(parts[-1])
        self._rounding = max(self._rounding, *np.abs([0.0, *parts[:-2]]))  # these are 0 but for rounding
        for each in 2 * self._basis:
            new = new - (each @ new) * each
        length = float(np.linalg.norm(new))
        if self.complete or length <= NEGLIGIBLE * max(self._diagonal):
            self._beside.append(0.0)
            if not self.complete:
                self._basis.append(self._new_direction(self._basis))
        else:
            self._beside.append(length)
            self._basis.append(new / length)

    def bound(self, products: int | None = None) -> tuple[Array, Array]:
        """Compute eigenvalues [k], the largest first, and eigenvectors [p, k] of the lower bound of A.

        It is that of the first `products`, all by default. What may be rounding of the products is left out.
        """
        count = self.products if products is None else products
        beside = np.array(self._beside[:count])
        projected = np.diag(self._diagonal[:count]) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1)
        values, vectors = np.linalg.eigh(projected)
        least = max(self._rounding, NEGLIGIBLE * values[-1])
        there = values > least
        root = np.vstack([vectors * values, beside[-1] * vectors[-1:]])[:, there] / np.sqrt(values[there])
        known = np.array(self._basis[: count + 1])
        directions, lengths, _ = np.linalg.svd(root[: len(known)], full_matrices=False)
        there = lengths**2 > least
        return lengths[there] ** 2, known.T @ directions[:, there]

    def _new_direction(self, basis: list[Array]) -> Array:
        """Draw a direction that is orthogonal to the basis."""
        new = self._random.standard_normal(self._size)
        for each in 2 * basis:
            new = new - (each @ new) * each
        return np.asarray(new / np.linalg.norm(new))
