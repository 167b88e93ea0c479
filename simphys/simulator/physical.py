"""Checks for unphysical parameters, with the same message in all simulators; a search survives them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from simphys.autograd.errors import UnphysicalValue

from .arrays import Arrays, element_name


def require_positive(
    source: str, params: Arrays, units: Mapping[str, str], *, instead: str = "Give a positive one"
) -> None:
    """Raise UnphysicalValue unless all values of the parameters named in `units` are positive and finite.

    A divisor of 0, such as a mass, gives NaN, and a negative one an unphysical motion. `instead` begins the remedy.
    """
    for name, unit in units.items():
        values = np.asarray(params[name])
        wrong = ~((values > 0) & np.isfinite(values))
        if wrong.any():
            index = tuple(np.argwhere(wrong)[0].tolist())
            remedy = f"{instead}; give an unknown a lower bound, or transform = 'log'."
            found = f"{element_name(name, index)} = {values[index]:g} {unit}"
            raise UnphysicalValue(f"{source}: {name}", "positive and finite", found, remedy)
