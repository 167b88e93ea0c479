"""The largest stable time step of a start, whatever the time step of its model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from simphys.rollout.stability import find_largest_dt

LONG = 1e3
"""A time step [s] that is too long for any scene of the tests."""


def largest_stable_dt(model: Any, params: Any, state: Any, *, beyond: float = LONG) -> float:
    """Find the largest stable time step [s] below `beyond`: of the closed limits and, where not sharp, the tangent."""
    limits = replace(model, dt=beyond).step_limits(params.arrays(), state.arrays())
    each = [min([find_largest_dt(*each) for each in limit.systems]) if limit.systems else limit.dt for limit in limits]
    return min(each, default=np.inf)
