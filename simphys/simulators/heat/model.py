"""The model of heat conduction: a grid, its sides, and the scheme in time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from simphys.autograd import Tensor
from simphys.simulator import Arrays, Grid, Model, Record, Shape
from simphys.simulator.model_checks import require_choices, require_grid, require_sides
from simphys.simulator.physical import require_positive
from simphys.simulator.space import OnGrid

KINDS = ("insulated", "fixed")
SCHEMES = {"explicit": 0.0, "crank_nicolson": 0.5, "implicit": 1.0}
"""Weight theta of the new temperature in each scheme."""


@dataclass(frozen=True)
class Params(Record):
    """Physical parameters; each is a Tensor and may require a gradient."""

    conductivity: Tensor
    """Thermal conductivity k of each cell, positive [W/(m K)], [*cells]."""
    heat_capacity: Tensor
    """Heat capacity C = rho c of each cell by volume, positive [J/(m^3 K)], [*cells]."""
    source: Tensor
    """Power q of the heat source in each cell by volume [W/m^3], [*cells]."""
    side_temperature: Tensor
    """Temperature of each side that is fixed [K, or deg C], [2 dim]; those of insulated sides have no effect."""


@dataclass(frozen=True)
class State(Record):
    """The temperature, all that a step needs."""

    temperature: Tensor
    """Temperature T of each cell [K, or deg C], [*cells]."""


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

    def param_shapes(self) -> Mapping[str, Shape]:
        fields = dict.fromkeys(("conductivity", "heat_capacity", "source"), self.cells)
        return {**fields, "side_temperature": (2 * self.dim,)}

    def state_shapes(self) -> Mapping[str, Shape]:
        return {"temperature": self.cells}

    def control_shape(self) -> Shape | None:
        return (2 * self.dim,) if self.open_sides else None

    def describe_grid(self) -> Grid:
        units = {"temperature": "K", "conductivity": "W/(m K)", "heat_capacity": "J/(m^3 K)", "source": "W/m^3"}
        return Grid(cells=self.cells, spacing=self.spacing, offset=0.5, fields=units)


def check_params(params: Arrays) -> None:
    """Raise UnphysicalValue unless conductivity and heat capacity are positive."""
    require_positive("Heat", params, "conductivity", "heat_capacity")
