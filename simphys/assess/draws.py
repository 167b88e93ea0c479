"""Starts of a search, drawn from the bounds of the unknowns or from their priors.

    sobol            a Sobol sequence: its first 2^k points fill the space evenly
    latin_hypercube  one start in each of n slices of every unknown (McKay, Beckman and Conover 1979)
    prior            a Sobol sequence through the inverse distribution of each normal prior, cut off at the bounds

An unknown is drawn evenly between its bounds or, where one is open, within 30 % of its start. By `prior`, those without
one still are.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from simphys.autograd.errors import InputError
from simphys.experiment.objective import SceneObjective

Array = np.ndarray[Any, Any]
Draw = Literal["sobol", "latin_hypercube", "prior"]

DRAWS: tuple[Draw, ...] = ("sobol", "latin_hypercube", "prior")
REACH = 0.3
"""Distance of starts [theta] from the scene's own where there are no bounds: 30 % of its size."""


def draw_starts(objective: SceneObjective[Any], count: int, seed: int, draw: str = "sobol") -> Array:
    """Draw starts [count, p] within the bounds. Errors: InputError for another draw, or one from priors without any."""
    from scipy.stats import qmc, truncnorm

    if draw not in DRAWS:
        raise InputError("--draw", f"it is one of {', '.join(DRAWS)}", draw, "Choose one of these.")
    mean, deviation = objective.priors()
    has_prior = np.isfinite(deviation)
    if draw == "prior" and not has_prior.any():
        remedy = "Add a term of kind regularization to [[loss.terms]], or draw by sobol."
        raise InputError("--draw", "prior needs an unknown with a prior", "none", remedy)
    start, lower, upper = objective.start, objective.lower, objective.upper
    if draw == "latin_hypercube":
        numbers = qmc.LatinHypercube(start.size, seed=seed).random(count)
    else:
        numbers = qmc.Sobol(start.size, seed=seed).random_base2((count - 1).bit_length())[:count]
    both = np.isfinite(lower) & np.isfinite(upper)
    low = np.where(both, lower, np.maximum(lower, start - REACH))
    high = np.where(both, upper, np.minimum(upper, start + REACH))
    drawn = np.asarray(low + (high - low) * numbers)
    if draw == "prior":
        center, width = mean[has_prior], deviation[has_prior]
        ends = [(bound[has_prior] - center) / width for bound in (lower, upper)]
        inside = np.clip(numbers[:, has_prior], 1e-9, 1 - 1e-9)
        drawn[:, has_prior] = truncnorm.ppf(inside, *ends, loc=center, scale=width)
    return drawn
