"""Bounds of the time step in closed form, which a simulator knows of its own steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .arrays import Arrays


class StepLimit(NamedTuple):
    """The largest time step for which a part of a motion stays bounded."""

    dt: float
    """Largest time step [s] that is stable, by a bound in closed form; inf if there is none."""
    cause: str = ""
    """Cause of the limit, such as "the largest speed, 3 m/s"."""
    remedy: str = ""
    """Another remedy than a smaller time step, such as "take larger cells"."""
    systems: tuple[tuple[Any, Arrays, Arrays], ...] = ()
    """Models, parameters and states whose steps decide beyond `dt`, where it is not sharp; see rollout/stability.py."""

    @property
    def by(self) -> str:
        """The cause as the end of a sentence."""
        return f", by {self.cause}" if self.cause else ""

    @property
    def instead(self) -> str:
        """The other remedy as the end of a sentence."""
        return f", or {self.remedy}" if self.remedy else ""


def bound_step(stiffness: float, damping: float) -> float:
    """Return the largest h [s] with h^2 stiffness + 2 h damping <= 4, for rates in [1/s^2] and [1/s].

    It is the limit of an explicit step v' = v - h (K x + C v), x' = x + h v' for the largest eigenvalues of K and C: of
    an eigenvector with eigenvalue z, z^2 - (2 - h C - h^2 K) z + 1 - h C = 0, and |z| <= 1 by Jury's conditions.
    Source: E. I. Jury, Theory and Application of the z-Transform Method (1964).
    """
    total = damping + np.hypot(damping, 2 * np.sqrt(stiffness))
    return float(4 / total) if total > 0 else np.inf
