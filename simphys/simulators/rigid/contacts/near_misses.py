"""Near misses: features that pass each other within a step without touching, at a distance below rounding.

The gap of bodies that follow their velocities has its minimum where its rate changes sign. time_of_impact.py searches
for a gap of 0 and stores nothing about a miss, so this module searches again.
"""

from __future__ import annotations

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.simulator import Array

from ..model import Params, RigidBodies, State
from ..solver.split_step import SplitStep
from .distances import Contacts
from .islands import NONE

PLACES = 1e-9
"""Tolerance of the time, as a fraction of a step; the gap hardly changes within it."""
OVER = 1e-3
"""Fraction of a step beyond its end that is searched, for minima exactly at the end."""


def find_near_misses(
    model: RigidBodies, params: Params, state: State, twist: Tensor, states: Array, rounding: float
) -> Array:
    """Return True for inactive candidates that pass by at no more than `rounding` [m], [M].

    `state` is the state in which forces act, `twist` [n, D] the velocities after them, `states` [M] the states of
    candidates.
    """
    x, q, _, _ = state.tensors()
    no_impact = tensor(np.zeros(model.bodies, twist.dtype))

    def gaps(time: float) -> Array:
        times = tensor(np.full(model.candidates.count, time, twist.dtype))
        x_impact, q_impact, _ = SplitStep.apply(model, no_impact, x, q, twist, times)
        found: Array = Contacts.apply(model, x_impact, q_impact, params.centre_of_mass)[0].data
        return found

    begin, end, short = -model.dt / 2, (0.5 + OVER) * model.dt, PLACES**0.5 * model.dt
    first, last = gaps(begin), gaps(end)
    approaches, separates = gaps(begin + short) < first, gaps(end - short) < last
    fastest = (first - gaps(begin + short)) / short * model.dt
    found = np.zeros(len(states), bool)
    for c in np.flatnonzero((states == NONE) & approaches & separates & (first < fastest)):
        from scipy.optimize import minimize_scalar  # few motions need it, and it loads slowly

        least = minimize_scalar(
            lambda time, c=c: float(gaps(time)[c]), bounds=(begin, end), method="bounded",
            options={"xatol": PLACES * model.dt},
        )  # fmt: skip
        found[c] = abs(least.fun) <= rounding
    return found
