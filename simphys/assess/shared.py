"""Estimates of an unknown that recordings share, from each of them alone, by one Gauss-Newton step.

Recording i gets an unknown d_i of its own, the difference of its value from that of the first recording. With the
derivatives J_i of its residuals r_i by all unknowns, and k the shared one, the step solves

    [ G    B ] [ step ]     [ g ]       G = sum_i J_i^T J_i    B_i = J_i^T J_i e_k          g = sum_i J_i^T r_i
    [ B^T  C ] [  d   ] = - [ c ] ,                            C_ii = e_k^T J_i^T J_i e_k   c_i = e_k^T J_i^T r_i

which is solved for d by the complement of G. Its right-hand side is a sum over recordings, so that its covariance is a
sum of theirs, also where residuals are correlated in time. The test of d = 0 is a score test (Rao 1948).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys import optimize

from .uncertainty import Uncertainty

Array = np.ndarray[Any, Any]

TOLD = 1e-6
"""Part of the information about an unknown, below which a recording does not tell it, or not apart from others."""


@dataclass(frozen=True)
class Estimates:
    """Estimates of an unknown from each recording, as changes of theta."""

    changes: Array
    """Changes [n] from the value that they share."""
    covariances: tuple[Array, Array]
    """Covariances [n, n] of their differences from the first change: of independent residuals, and one that allows for
    residuals correlated in time."""


class Recordings:
    """The residuals of several recordings, prepared to tell what each one finds."""

    def __init__(self, uncertainty: Uncertainty) -> None:
        """Orthonormal combinations of the unknowns take the place of these, so that squares lose no digits."""
        self.known = np.flatnonzero(np.isfinite(uncertainty.standard.values))
        series = [each for each in uncertainty.series if each.there.any()]
        _, mixing = np.linalg.qr(uncertainty.jacobian[:, self.known])
        self._unmixing = np.linalg.inv(mixing)
        parts = [
            np.where(each.there[..., None], each.jacobian[..., self.known] @ self._unmixing, 0.0) for each in series
        ]
        self._mixing, self._parts, self._series = mixing, parts, series
        self._information = np.array([np.einsum("tsp,tsq->pq", part, part) for part in parts])
        self._scores = np.array(
            [np.einsum("tsp,ts->p", part, each.residuals) for part, each in zip(parts, series, strict=True)]
        )
        self._freedom = uncertainty.standard.freedom
        samples = sum([int(np.count_nonzero(each.there.any(axis=1))) for each in series])
        self._correction = samples / max(samples - self.known.size, 1)

    def estimate(self, unknown: int) -> Estimates | None:
        """Estimate an unknown, by its place in theta, from each recording; None where fewer than two tell it."""
        place = np.flatnonzero(self.known == unknown)
        if not place.size:
            return None
        direction = self._mixing[:, place[0]]
        about = self._information @ direction  # [n, p]
        own = about @ direction
        told = np.flatnonzero(own > TOLD * own.sum())
        if told.size < 2:
            return None
        others = told[1:]
        coupling = about[others].T  # B; G is the identity
        complement = np.diag(own[others]) - coupling.T @ coupling
        unit = np.sqrt(own[others])
        if np.linalg.eigvalsh(complement / np.outer(unit, unit))[0] < TOLD:
            return None
        maps = np.repeat(-coupling.T[None], len(own), axis=0)  # [n, n - 1, p]
        maps[others, np.arange(others.size)] += direction
        inverse = np.linalg.inv(complement)
        differences = -inverse @ np.einsum("nip,np->i", maps, self._scores)
        step = -self._scores.sum(axis=0) - coupling @ differences
        moved = np.repeat(step[None], len(own), axis=0)
        moved[others] += differences[:, None] * direction
        first, second = [np.pad(each, (1, 0)) for each in self._covariances(inverse, maps, moved)]
        return Estimates(self._unmixing[place[0]] @ step + np.append(0.0, differences), (first, second))

    def _covariances(self, inverse: Array, maps: Array, moved: Array) -> tuple[Array, Array]:
        """Covariances of the differences, by the residuals that the step leaves in each recording.

        Those before it hold what differs between recordings, and would take it for noise.
        """
        square, scatter = 0.0, np.zeros_like(inverse)
        for part, each, made, step in zip(self._parts, self._series, maps, moved, strict=True):
            left = np.where(each.there, each.residuals + part @ step, 0.0)
            square += float(np.sum(left**2))
            scatter = scatter + optimize.score_covariance(part @ made.T, left, each.there)
        variance = square / max(self._freedom - len(inverse), 1)
        return variance * inverse, self._correction * inverse @ scatter @ inverse
