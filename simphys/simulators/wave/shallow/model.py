"""The model of a shallow-water simulation: a grid with its boundaries, and the stages of a time step."""

from __future__ import annotations

from dataclasses import dataclass

from simphys.autograd import Tensor
from simphys.autograd.errors import InputError
from simphys.simulator import Model, Record, declare
from simphys.simulator.model_checks import require_grid
from simphys.simulator.space import OnGrid

BOUNDARIES = ("closed", "periodic")

STAGES = (1 / 3, 1 / 2, 1.0)
"""Length of each stage, as a fraction of the time step (Wicker and Skamarock 2002)."""


@dataclass(frozen=True)
class Params(Record):
    """Physical parameters; each is a Tensor and may require a gradient."""

    depth: Tensor = declare("*cells", "m", sign="positive", section="medium")
    """Depth of the bottom below the rest level in each cell."""
    gravity: Tensor = declare("", "m/s^2", sign="positive", section="medium", standard=9.81)
    """Gravitational acceleration."""
    friction: Tensor = declare("", "1", section="medium", standard=0.0, least=0)
    """Dimensionless coefficient c_f of the quadratic bottom friction."""


@dataclass(frozen=True)
class State(Record):
    """The elevation of the surface, and the velocity, which does not vary with depth."""

    elevation: Tensor = declare("*cells", "m")
    """Height of the surface above the rest level."""
    velocity: Tensor = declare("dim, *cells", "m/s")
    """Velocity. Entry i of component a is at the face between cells i - 1 and i along axis a.
    Face 0 is between the last cell and the first; along a closed axis it is the wall, and its entries count as 0."""


@dataclass(frozen=True)
class ShallowWater(OnGrid, Model):
    """Shallow water over an uneven bottom, on an Arakawa C-grid: everything without a gradient.

    The centre of cell (i, j) is at spacing * (i + 1/2, j + 1/2).
    """

    cells: tuple[int, ...]
    """Number of cells along each of 1 or 2 axes."""
    spacing: float
    """Edge length of a cell [m]."""
    dt: float
    """Time step [s]."""
    boundaries: tuple[str, ...] = ()
    """Boundary kind of each axis: closed (free-slip walls at both ends) or periodic; all closed by default."""

    Params, State = Params, State

    def __post_init__(self) -> None:
        require_grid(self, 1, 2)
        if not self.boundaries:
            object.__setattr__(self, "boundaries", ("closed",) * self.dim)
        if len(self.boundaries) != self.dim or not set(self.boundaries) <= set(BOUNDARIES):
            constraint = f"must hold {self.dim} of {BOUNDARIES}, one for each axis"
            raise InputError("ShallowWater.boundaries", constraint, list(self.boundaries), "Name one for each axis.")

    @property
    def closed(self) -> tuple[bool, ...]:
        """True for each axis that ends in walls."""
        return tuple([boundary == "closed" for boundary in self.boundaries])
