"""The model of heat conduction: a grid, its sides, and the scheme in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from simphys.autograd import Tensor
from simphys.numerics.coupled_cells import couple_cells
from simphys.simulator import Arrays, Model, Record, Shape, StepLimit, declare
from simphys.simulator.model_checks import require_choices, require_grid, require_sides
from simphys.simulator.space import OnGrid

KINDS = ("insulated", "fixed")
SCHEMES = {"explicit": 0.0, "crank_nicolson": 0.5, "implicit": 1.0}
"""Weight theta of the new temperature in each scheme."""


@dataclass(frozen=True)
class Params(Record):
    """Physical parameters; each is a Tensor and may require a gradient."""

    conductivity: Tensor = declare("*cells", "W/(m K)", sign="positive", section="medium")
    """Thermal conductivity k of each cell."""
    heat_capacity: Tensor = declare("*cells", "J/(m^3 K)", sign="positive", section="medium")
    """Heat capacity C = rho c of each cell by volume."""
    source: Tensor = declare("*cells", "W/m^3", section="medium", standard=0.0)
    """Power q of the heat source in each cell by volume."""
    side_temperature: Tensor = declare("2 dim", "K or deg C")
    """Temperature of each side that is fixed; those of insulated sides have no effect."""


@dataclass(frozen=True)
class State(Record):
    """The temperature, all that a step needs."""

    temperature: Tensor = declare("*cells", "K or deg C", section="state")
    """Temperature T of each cell."""


@dataclass(frozen=True)
class Heat(OnGrid, Model):
    """Heat conduction C dT/dt = div(k grad T) + q on a regular grid: everything without a gradient.

    The middle of cell (i, j, k) is at spacing * (i + 1/2, j + 1/2, k + 1/2) [m]. The control of a step, if there is
    one, takes the place of the sides' temperatures [2 dim].
    """

    cells: tuple[int, ...]
    """Number of cells along each of 1, 2 or 3 axes."""
    spacing: float
    """Edge length of a cell [m]."""
    dt: float
    """Time step [s]."""
    scheme: Literal["explicit", "crank_nicolson", "implicit"] = "explicit"
    """Scheme in time, of order 1, 2 and 1; the implicit two are stable for every step."""
    sides: tuple[str, ...] = ()
    """Kind of each side x-, x+, y-, ...: insulated, or at a fixed temperature; all insulated by default."""

    Params, State = Params, State

    def __post_init__(self) -> None:
        require_grid(self, 1, 2, 3)
        require_sides(self, "sides", KINDS, "insulated")
        require_choices(self, scheme=tuple(SCHEMES))

    @property
    def open_sides(self) -> tuple[int, ...]:
        """Numbers of the sides with a fixed temperature."""
        return tuple([number for number, kind in enumerate(self.sides) if kind == "fixed"])

    @property
    def theta(self) -> float:
        """Weight of the new temperature."""
        return SCHEMES[self.scheme]

    def control_shape(self) -> Shape | None:
        return (2 * self.dim,) if self.open_sides else None

    def step_limits(self, params: Arrays, state: Arrays) -> tuple[StepLimit, ...]:
        """Limit explicit steps to 2 / L, for the largest eigenvalue L of C^-1 K by Gershgorin's theorem."""
        if self.theta > 0:
            return ()
        k, capacity = params["conductivity"], params["heat_capacity"]
        diagonal, coupling = couple_cells(k, self.spacing, self.open_sides)
        others = [g + np.roll(g, 1, axis) for axis, g in enumerate(coupling)]
        rate = (diagonal + np.sum(others, axis=0)) / capacity
        cell = tuple(map(int, np.unravel_index(np.argmax(rate), rate.shape)))
        cause = f"conductivity {k[cell]:.4g} and heat capacity {capacity[cell]:.4g} of cell {list(cell)}"
        limit = float(2 / rate[cell]) if rate[cell] > 0 else np.inf
        return (StepLimit(limit, cause, 'take larger cells, or simulator.scheme = "implicit"'),)

    def advice(self, params: Arrays, state: Arrays) -> str:
        return "Look for sources or sides with values far too large."
