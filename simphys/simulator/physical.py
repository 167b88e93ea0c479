"""Checks for unphysical parameters, with the same message in all simulators; a search survives them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from simphys.autograd.errors import UnphysicalValue

from .arrays import Array, Arrays, element_name


def require_positive(
    source: str, params: Arrays, units: Mapping[str, str], *, instead: str = "Give a positive one"
) -> None:
    """Raise UnphysicalValue unless all values of the parameters named in `units` are positive and finite.

    A divisor of 0, such as a mass, gives NaN, and a negative one an unphysical motion. `instead` begins the remedy.
    """
    for name, unit in units.items():
        values = np.asarray(params[name])
        remedy = f"{instead}; give an unknown a lower bound, or transform = 'log'."
        _refuse(source, name, values, (values > 0) & np.isfinite(values), "positive and finite", unit, remedy)


def require_not_negative(source: str, params: Arrays, units: Mapping[str, str]) -> None:
    """Raise UnphysicalValue unless all values of the parameters named in `units` are 0 or more, and finite."""
    for name, unit in units.items():
        values = np.asarray(params[name])
        remedy = "Give 0 or a positive one; give an unknown the lower bound 0."
        _refuse(source, name, values, (values >= 0) & np.isfinite(values), "0 or more, and finite", unit, remedy)


def _refuse(source: str, name: str, values: Array, good: Array, constraint: str, unit: str, remedy: str) -> None:
    """Raise UnphysicalValue for the first value that is not good."""
    if not good.all():
        index = tuple(np.argwhere(~good)[0].tolist())
        found = f"{element_name(name, index)} = {values[index]:g} {unit}"
        raise UnphysicalValue(f"{source}: {name}", constraint, found, remedy)
