"""What parameters no body can have: simulators tell it in the same words, and a search survives it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from simphys.autograd.errors import UnphysicalValue
from simphys.diagnose.faults import element_name

from .contract import Arrays


def require_positive(
    who: str, params: Arrays, units: Mapping[str, str], *, instead: str = "Give a positive one"
) -> None:
    """Raise UnphysicalValue unless every number of the parameters that `units` names is positive and finite.

    Of a divisor such as a mass, 0 makes numbers that are none, and a negative one a motion that is none. `instead`
    begins the remedy.
    """
    for name, unit in units.items():
        values = np.asarray(params[name])
        wrong = ~((values > 0) & np.isfinite(values))
        if wrong.any():
            index = tuple(np.argwhere(wrong)[0].tolist())
            remedy = f"{instead}; give an unknown a lower bound, or transform = 'log'."
            found = f"{element_name(name, index)} = {values[index]:g} {unit}"
            raise UnphysicalValue(f"{who}: {name}", "positive and finite", found, remedy)
