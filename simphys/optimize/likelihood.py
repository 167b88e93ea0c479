"""Intervals by the profile likelihood, by MINOS of iminuit on gradients of ours.

Of each unknown they end where the loss, minimized over all others, has risen by s^2/2 from its minimum, with the
standard deviation s of the whitened residuals. For a linear model that is one standard error; otherwise the two sides
differ.
Source: James and Roos 1975 (MINUIT).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from typing import Any

import numpy as np

from simphys.autograd.errors import InputError
from simphys.optimize.evaluations import Objective
from simphys.optimize.mapping import Carried, Map
from simphys.optimize.problem import FAILURES

HIGH = 1e6
"""Loss of a failed trial above that at the optimum, in units of what ends an interval."""


@dataclass(frozen=True)
class Intervals:
    """Ends of the intervals of theta [p], as distances from the optimum: below it negative, NaN where there is none."""

    below: np.ndarray
    above: np.ndarray
    theta: np.ndarray
    """The optimum that they are about, [p]."""
    loss: float
    """Loss there."""
    evaluations: int
    """Number of evaluations of loss and gradient."""


def require_iminuit() -> None:
    """Raise InputError without iminuit (extra `intervals`)."""
    try:
        import_module("iminuit")
    except ImportError as error:
        remedy = "Run pip install 'simphys[intervals]'."
        raise InputError("intervals", "needs the package iminuit", "not installed", remedy) from error


def profile_intervals(
    objective: Objective, theta: np.ndarray, errors: np.ndarray, sigma: float, *, each: Map = map
) -> Intervals:
    """Find the intervals around an optimum theta [p], given standard errors [p], NaN if unknown, and sigma.

    `each` computes the profiles of the unknowns, which do not depend on each other.
    Errors: InputError without iminuit (extra `intervals`).
    """
    require_iminuit()
    profiles = _Profiles(objective, np.asarray(theta, float), errors, 0.5 * sigma**2)
    minuit = profiles.minuit
    below, above = (np.full(theta.size, np.nan) for _ in range(2))
    count = profiles.search.count
    if minuit.valid:
        found = list(each(partial(_find_ends, Carried(profiles)), range(theta.size)))
        below[:], above[:] = np.array([ends for *ends, _ in found]).T
        count += sum([evaluations for *_, evaluations in found])
    return Intervals(below, above, np.array(minuit.values), float(minuit.fval or np.nan), count)


def _find_ends(profiles: Carried[_Profiles], place: int) -> tuple[float, float, int]:
    """Find the distances of an unknown's ends from the optimum; also return the number of evaluations."""
    minuit, search = profiles.value.minuit, profiles.value.search
    before = search.count
    minuit.minos(place)
    found = minuit.merrors[minuit.parameters[place]]
    below = found.lower if found.lower_valid and not found.at_lower_limit else np.nan
    above = found.upper if found.upper_valid and not found.at_upper_limit else np.nan
    return below, above, search.count - before


@dataclass(frozen=True)
class _Profiles:
    """Search for the ends of intervals: in each process, Minuit goes to the optimum once."""

    objective: Objective
    theta: np.ndarray
    errors: np.ndarray
    unit: float
    """Rise of the loss that ends an interval."""

    def __reduce__(self) -> tuple[Any, ...]:  # without Minuit, which is not pickled
        return _Profiles, (self.objective, self.theta, self.errors, self.unit)

    @cached_property
    def search(self) -> _Evaluations:
        return _Evaluations(self.objective, self.theta, HIGH * self.unit)

    @cached_property
    def minuit(self) -> Any:
        """Minuit at its optimum."""
        from iminuit import Minuit

        made = Minuit(self.search.loss, self.theta, grad=self.search.gradient)
        made.errordef = self.unit
        made.errors = np.where(np.isfinite(self.errors) & (self.errors > 0), self.errors, 0.1)
        made.limits = [
            (low if np.isfinite(low) else None, high if np.isfinite(high) else None)
            for low, high in zip(self.objective.lower, self.objective.upper, strict=True)
        ]
        made.migrad()
        return made


class _Evaluations:
    """Loss and gradient, computed together: Minuit asks for them one after the other."""

    def __init__(self, objective: Objective, theta: np.ndarray, high: float) -> None:
        self._objective, self._high = objective, high
        self._base = objective.value_and_gradient(np.asarray(theta, float))[0]
        self._last: tuple[bytes, float, np.ndarray] | None = None
        self.count = 1

    def loss(self, theta: np.ndarray) -> float:
        return self._evaluate(theta)[1]

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        return self._evaluate(theta)[2]

    def _evaluate(self, theta: np.ndarray) -> tuple[bytes, float, np.ndarray]:
        at = np.array(theta, float)
        key = at.tobytes()
        if self._last is None or self._last[0] != key:
            self.count += 1
            try:
                with np.errstate(all="ignore"):
                    loss, gradient = self._objective.value_and_gradient(at)
            except FAILURES:
                loss, gradient = np.nan, np.zeros_like(at)
            if not (np.isfinite(loss) and np.isfinite(gradient).all()):
                loss, gradient = self._base + self._high, np.zeros_like(at)
            self._last = key, float(loss), gradient
        return self._last
