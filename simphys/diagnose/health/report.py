"""Report on the health of a gradient: growth, usable horizon, sensitivities, the first NaN and events."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simphys.autograd.look.html import html_picture, html_text
from simphys.simulator import SI, Array, Arrays, Units
from simphys.simulator.events import Event
from simphys.simulator.views import views

from ..faults import Fault
from .growth import Rate, log_norms
from .sensitivity import Sensitivity


@dataclass(frozen=True, repr=False)
class Health:
    """Report on a gradient. The rows of arrays are the steps from the start to the end."""

    dt: float
    """Time step [s]."""
    steps: int
    """Number of steps of the horizon; up to the last sound state if the motion blows up."""
    eps: float
    """Relative rounding of the precision of the computation."""
    loss: float
    adjoint: Arrays
    """Derivative of the loss with respect to each field of the state, [steps + 1, *shape]."""
    moving: Arrays
    """Mask of the components of each field that change at all, [*shape]. Those of pinned nodes do not: like parameters,
    they accumulate gradient, and say nothing about growth."""
    log_growth: Array
    """Log of the ratio of the adjoint to the largest derivative of the loss that has entered so far, [steps + 1].

    Norms are over all moving components, each field in units of its typical adjoint."""
    rate: Rate | None
    """Growth rate of the adjoint, backward from the end, including derivatives that the loss adds on the way. None if
    too few values are known."""
    log_tangent_growth: Array | None
    """Log of the growth of a random perturbation of the start, [steps + 1]; None if a Function has no jvp."""
    tangent_rate: Rate | None
    """Growth rate of the tangent, forward from the start: that of the motion itself, whatever the loss."""
    sensitivities: tuple[Sensitivity, ...]
    fault: Fault | None
    """First NaN or inf, if there is one."""
    events: tuple[Event, ...] = ()
    """Events of the motion, where it is not smooth, in the order of time; empty if the model reports none."""
    units: Units = SI
    """Units of length and time of the scene."""

    def __repr__(self) -> str:
        unit = self.units.time
        rate = "unknown" if self.rate is None else f"{self.rate.value:.3g} 1/{unit}"
        return "\n".join(
            [
                f"Health of a gradient over {self.steps:,} steps of {self.dt:g} {unit}: loss {self.loss:.6g}",
                f"  growth of the adjoint, back from the end  {rate}",
                f"  usable horizon                            {self.usable_steps:,} steps",
                f"  without effect on the loss                {', '.join(self.vanishing) or 'nothing'}",
                f"  events                                    {len(self.events)}",
                f"  first value that is not finite            {self.fault or 'none'}",
            ]
        )

    def _repr_html_(self) -> str:
        parts = [html_text(repr(self))]
        parts += [html_picture(views().plot_health(self), "the adjoint along time")] if self.steps else []
        return "".join(parts)

    @property
    def times(self) -> Array:
        """Times of the states [steps + 1, s]."""
        return np.arange(self.steps + 1) * self.dt

    @property
    def noise_step(self) -> int | None:
        """Step, counted backward from the end, at which the growth exceeds 1/eps; None if it does not."""
        with np.errstate(invalid="ignore"):
            return self._last(self.log_growth > -np.log(self.eps))

    @property
    def usable_steps(self) -> int:
        """Longest horizon, in steps backward from the end, with a gradient that is finite and not noise."""
        sizes = [log_norms(each) for each in self.adjoint.values()]
        ends = [self.noise_step, *[self._last(np.isnan(size)) for size in sizes]]
        return min([max(end - 1, 0) for end in ends if end is not None], default=self.steps)

    @property
    def expected_steps(self) -> int | None:
        """Length of the usable horizon if the adjoint went on growing at its rate.

        None if it ends within the present horizon, or if there is no exponential growth.
        """
        there = np.flatnonzero(np.isfinite(self.log_growth))
        if self.usable_steps < self.steps or self.rate is None or not self.rate.exponential or not there.size:
            return None
        left = -np.log(self.eps) - self.log_growth[there[0]]
        return self.steps - int(there[0]) + int(left / (self.rate.value * self.dt))

    @property
    def vanishing(self) -> tuple[str, ...]:
        """Names of quantities without any entry that the loss depends on noticeably."""
        return tuple([each.name for each in self.sensitivities if each.vanishing == each.entries])

    def _last(self, rows: Array) -> int | None:
        """Find the last row that is True, counted backward from the end."""
        found = np.flatnonzero(rows)
        return self.steps - int(found[-1]) if found.size else None
