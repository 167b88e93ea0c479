"""The stages of a fit: on a horizon that grows, or of misfits that are low-pass filtered, low frequencies first.

Each stage starts from the result of the one before, and the last one alone decides about convergence. Waves that are
wrong by more than half a period lead to a local minimum; of the long periods of a low-pass filtered misfit they are
not, and its optimum predicts the motion well enough for the next frequency. (Bunks et al. 1995)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

from simphys.autograd.errors import InputError
from simphys.optimize.evaluations import Objective


@dataclass(frozen=True)
class Stage:
    """What one stage sees."""

    horizon: float = 1.0
    """Fraction of the horizon."""
    lowpass: float | None = None
    """Up to about such a frequency [Hz] misfits count; None: all. Stages by frequency say inf for all."""

    @property
    def name(self) -> str:
        """By which its evaluations are recorded."""
        return f"horizon_{self.horizon:g}" if self.lowpass is None else f"lowpass_{self.lowpass:g}"

    def of(self, objective: Objective) -> Objective:
        """The objective as the stage sees it."""
        if self.lowpass is not None:
            return cast(Filtered, objective).filtered(self.lowpass)
        return objective if self.horizon == 1 else objective.until(self.horizon)

    def describe(self) -> str:
        """For people."""
        if self.lowpass is None:
            return f"{self.horizon:.3g} of the horizon"
        return "all frequencies" if math.isinf(self.lowpass) else f"up to {self.lowpass:g} Hz"


@runtime_checkable
class Filtered(Protocol):
    """An objective whose misfits can be low-pass filtered."""

    def filtered(self, frequency: float) -> Objective:
        """The same objective of misfits up to a frequency [Hz]; inf: of all."""
        ...


def by_frequency(objective: Any, frequencies: tuple[float, ...]) -> list[Stage]:
    """A stage for each frequency [Hz]; 0 and inf, the last one, are without a filter. Errors: InputError."""
    cutoffs = [frequency or math.inf for frequency in frequencies]
    if not cutoffs or sorted(set(cutoffs)) != cutoffs or cutoffs[0] < 0:
        remedy = "Sort them, low ones first; 0 or inf, for no filter, is the last one."
        raise InputError("optimizer", "lowpass must be frequencies that increase", list(frequencies), remedy)
    if not isinstance(objective, Filtered):
        remedy = "Give it the method filtered(frequency), or leave lowpass out."
        raise InputError("optimizer", "lowpass needs misfits that can be filtered", type(objective).__name__, remedy)
    return [Stage(lowpass=cutoff) for cutoff in cutoffs]
