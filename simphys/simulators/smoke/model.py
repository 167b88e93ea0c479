"""The model of an incompressible flow: a grid with boundaries, the schemes of advection and projection, an obstacle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simphys.autograd import Tensor
from simphys.autograd.errors import InputError
from simphys.simulator import Arrays, Model, Record, Shape, declare
from simphys.simulator.model_checks import require_choices, require_counts, require_grid, require_sides
from simphys.simulator.space import OnGrid

GRIDS = ("staggered", "collocated")
ADVECTIONS = ("semi_lagrangian", "maccormack")
PROJECTIONS = ("jacobi", "conjugate_gradients", "multigrid", "fft")
BOUNDARIES = ("periodic", "closed", "open", "inflow")


@dataclass(frozen=True)
class Params(Record):
    """Physical parameters; each is a Tensor and may require a gradient."""

    viscosity: Tensor = declare("", "m^2/s", sign="not_negative", section="fluid", standard=0.0)
    """Kinematic viscosity."""
    buoyancy: Tensor = declare("dim", "m/s^2", section="fluid", standard=0.0)
    """Acceleration of the fluid per unit of smoke."""
    boundary_velocity: Tensor = declare("2 dim, dim", "m/s")
    """Velocity of the inflow, or tangential velocity of the wall, at each side x-, x+, and so on."""
    boundary_smoke: Tensor = declare("2 dim", "1")
    """Smoke in the fluid entering at each side."""
    smoke_rate: Tensor = declare("*cells", "1/s")
    """Source rate of smoke in each cell."""
    obstacle: Tensor = declare("*cells", "m", only_if="has_obstacle")
    """Signed distance of each cell centre to the obstacle, negative inside."""


@dataclass(frozen=True)
class State(Record):
    """The velocity of the fluid, the smoke that it carries, and the force of the obstacle."""

    velocity: Tensor = declare("dim, *faces", "m/s")
    """Velocity. On a staggered grid entry i of component a is at the face between cells i - 1 and i along axis a; on a
    collocated grid it is at the centre of cell i."""
    smoke: Tensor = declare("*cells", "1")
    """Smoke at the centre of each cell."""
    force: Tensor = declare("dim", "m^(dim+1)/s^2")
    """Force on the obstacle in the last step, divided by density; 0 without obstacle."""


@dataclass(frozen=True)
class Smoke(OnGrid, Model):
    """Incompressible flow of constant density with passive or buoyant smoke: everything without a gradient.

    The centre of cell (i, j, k) is at spacing * (i + 1/2, j + 1/2, k + 1/2).
    """

    cells: tuple[int, ...]
    """Number of cells along each of 2 or 3 axes."""
    spacing: float
    """Edge length of a cell [m]."""
    dt: float
    """Time step [s]."""
    boundaries: tuple[str, ...] = ()
    """Boundary kind of each side x-, x+, y-, ...: periodic, closed, open or inflow; all periodic by default.

    closed: a wall; the normal velocity is 0, the tangential one is `boundary_velocity` (or free, with `slip`).
    inflow: the velocity is `boundary_velocity`. open: the pressure is 0, and fluid may enter and leave.
    """
    slip: bool = False
    """True if walls are free-slip."""
    grid: str = "staggered"
    """Grid arrangement: staggered (MAC: Harlow and Welch 1965) or collocated."""
    advection: str = "maccormack"
    """Advection scheme: semi_lagrangian (Stam 1999), first order, or maccormack (Selle et al. 2008), second order."""
    projection: str = "multigrid"
    """Pressure solver: jacobi (a fixed number of sweeps from 0), conjugate_gradients, multigrid or fft."""
    sweeps: int = 6
    """Number of sweeps of jacobi."""
    tolerance: float = 1e-8
    """Tolerance of the iterative solvers: Euclidean norm of the residual, relative to the initial divergence."""
    most_iterations: int = 200
    """Largest number of iterations of these solvers; an unconverged solve causes a warning, not an error."""
    has_obstacle: bool = False
    """True if there is an obstacle."""

    Params, State = Params, State

    def __post_init__(self) -> None:
        require_grid(self, 2, 3)
        require_counts(self, sweeps=0, most_iterations=0)
        require_sides(self, "boundaries", BOUNDARIES, "periodic")
        require_choices(self, grid=GRIDS, advection=ADVECTIONS, projection=PROJECTIONS)
        if self.projection == "fft" and not self.is_periodic:
            remedy = "Use multigrid, or make all sides periodic."
            raise InputError("Smoke.projection", "fft needs periodic sides", list(self.boundaries), remedy)
        if self.grid == "collocated" and not self.is_periodic and set(self.boundaries) & {"open", "inflow"}:
            remedy = 'Use grid = "staggered".'
            constraint = "a collocated grid has periodic or closed sides"
            raise InputError("Smoke.boundaries", constraint, list(self.boundaries), remedy)

    def __hash__(self) -> int:
        return hash((self.cells, self.spacing, self.dt))  # a hash of all fields takes long, and is needed in each step

    @property
    def is_periodic(self) -> bool:
        """True if all sides are periodic."""
        return set(self.boundaries) == {"periodic"}

    @property
    def faces(self) -> Shape:
        """Number of entries of a velocity component along each axis.

        It is the number of cells, plus one along a non-periodic axis of a staggered grid. There, entries beyond a
        component's own faces (the last ones along other axes) are 0 and stay so.
        """
        if self.grid == "collocated":
            return self.cells
        sides = self.boundaries[::2]
        return tuple([n + (side != "periodic") for n, side in zip(self.cells, sides, strict=True)])

    @property
    def units(self) -> Mapping[str, str]:
        """Units of fields of the state that are not on the grid."""
        return {"force": f"m^{self.dim + 1}/s^2"}

    def advice(self, params: Arrays, state: Arrays) -> str:
        """Report the distance that the fluid moves in a step."""
        fastest = float(abs(state["velocity"]).max())
        cells = fastest * self.dt / self.spacing
        return (
            f"The fluid moves at up to {fastest:.3g}, or {cells:.3g} cells per step of {self.dt:.3g}. "
            "Take a smaller dt, or semi_lagrangian advection."
        )
