"""Bounds that hold a fit back.

Bounds that exclude the truth leave a misfit, and a fit in a wrong optimum, or of a wrong model, runs to bounds that
exclude nothing. A fit without the bounds tells these apart: it ends beyond them and explains the misfit, ends within
them, which makes the one before a local optimum, or explains nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from simphys import optimize
from simphys.autograd.errors import InputError
from simphys.experiment.objective import SceneObjective
from simphys.experiment.setup import Setup

from .chi_square import unit_of_chi_square
from .criteria import Criterion
from .dissipation import gives_energy
from .optimum import describe_local_optimum, describe_values, most_left, part_left
from .uncertainty import Uncertainty

Array = np.ndarray[Any, Any]

HELD_GAIN = 2.0
"""Decrease of chi^2 / 2 beyond a bound, in its unit (chi_square.py): two standard errors."""
ITERATIONS = 100
"""Iterations of the fit without bounds: its way may be long."""
WIDEN = "Widen these bounds, unless physics forbids it; then the model or the data are wrong."


@dataclass(frozen=True)
class Beyond:
    """The fit without the bounds that hold another back, from the end of that one."""

    theta: Array
    left: float
    """Part of chi^2 that is left."""
    within: bool
    """True if it ends within the bounds."""
    lawful: bool
    """False if friction, damping or impacts give energy there."""


def judge_bounds(scene: Setup, uncertainty: Uncertainty) -> Criterion:
    """Judge whether the loss falls beyond a bound, to first order."""
    gains = uncertainty.gain_beyond_bounds
    loss = 0.5 * float(uncertainty.residuals @ uncertainty.residuals)
    beyond = max(loss - float(gains.max(initial=0)), 0.0)  # the best fit is the one without the bound
    gains = gains / unit_of_chi_square(scene, beyond, len(uncertainty.labels))
    held = [
        f"{uncertainty.labels[i]} at its {'lower' if uncertainty.at_lower[i] else 'upper'} bound"
        for i in np.flatnonzero(gains > HELD_GAIN)
    ]
    if held:
        found = f"{', '.join(held)}: beyond it, chi^2 falls by {2 * gains.max():.3g}"
        return Criterion("bounds", 2 * float(gains.max()), "doubtful", found, WIDEN)
    at_bound = np.count_nonzero(uncertainty.at_lower | uncertainty.at_upper)
    found = "no bound holds the fit back" + (f" ({at_bound} unknown(s) at one)" if at_bound else "")
    return Criterion("bounds", 2 * float(gains.max(initial=0)), "passed", found)


def explain_by_bounds(
    objective: SceneObjective[Any], uncertainty: Uncertainty, criteria: Sequence[Criterion], told: Criterion
) -> tuple[list[Criterion], bool]:
    """Say whether bounds that hold a fit back are the cause of its misfit, which the criterion `told` is about.

    Returns the criteria, and True if that explains the misfit.
    """
    found = fit_beyond(objective, uncertainty)
    explained = found is not None and found.left <= most_left(objective.scene, uncertainty)
    misfit = told.remedy
    if found is None:
        bounds = f"Find first what explains the misfit (see {told.name}), then judge the bounds again."
    elif not (explained and found.lawful):
        left = f"without them {100 * np.sqrt(found.left):.2g} % of the misfit are left"
        left += "" if found.lawful else ", and the model gives energy to the motion"
        bounds = f"Bounds are not what is wrong: {left}. Find first what explains it (see {told.name})."
    elif found.within:
        misfit = describe_local_optimum(uncertainty, found.theta, found.left)
        bounds = f"Keep these bounds: this is a local optimum, and a better one lies within them (see {told.name})."
    else:
        values, part = describe_values(uncertainty, found.theta), 100 * np.sqrt(found.left)
        misfit = f"Bounds hold the fit back (see bounds): without them {part:.2g} % of it are left."
        bounds = f"{WIDEN} Without them the fit ends at {values}."
    remedies = {"bounds": bounds, told.name: misfit}
    changed = [replace(each, remedy=remedies.get(each.name, each.remedy)) for each in criteria]
    return changed, explained and found is not None and found.lawful


def fit_beyond(objective: SceneObjective[Any], uncertainty: Uncertainty) -> Beyond | None:
    """Fit without the bounds that hold a fit back, but none that keeps a sign; None where that is not physical."""
    held = uncertainty.gain_beyond_bounds > 0
    lower, upper = objective.lower.copy(), objective.upper.copy()
    for block in objective.unknowns.blocks:
        for place in np.flatnonzero(held[block.where]) + block.where.start:
            keeps_sign = not block.log
            if uncertainty.at_lower[place]:
                lower[place] = 0.0 if keeps_sign and lower[place] > 0 else -np.inf
            else:
                upper[place] = 0.0 if keeps_sign and upper[place] < 0 else np.inf
    free = objective.with_bounds(lower, upper).with_start(uncertainty.theta)
    try:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            result = optimize.minimize(free, iterations=ITERATIONS)
    except InputError:
        return None
    within = bool(((result.theta >= objective.lower) & (result.theta <= objective.upper)).all())
    values = uncertainty.unknowns.natural(result.theta)
    lawful = not any(
        gives_energy(block.parameter, float(value))
        for block in objective.unknowns.blocks
        for value in values[block.where]
    )
    return Beyond(result.theta, part_left(uncertainty, result.loss), within, lawful)
