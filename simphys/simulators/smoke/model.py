"""What a simulation of incompressible flow is: a grid with its sides, how it advects and projects, an obstacle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simphys.autograd import Tensor
from simphys.autograd.errors import InputError
from simphys.simulator import Array, Arrays, Record, Shape

if TYPE_CHECKING:
    from .engine import SmokeEngine

GRIDS = ("staggered", "collocated")
ADVECTIONS = ("semi_lagrangian", "maccormack")
PROJECTIONS = ("jacobi", "conjugate_gradients", "multigrid", "fft")
BOUNDARIES = ("periodic", "closed", "open", "inflow")


@dataclass(frozen=True)
class Params(Record):
    """Physical parameters; each is a Tensor and may require a gradient."""

    viscosity: Tensor
    """Kinematic viscosity [m^2/s], []."""
    buoyancy: Tensor
    """Acceleration of the fluid per unit of smoke [m/s^2], [dim]."""
    boundary_velocity: Tensor
    """Velocity of the fluid that enters, or of the wall along itself, at each side x-, x+, ... [m/s], [2 dim, dim]."""
    boundary_smoke: Tensor
    """Smoke in the fluid that enters at each side, [2 dim]."""
    smoke_rate: Tensor
    """Smoke that appears in each cell [1/s], [*cells]."""
    obstacle: Tensor
    """Signed distance of the centre of each cell to the obstacle, negative inside [m], [*cells]; [0] without one."""


@dataclass(frozen=True)
class State(Record):
    """How the fluid moves, and what it carries."""

    velocity: Tensor
    """[m/s], [dim, *model.faces]. On a staggered grid component a of entry i is that of the face between the cells
    i - 1 and i along axis a; on a collocated grid that of the centre of cell i."""
    smoke: Tensor
    """Smoke at the centre of each cell, [*cells]."""
    force: Tensor
    """What the obstacle took from the fluid in the last step, by density [m^(dim+1)/s^2], [dim]; zero without one."""


@dataclass(frozen=True)
class Smoke:
    """Incompressible flow of constant density with passive or buoyant smoke: everything no gradient flows to.

    The centre of cell (i, j, k) is at spacing * (i + 1/2, j + 1/2, k + 1/2).
    """

    cells: tuple[int, ...]
    """How many along each axis, of 2 or 3."""
    spacing: float
    """Edge of a cell [m]."""
    dt: float
    """Time step [s]."""
    boundaries: tuple[str, ...] = ()
    """Of each side, x-, x+, y-, ...: periodic, closed, open or inflow; all periodic by default.

    closed: a wall; the normal velocity is 0, the fluid at it moves with `boundary_velocity` (slip: as it likes).
    inflow: the velocity is `boundary_velocity`. open: the pressure is 0, and the fluid comes and goes.
    """
    slip: bool = False
    """Whether walls let the fluid slide."""
    grid: str = "staggered"
    """staggered (MAC: Harlow and Welch 1965) or collocated."""
    advection: str = "maccormack"
    """semi_lagrangian (Stam 1999), of first order, or maccormack (Selle et al. 2008), of second order."""
    projection: str = "multigrid"
    """How pressure is found: jacobi (a fixed number of sweeps from 0), conjugate_gradients, multigrid, fft."""
    sweeps: int = 6
    """Of jacobi."""
    tolerance: float = 1e-8
    """Of the other ones: the residual relative to the divergence at the start, by Euclidean norms."""
    most_iterations: int = 200
    """Of the other ones; a solve that has not converged by then is told of, not refused."""
    has_obstacle: bool = False
    """Whether there is one."""

    Params = Params
    State = State

    def __post_init__(self) -> None:
        if len(self.cells) not in (2, 3):
            raise InputError("Smoke.cells", "space has 2 or 3 dimensions", list(self.cells), "Give 2 or 3 counts.")
        if not self.boundaries:
            object.__setattr__(self, "boundaries", ("periodic",) * (2 * self.dim))
        if len(self.boundaries) != 2 * self.dim or not set(self.boundaries) <= set(BOUNDARIES):
            constraint = f"{2 * self.dim} of {BOUNDARIES}, one for each side x-, x+, ..."
            raise InputError("Smoke.boundaries", constraint, list(self.boundaries), "Name each side's.")
        for name, known in (("grid", GRIDS), ("advection", ADVECTIONS), ("projection", PROJECTIONS)):
            if getattr(self, name) not in known:
                raise InputError(f"Smoke.{name}", f"one of {known}", getattr(self, name), "Choose one of these.")
        for axis in range(self.dim):
            pair = self.boundaries[2 * axis : 2 * axis + 2]
            if pair.count("periodic") == 1:
                remedy = "Make both periodic, or neither."
                raise InputError("Smoke.boundaries", "opposite sides are periodic together", list(pair), remedy)
        if self.projection == "fft" and not self.is_periodic:
            remedy = "Use multigrid, or make all sides periodic."
            raise InputError("Smoke.projection", "fft needs periodic sides", list(self.boundaries), remedy)
        if self.grid == "collocated" and not self.is_periodic and set(self.boundaries) & {"open", "inflow"}:
            remedy = 'Use grid = "staggered".'
            constraint = "a collocated grid has periodic or closed sides"
            raise InputError("Smoke.boundaries", constraint, list(self.boundaries), remedy)

    @property
    def dim(self) -> int:
        """Dimensions of space."""
        return len(self.cells)

    @property
    def is_periodic(self) -> bool:
        """Whether all sides are."""
        return set(self.boundaries) == {"periodic"}

    @property
    def faces(self) -> Shape:
        """Entries of a component of velocity along each axis: the cells, and one more along an axis that is not
        periodic of a staggered grid. There, entries beyond a component's own faces (the last one across its axis)
        are 0 and stay so."""
        if self.grid == "collocated":
            return self.cells
        sides = self.boundaries[::2]
        return tuple([n + (side != "periodic") for n, side in zip(self.cells, sides, strict=True)])

    def param_shapes(self) -> Mapping[str, Shape]:
        return {
            "viscosity": (),
            "buoyancy": (self.dim,),
            "boundary_velocity": (2 * self.dim, self.dim),
            "boundary_smoke": (2 * self.dim,),
            "smoke_rate": self.cells,
            "obstacle": self.cells if self.has_obstacle else (0,),
        }

    def state_shapes(self) -> Mapping[str, Shape]:
        return {"velocity": (self.dim, *self.faces), "smoke": self.cells, "force": (self.dim,)}

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
    ) -> SmokeEngine:
        """The fused loops. Every sum has one order, so that they are deterministic, asked to be or not."""
        from .engine import SmokeEngine

        return SmokeEngine(
            self, params, control, batch=batch, needs=needs, deterministic=deterministic, tangents=tangents
        )

    def advice(self, params: Arrays, state: Arrays) -> str:
        """How far the fluid goes in a step."""
        fastest = float(abs(state["velocity"]).max())
        cells = fastest * self.dt / self.spacing
        return (
            f"The fluid moves at up to {fastest:.3g} m/s, {cells:.3g} cells in a step of {self.dt:.3g} s. "
            "Take a smaller dt, or semi_lagrangian advection."
        )
