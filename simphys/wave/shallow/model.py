"""What a simulation of shallow water is: a grid with its boundaries and the stages of a time step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...autograd import Tensor
from ...autograd.errors import InputError
from ...simulator import Array, Arrays, Record, Shape

if TYPE_CHECKING:
    from .engine import ShallowEngine

BOUNDARIES = ("closed", "periodic")

STAGES = (1 / 3, 1 / 2, 1.0)
"""How far each stage of a time step goes, in time steps (Wicker and Skamarock 2002)."""

CELL_US = 0.02
"""Serial cost [us] of one cell in a sub-step."""


@dataclass(frozen=True)
class Params(Record):
    """Physical parameters; each is a Tensor and may require a gradient."""

    depth: Tensor
    """How far the bottom lies below the rest level in each cell, positive [m], [*cells]."""
    gravity: Tensor
    """[m/s^2], []."""
    friction: Tensor
    """Coefficient c_f of the quadratic friction at the bottom, [], a number without unit."""


@dataclass(frozen=True)
class State(Record):
    """The water's surface and how the water moves, the same all the way down."""

    elevation: Tensor
    """How far the surface lies above the rest level [m], [*cells]."""
    velocity: Tensor
    """[m/s], [dim, *cells]: entry i of component a is that of the face between the cells i - 1 and i along axis a.
    Face 0 lies between the last cell and the first; along a closed axis it is the wall: its entries count as 0."""


@dataclass(frozen=True)
class ShallowWater:
    """Shallow water over an uneven bottom, on an Arakawa C-grid: everything that no gradient flows to.

    The centre of cell (i, j) is at spacing * (i + 1/2, j + 1/2).
    """

    cells: tuple[int, ...]
    """How many along each axis, of 1 or 2."""
    spacing: float
    """Edge of a cell [m]."""
    dt: float
    """Time step [s]."""
    boundaries: tuple[str, ...] = ()
    """Of each axis: closed (a wall at both ends, along which the water slips) or periodic; all closed by default."""

    Params = Params
    State = State

    def __post_init__(self) -> None:
        if len(self.cells) not in (1, 2) or min(self.cells) < 1:
            constraint = "there are cells along 1 or 2 axes"
            raise InputError("ShallowWater.cells", constraint, list(self.cells), "Give 1 or 2 positive counts.")
        if not self.boundaries:
            object.__setattr__(self, "boundaries", ("closed",) * self.dim)
        if len(self.boundaries) != self.dim or not set(self.boundaries) <= set(BOUNDARIES):
            constraint = f"{self.dim} of {BOUNDARIES}, one for each axis"
            raise InputError("ShallowWater.boundaries", constraint, list(self.boundaries), "Name each axis's.")

    @property
    def dim(self) -> int:
        """Dimensions: 1 of a channel, 2 of the plane."""
        return len(self.cells)

    @property
    def closed(self) -> tuple[bool, ...]:
        """Whether each axis ends in walls."""
        return tuple([boundary == "closed" for boundary in self.boundaries])

    @property
    def row(self) -> int:
        """Cells from one to its neighbour along the first axis."""
        return math.prod(self.cells[1:])

    def param_shapes(self) -> Mapping[str, Shape]:
        return {"depth": self.cells, "gravity": (), "friction": ()}

    def state_shapes(self) -> Mapping[str, Shape]:
        return {"elevation": self.cells, "velocity": (self.dim, *self.cells)}

    def control_shape(self) -> Shape | None:
        return None

    def step(self, params: Params, state: State, control: Tensor | None = None) -> State:
        """The nested step: one node of the graph for each sub-step."""
        from .step import step

        return step(self, params, state)

    def engine(
        self,
        params: Arrays,
        control: Array | None,
        *,
        batch: int,
        needs: frozenset[str],
        deterministic: bool,
        tangents: Arrays | None = None,
    ) -> ShallowEngine:
        """The fused loops. Every sum has one order, so that they are deterministic, asked to be or not."""
        from .engine import ShallowEngine

        return ShallowEngine(
            self, params, control, batch=batch, needs=needs, deterministic=deterministic, tangents=tangents
        )

    def advice(self, params: Arrays, state: Arrays) -> str:
        """Where the water is about to run dry, or how far the time step is beyond the stable ones."""
        from .stability import advice

        return advice(self, params, state)


def is_dry(elevation: Array, depth: Array) -> bool:
    """Whether there is a cell without water, for which these equations do not hold."""
    return bool((elevation + depth).min() <= 0)
