"""Signs of dissipation: friction and damping take energy from a motion, and no impact returns more than it got.

A gain that grows, times of a clock that runs wrong or a drive that the model lacks are fitted well by damping below 0.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .criteria import Criterion
from .uncertainty import Uncertainty

LEAST = dict.fromkeys(
    [
        "damping",
        "drag",
        "air_drag",
        "dry_friction",
        "friction",
        "ground_friction",
        "wall_friction",
        "collider_friction",
        "joint_damping",
        "joint_dry_friction",
        "spring_damping",
        "contact_damping",
        "deceleration",
        "viscosity",
    ],
    0.0,
)
"""Parameters that take energy, and the value below which they give it."""
LARGEST = {"restitution": 1.0, "cushion_restitution": 1.0}
"""Parameters of impacts, and the value above which they give energy."""
CLEAR = 3.0
"""Distance beyond these values, in standard errors, that is no chance."""


def gives_energy(parameter: str, value: float) -> bool:
    """Return True for a value of friction, or of an impact, with which a model gives energy to the motion."""
    return value < LEAST.get(parameter, -np.inf) or value > LARGEST.get(parameter, np.inf)


def judge_dissipation(uncertainty: Uncertainty) -> Iterator[Criterion]:
    """Doubt values with which the model gives energy to the motion, by more than their errors allow."""
    errors = np.fmax(uncertainty.standard.values, uncertainty.robust) * np.abs(uncertainty.natural_derivative)
    natural, found = uncertainty.natural, []
    for block in uncertainty.unknowns.blocks:
        least, largest = LEAST.get(block.parameter, -np.inf), LARGEST.get(block.parameter, np.inf)
        for place in range(block.where.start, block.where.stop):
            beyond = max(least - natural[place], natural[place] - largest)
            error = float(np.nan_to_num(errors[place]))
            if beyond > CLEAR * error and beyond > 0:
                found.append(f"{uncertainty.labels[place]} is {natural[place]:.4g} +- {error:.2g}")
    if found:
        words = f"{', '.join(found)}: the model gives energy to the motion"
        remedy = (
            "Look for a sensor whose gain drifts, a wrong clock, or a drive that the model lacks; where physics allows "
            "no such value, set bounds = [0, inf], or [0, 1] of a restitution, and see what misfit is left."
        )
        yield Criterion("dissipation", len(found), "doubtful", words, remedy)
