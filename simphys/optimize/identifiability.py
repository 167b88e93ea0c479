"""Identifiability: unknowns that the data cannot tell apart, and standard errors of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from simphys.autograd.errors import InputError

_COLUMN_ERROR = {"f64": 1e-9, "f32": 1e-4}
"""Relative error of a column of the Jacobian: rounding (1e-16, 6e-8) amplified by long rollouts, with a margin."""
DETERMINE = "Tie some of them together, fix one (leave it out of the unknowns), or observe more."
"""Remedy for unknowns that cannot be told apart."""
_PARTICIPATION = 1e-2
"""Largest entry of a projector that may be an error of it."""


@dataclass(frozen=True)
class RankReport:
    """Rank of the Jacobian: the number of independent directions of the unknowns that the observations determine."""

    labels: tuple[str, ...]
    rank: int
    singular_values: np.ndarray
    """Singular values [p] of the Jacobian with columns of length one, largest first: 1 is ideal, 0 is undetermined."""
    unseen: tuple[str, ...]
    """Unknowns that change no observation at all."""
    confused: tuple[tuple[str, ...], ...]
    """Groups of unknowns that can change together without changing any observation."""

    @property
    def full(self) -> bool:
        """True if all unknowns can be told apart."""
        return self.rank == len(self.labels)

    def describe(self) -> str:
        """Describe the unknowns that cannot be told apart, by their names; empty if there are none."""
        found = [f"{', '.join(group)} can change together without any effect" for group in self.confused]
        if self.unseen:
            found.append(f"{', '.join(self.unseen)} change{'s' * (len(self.unseen) == 1)} no observation")
        return "; ".join(found)

    def require_full(self, hint: str = "") -> None:
        """Raise InputError with the names of the unknowns that cannot be told apart, if there are any.

        `hint`: a further remedy.
        """
        if self.full:
            return
        raise InputError(
            "unknowns",
            f"the data must determine all {len(self.labels)} unknowns (rank of the Jacobian at the start)",
            f"rank {self.rank}: {self.describe()}",
            f"{DETERMINE} {hint}".rstrip(),
        )


def rank_report(jacobian: np.ndarray, labels: Sequence[str], *, precision: Literal["f32", "f64"] = "f64") -> RankReport:
    """Find the unknowns that the observations determine, from the Jacobian [m, p] of the residuals at some theta.

    Columns are scaled to length one, so that units and scales do not matter. A singular value counts as zero below
    sqrt(p) times the relative error of a column in this precision, the largest value that this error can make of a
    zero. The projector onto the null space couples its unknowns to groups, however weakly: its entries are right to the
    error of the columns over the least singular value that counts (Davis and Kahan 1970).
    """
    jacobian = np.asarray(jacobian, dtype=np.float64)
    if not np.isfinite(jacobian).all():
        remedy = (
            "The motion is finite, but not stable: lower time.dt, see that times are in its unit "
            "(observations.time_unit), or choose other starts."
        )
        raise InputError("unknowns", "the Jacobian at the start must be finite", "NaN or infinity", remedy)
    lengths = np.linalg.norm(jacobian, axis=0)
    seen = lengths > 0
    scaled = jacobian / np.where(seen, lengths, 1.0)
    missing = np.zeros((max(0, len(labels) - len(scaled)), len(labels)))  # fewer observations than unknowns
    _, singular, rows = np.linalg.svd(np.vstack([scaled, missing]), full_matrices=False)
    error = np.sqrt(len(labels)) * _COLUMN_ERROR[precision]
    null, counted = rows[singular <= error], singular[singular > error]
    projector = np.where(np.outer(seen, seen), null.T @ null, 0.0)
    linked = np.abs(projector) > min(_PARTICIPATION, error / counted.min(initial=1.0))
    return RankReport(
        labels=tuple(labels),
        rank=len(labels) - len(null),
        singular_values=singular,
        unseen=tuple(label for label, visible in zip(labels, seen, strict=True) if not visible),
        confused=tuple(tuple(labels[i] for i in group) for group in _groups(linked)),
    )


@dataclass(frozen=True)
class StandardErrors:
    """Standard errors of theta, by linearization at the optimum."""

    values: np.ndarray
    """Standard errors [p] in theta's coordinates; NaN where there is none."""
    sigma: float
    """Estimated standard deviation of a whitened residual: near 1 if the stated noise is right."""
    notes: tuple[str, ...]
    """Reason why a value is NaN [p], else empty."""
    spread: np.ndarray
    """(J^T J)^-1 of the unknowns with a standard error [p, p], zero elsewhere; times sigma^2 it is the covariance."""
    freedom: int = 0
    """Degrees of freedom: residuals that count, less unknowns that no bound holds."""
    condition: float = np.nan
    """Condition number of the Jacobian with columns of length one, of the unknowns that no bound holds."""

    @property
    def covariance(self) -> np.ndarray:
        """Covariance of theta [p, p]; NaN for unknowns without a standard error."""
        return mark_unknown(self.sigma**2 * self.spread, self.values)


def standard_errors(jacobian: np.ndarray, residuals: np.ndarray, *, active: np.ndarray | None = None) -> StandardErrors:
    """Compute standard errors: sqrt of the diagonal of sigma^2 (J^T J)^-1, with sigma^2 = |r|^2 / (m - p).

    jacobian [m, p] and residuals [m] are those at the optimum; rows that are zero in both (missing samples) do not
    count in m. active [p] marks unknowns at a bound (active_bounds). They have no standard error; those of the others
    hold with these fixed. The residuals are assumed independent: with noise correlated in time, true errors are larger.
    """
    count = jacobian.shape[1]
    held = np.zeros(count, dtype=bool) if active is None else np.asarray(active, dtype=bool)
    values, notes = np.full(count, np.nan), np.where(held, "at a bound", "").astype(object)
    inverse, condition = np.zeros((count, count)), np.nan
    free = np.flatnonzero(~held)
    freedom = int(np.sum((residuals != 0) | (jacobian != 0).any(axis=1))) - free.size
    sigma = float(np.sqrt(residuals @ residuals / freedom)) if freedom > 0 else np.nan
    if freedom <= 0:
        notes[free] = "no more observations than unknowns"
    elif free.size > 0:
        columns = jacobian[:, free]
        report = rank_report(columns, [str(i) for i in free])
        lost = {int(label) for group in (*report.confused, report.unseen) for label in group}
        notes[free[sorted(lost)]] = "not told apart by the data"
        lengths = np.linalg.norm(columns, axis=0)
        units = np.where(lengths > 0, lengths, 1.0)
        spread = np.linalg.pinv(columns / units) / units[:, None]
        known = np.array([i not in lost for i in range(free.size)])
        inverse[np.ix_(free, free)] = np.where(np.outer(known, known), spread @ spread.T, 0.0)
        values[free] = np.where(known, sigma * np.linalg.norm(spread, axis=1), np.nan)
        largest, least = report.singular_values[0], report.singular_values[-1]
        condition = float(largest / least) if least > 0 else np.inf
    return StandardErrors(values, sigma, tuple(str(note) for note in notes), inverse, freedom, condition)


def mark_unknown(covariance: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Set rows and columns of a covariance [p, p] to NaN where there is no standard error, as in `values` [p]."""
    known = np.isfinite(values)
    return np.where(np.outer(known, known), covariance, np.nan)


def correlations(covariance: np.ndarray) -> np.ndarray:
    """Convert a covariance [p, p] to correlations, 1 on the diagonal."""
    errors = np.sqrt(np.diag(covariance))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.clip(covariance / np.outer(errors, errors), -1.0, 1.0)


def active_bounds(theta: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Mark the components of theta [p] at a bound, within 1e-6 of order one: trf stops slightly inside."""
    near = 1e-6 * np.maximum(1.0, np.abs(theta))
    return (theta - lower <= near) | (upper - theta <= near)


def _groups(linked: np.ndarray) -> list[list[int]]:
    """Connected components of a symmetric relation; elements without a link are left out."""
    left = set(np.flatnonzero(linked.any(axis=1)).tolist())
    groups = []
    while left:
        group, edge = set(), {min(left)}
        while edge:
            group |= edge
            edge = {int(j) for i in edge for j in np.flatnonzero(linked[i])} & left - group
        left -= group
        groups.append(sorted(group))
    return groups
