"""Derivatives by finite differences, with an estimate of their accuracy.

A central difference with step h has a truncation error, which falls with h, and a rounding error, which rises. So the
derivative is estimated for a series of steps, each estimate extrapolated from two steps after Richardson. It is taken
from the plateau between the two errors, where neighbouring estimates agree best. The spread there is its accuracy. The
spread includes the jump between the one-sided derivatives, extrapolated to h = 0: a kink shows there although central
differences agree. And it is no less than what rounding the values does: differences of zero agree, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..errors import UnphysicalValue
from ..tensor import Array

FEWEST = 4
"""Number of steps of which one estimate has two neighbours."""


class Estimate(NamedTuple):
    """Derivatives [...] and their accuracy."""

    value: Array
    spread: Array
    """Absolute disagreement of the estimates on the plateau; inf where no estimate is finite."""
    step: Array
    """Step at which the plateau was found."""
    slope: Array
    """Largest one-sided difference quotient at the widest step: a bound for the size of the derivative."""


def derivative(
    f: Callable[[float], Array],
    steps: Array,
    enough: Callable[[Estimate], bool] | None = None,
    *,
    rounding: Array | float = 0.0,
) -> Estimate:
    """The derivative of f at 0, elementwise, from evaluations at 0, +h and -h for falling `steps` h (at least 4).

    Where f raises UnphysicalValue on one side alone, at all steps, the derivative is that of the other side. `rounding`
    is that of the values: a difference by less says nothing. Smaller steps are left out as soon as `enough` returns
    True for the estimate from those before.
    """
    with np.errstate(all="ignore"):
        center = f(0.0)
        sides: list[tuple[Array, Array]] = []
        refused = np.ones(2, bool)  # on either side, at all steps so far
        for h in steps:
            found = [_try(f, step) for step in (h, -h)]
            refused &= [values is None for values in found]
            above, below = [np.full_like(center, np.nan) if values is None else values for values in found]
            sides.append((above, below))
            if enough and FEWEST <= len(sides) < len(steps):
                estimate = _find_plateau(center, np.array(sides), steps[: len(sides)], rounding, refused)
                if enough(estimate):
                    return estimate
        return _find_plateau(center, np.array(sides), steps, rounding, refused)


def _try(f: Callable[[float], Array], h: float) -> Array | None:
    try:
        return f(h)
    except UnphysicalValue:
        return None


def _find_plateau(center: Array, sides: Array, steps: Array, rounding: Array | float, refused: Array) -> Estimate:
    """Estimate the derivative from f(0) and from [f(h), f(-h)] for each step, on a side that is not refused."""
    h = steps.reshape(-1, *[1] * center.ndim)
    rise, fall = (sides[:, 0] - center) / h, (center - sides[:, 1]) / h
    ratio = h[:-1] / h[1:]
    if refused.any():
        rise = fall = fall if refused[0] else rise
        estimate = (ratio * rise[1:] - rise[:-1]) / (ratio - 1)
        jump = np.zeros_like(estimate)
    else:
        central, bend = (rise + fall) / 2, rise - fall
        estimate = (ratio**2 * central[1:] - central[:-1]) / (ratio**2 - 1)
        jump = abs(ratio * bend[1:] - bend[:-1]) / (ratio - 1)  # the part of `bend` that does not fall with h
    change = abs(np.diff(estimate, axis=0))
    spread = np.max([change[:-1], change[1:], jump[1:-1]], axis=0)  # of all estimates with two neighbours
    spread = np.maximum(spread, rounding / h[1:-2])
    spread[~np.isfinite(spread)] = np.inf
    best = np.argmin(spread, axis=0, keepdims=True)
    slope = np.maximum(abs(rise[0]), abs(fall[0]))
    return Estimate(
        value=np.take_along_axis(estimate[1:-1], best, axis=0)[0],
        spread=np.take_along_axis(spread, best, axis=0)[0],
        step=steps[1:-2][best[0]],
        slope=np.where(np.isfinite(slope), slope, 0.0),
    )
