"""Estimates of an unknown that recordings share, from each of them alone, by one Gauss-Newton step.

Recording i gets an unknown d_i of its own, the difference of its value from that of the first recording. With the
derivatives J_i of its residuals r_i by all unknowns, and k the shared one, the step solves

    [ G    B ] [ step ]     [ g ]       G = sum_i J_i^T J_i    B_i = J_i^T J_i e_k          g = sum_i J_i^T r_i
    [ B^T  C ] [  d   ] = - [ c ] ,                            C_ii = e_k^T J_i^T J_i e_k   c_i = e_k^T J_i^T r_i

which is solved for d by the complement of G. Priors and other terms count in G and g alone, and not for e_k: recordings
are asked without what is known of k beforehand, whose pull would differ between them. The test of d = 0 is a score test
(Rao 1948). It holds for independent residuals, so it is made of those that whiten_series makes so, too. A
parameter that is unknown in each recording gets its values by the same step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .series import Series
from .uncertainty import Uncertainty
from .white_series import whiten_series

Array = np.ndarray[Any, Any]

TOLD = 1e-6
"""Part of the information about an unknown, below which a recording does not tell it, or not apart from others."""


@dataclass(frozen=True)
class Estimates:
    """Estimates of an unknown from each recording, as changes of theta."""

    changes: Array
    """Changes [n] from the value, or the values, at the optimum."""
    covariance: Array
    """Covariance [n, n], up to one that all of them share."""
    freedom: float
    """Degrees of freedom of its scale, which the residuals tell."""


class Recordings:
    """The residuals of several recordings, prepared to tell what each one finds."""

    def __init__(self, uncertainty: Uncertainty, series: tuple[Series, ...], doubt: float = 0.0) -> None:
        """Orthonormal combinations of the unknowns take the place of these, so that squares lose no digits.

        Args:
            series: those of the uncertainty, or these made independent.
            doubt: standard error of the logarithm of the variances of what they tell, by their noise's memory.
        """
        self.known = np.flatnonzero(np.isfinite(uncertainty.standard.values))
        self._freedom, self._doubt = uncertainty.standard.freedom, doubt
        begin = sum([each.there.size for each in uncertainty.series])
        self._others = uncertainty.residuals[begin:]
        slopes = uncertainty.jacobian[begin:, self.known]
        series = tuple([each for each in series if each.there.any()])
        rows = [np.where(each.there[..., None], each.jacobian[..., self.known], 0.0) for each in series]
        self._values = [np.where(each.there, each.residuals, 0.0).reshape(-1) for each in series]
        whole = np.concatenate([*[each.reshape(-1, self.known.size) for each in rows], slopes])
        basis, mixing = np.linalg.qr(whole)
        self._mixing, self._unmixing = mixing, np.linalg.inv(mixing)
        ends = np.cumsum([each.size for each in self._values])
        *self._parts, self._slopes = np.split(basis, ends)
        self._information = np.array([part.T @ part for part in self._parts])
        self._scores = np.array([part.T @ each for part, each in zip(self._parts, self._values, strict=True)])

    def estimate(self, unknown: int) -> Estimates | None:
        """Estimate an unknown, by its place in theta, from each recording.

        None where fewer than two tell it, or where the estimates would leave no residuals that tell their errors.
        """
        place = np.flatnonzero(self.known == unknown)
        if not place.size:
            return None
        direction = self._mixing[:, place[0]]
        about = self._information @ direction  # [n, p]
        own = about @ direction
        told = np.flatnonzero(own > TOLD * own.sum())
        if not 2 <= told.size <= self._freedom:
            return None
        others = told[1:]
        beyond = self._slopes - np.outer(self._slopes @ direction, self._unmixing[place[0]])
        G = self._information.sum(axis=0) + beyond.T @ beyond
        coupling = about[others].T  # B
        unit = np.sqrt(own[others])
        if np.linalg.eigvalsh(G)[0] < TOLD:  # it would be the identity with all priors
            return None
        complement = np.diag(own[others]) - coupling.T @ np.linalg.solve(G, coupling)
        if np.linalg.eigvalsh(complement / np.outer(unit, unit))[0] < TOLD:
            return None
        inverse = np.linalg.inv(complement)
        alone = np.linalg.solve(G, self._scores.sum(axis=0) + beyond.T @ self._others)
        differences = -inverse @ (self._scores[others] @ direction - coupling.T @ alone)
        step = -alone - np.linalg.solve(G, coupling @ differences)
        moved = np.repeat(step[None], len(own), axis=0)
        moved[others] += differences[:, None] * direction
        variance, freedom = self._measure(moved, beyond, len(others))
        changes = self._unmixing[place[0]] @ step + np.append(0.0, differences)
        return Estimates(changes, np.pad(variance * inverse, (1, 0)), freedom)

    def refine(self, unknowns: Array) -> Estimates:
        """Estimate known unknowns, by their places in theta, as they are, by the same step."""
        rows = self._unmixing[np.searchsorted(self.known, unknowns)]
        score = self._scores.sum(axis=0) + self._slopes.T @ self._others
        variance, freedom = self._measure(np.repeat(-score[None], len(self._parts), axis=0), self._slopes, 0)
        return Estimates(-rows @ score, variance * rows @ rows.T, freedom)

    def _measure(self, steps: Array, slopes: Array, taken: int) -> tuple[float, float]:
        """Measure the variance of the residuals that steps [n, p] leave in the recordings, and its degrees of freedom.

        Those before them hold what differs between recordings, and would take it for noise. `slopes`: derivatives of
        the other residuals; `taken`: number of unknowns that only the steps have.
        """
        left = [each + part @ step for each, part, step in zip(self._values, self._parts, steps, strict=True)]
        left.append(self._others + slopes @ steps[0])
        freedom = self._freedom - taken
        square = sum([float(each @ each) for each in left])
        return square / freedom, 1 / (1 / freedom + self._doubt**2 / 2)


def prepare_recordings(uncertainty: Uncertainty) -> tuple[Recordings, ...]:
    """Prepare the residuals as they are and, where noise has a memory, made independent."""
    plain = Recordings(uncertainty, uncertainty.series)
    white, doubt = whiten_series(uncertainty.series)
    return (plain, Recordings(uncertainty, white, doubt)) if doubt else (plain,)
