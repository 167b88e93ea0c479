"""Losses that outliers do not rule, and the errors of their minima.

With a whitened residual r the loss is rho(r), with psi = rho' and z = (r/d)^2:

    huber       r^2/2 up to |r| = d, d |r| - d^2/2 beyond       (Huber 1964)
    soft_l1     d^2 (sqrt(1 + z) - 1)                           (Charbonnier et al. 1997)
    cauchy      d^2/2 log(1 + z)
    student_t   (n + 1)/2 log(1 + r^2/n), n degrees of freedom  (Lange et al. 1989)

The minimum of sum rho(r) is an M-estimate. Its covariance is not s^2 (J^T J)^-1 with the loss as chi^2, in which a
single outlier counts in full, but (Huber 1981, section 7.6)

    C = k^2 [sum psi^2 / (m - p)] / mean(psi')^2 (J^T J)^-1,    k = 1 + p/m var(psi') / mean(psi')^2

with the Jacobian J of the residuals r themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

RobustKind = Literal["huber", "soft_l1", "cauchy", "student_t"]


@dataclass(frozen=True)
class RobustLoss:
    """One of these losses; `scale` is d, or n for student_t."""

    kind: RobustKind
    scale: float

    def rho(self, r: np.ndarray) -> np.ndarray:
        """Compute the loss of each residual."""
        d, z = self.scale, (r / self.scale) ** 2
        if self.kind == "huber":
            return np.where(np.abs(r) <= d, 0.5 * r * r, d * np.abs(r) - 0.5 * d * d)
        if self.kind == "soft_l1":
            return r * r / (np.sqrt(1 + z) + 1)  # = d^2 (sqrt(1 + z) - 1), also where z is small
        if self.kind == "cauchy":
            return 0.5 * d * d * np.log1p(z)
        return 0.5 * (d + 1) * np.log1p(r * r / d)

    def psi(self, r: np.ndarray) -> np.ndarray:
        """Compute the derivative of each loss."""
        d, z = self.scale, (r / self.scale) ** 2
        if self.kind == "huber":
            return np.clip(r, -d, d)
        if self.kind == "soft_l1":
            return r / np.sqrt(1 + z)
        return r / (1 + z) if self.kind == "cauchy" else (d + 1) * r / (d + r * r)

    def dpsi(self, r: np.ndarray) -> np.ndarray:
        """Compute the second derivative of each loss."""
        d, z = self.scale, (r / self.scale) ** 2
        if self.kind == "huber":
            return (np.abs(r) <= d).astype(float)
        if self.kind == "soft_l1":
            return (1 + z) ** -1.5
        return (1 - z) / (1 + z) ** 2 if self.kind == "cauchy" else (d + 1) * (d - r * r) / (d + r * r) ** 2

    def residual(self, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute a residual whose half square is the loss, with the sign of r; and its derivative."""
        found = np.sign(r) * np.sqrt(2 * self.rho(r))
        least = np.abs(r) < 1e-100  # both are proportional to r there
        slope = np.where(least, np.sqrt(self.dpsi(0 * r)), self.psi(r) / np.where(least, 1.0, found))
        return found, slope

    def inverse(self, found: np.ndarray) -> np.ndarray:
        """Return r >= 0 of what `residual` makes of it."""
        d, z = self.scale, (found / self.scale) ** 2
        with np.errstate(over="ignore"):  # of an outlier beyond all numbers
            if self.kind == "huber":
                return np.where(found <= d, found, 0.5 * (d * z + d))
            if self.kind == "soft_l1":
                return d * np.sqrt(z * (1 + 0.25 * z))
            return d * np.sqrt(np.expm1(z)) if self.kind == "cauchy" else np.sqrt(d * np.expm1(found**2 / (d + 1)))


def m_estimate_sigma(loss: RobustLoss, residuals: np.ndarray, unknowns: int) -> tuple[float, float]:
    """Compute what takes the place of sigma in the standard errors, and mean(psi').

    residuals [m]: those that count, without the loss. NaN with no more residuals than unknowns, or if mean(psi') <= 0,
    where most residuals are outliers.
    """
    count = residuals.size
    curvature = loss.dpsi(residuals)
    mean = float(curvature.mean()) if count else 0.0
    if count <= unknowns or mean <= 0:
        return np.nan, mean
    correction = 1 + unknowns / count * float(curvature.var()) / mean**2
    return correction * float(np.sqrt(np.sum(loss.psi(residuals) ** 2) / (count - unknowns))) / mean, mean
