"""Checks for unphysical parameters, with the same message in all simulators; a search survives them.

Messages name no units: a model does not know in which ones its scene counts.
"""

from __future__ import annotations

import numpy as np

from simphys.autograd.errors import UnphysicalValue

from .arrays import Array, Arrays, element_name


def require_positive(source: str, params: Arrays, *names: str, instead: str = "Give a positive one") -> None:
    """Raise UnphysicalValue unless all values of the parameters named are positive and finite.

    A divisor of 0, such as a mass, gives NaN, and a negative one an unphysical motion. `instead` begins the remedy.
    """
    for name in names:
        values = np.asarray(params[name])
        remedy = f"{instead}; give an unknown a lower bound, or transform = 'log'."
        _refuse(source, name, values, (values > 0) & np.isfinite(values), "positive and finite", remedy)


def require_not_negative(source: str, params: Arrays, *names: str) -> None:
    """Raise UnphysicalValue unless all values of the parameters named are 0 or more, and finite."""
    for name in names:
        values = np.asarray(params[name])
        remedy = "Give 0 or a positive one; give an unknown the lower bound 0."
        _refuse(source, name, values, (values >= 0) & np.isfinite(values), "0 or more, and finite", remedy)


def _refuse(source: str, name: str, values: Array, good: Array, constraint: str, remedy: str) -> None:
    """Raise UnphysicalValue for the first value that is not good."""
    if not good.all():
        index = tuple(np.argwhere(~good)[0].tolist())
        found = f"{element_name(name, index)} = {values[index]:g}"
        raise UnphysicalValue(f"{source}: {name}", constraint, found, remedy)
