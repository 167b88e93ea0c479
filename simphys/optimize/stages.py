"""Stages of a fit: on a growing horizon, or with low-pass filtered misfits, low frequencies first.

Each stage starts from the result of the previous one, and the last one alone decides about convergence. A wave that is
wrong by more than half a period leads to a local minimum. The long periods of a low-pass filtered misfit avoid that,
and its optimum predicts the motion well enough for the next frequency. (Bunks et al. 1995)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

from simphys.autograd.errors import InputError
from simphys.optimize.evaluations import Objective


@dataclass(frozen=True)
class Stage:
    """Part of the objective that one stage fits."""

    horizon: float = 1.0
    """Fraction of the horizon."""
    lowpass: float | None = None
    """Largest frequency [Hz] of the misfits; None: no filter. In a fit by frequency, inf means no filter."""

    @property
    def name(self) -> str:
        """Name of the stage in the log of evaluations."""
        return f"horizon_{self.horizon:g}" if self.lowpass is None else f"lowpass_{self.lowpass:g}"

    def restrict(self, objective: Objective) -> Objective:
        """Restrict the objective to this stage."""
        if self.lowpass is not None:
            return cast(Filterable, objective).filter_misfits(self.lowpass)
        return objective if self.horizon == 1 else objective.until(self.horizon)

    def describe(self) -> str:
        """Describe the stage for a message."""
        if self.lowpass is None:
            return f"{self.horizon:.3g} of the horizon"
        return "all frequencies" if math.isinf(self.lowpass) else f"up to a frequency of {self.lowpass:g}"


@runtime_checkable
class Filterable(Protocol):
    """Objective whose misfits can be low-pass filtered."""

    def filter_misfits(self, frequency: float) -> Objective:
        """Restrict the objective to misfits up to a frequency [Hz]; inf: all frequencies."""
        ...


def make_frequency_stages(objective: Any, frequencies: tuple[float, ...]) -> list[Stage]:
    """Make a stage for each frequency [Hz]; 0 or inf as the last one means no filter. Errors: InputError."""
    cutoffs = [frequency or math.inf for frequency in frequencies]
    if not cutoffs or sorted(set(cutoffs)) != cutoffs or cutoffs[0] < 0:
        remedy = "Sort them, low ones first; 0 or inf, for no filter, is the last one."
        raise InputError("optimizer", "lowpass must be a list of increasing frequencies", list(frequencies), remedy)
    if not isinstance(objective, Filterable):
        remedy = "Give it the method filter_misfits(frequency), or leave lowpass out."
        raise InputError("optimizer", "lowpass needs misfits that can be filtered", type(objective).__name__, remedy)
    return [Stage(lowpass=cutoff) for cutoff in cutoffs]
