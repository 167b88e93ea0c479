"""The model of elastic waves: a staggered grid, its sides with absorbing layers, sources and receivers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce

import numpy as np

from simphys.autograd import Tensor
from simphys.autograd.errors import InputError, UnphysicalValue
from simphys.numerics.staggered import ORDERS, least_count, staggered_difference
from simphys.simulator import Array, Arrays, Grid, Model, Record, Shape, Waves, declare
from simphys.simulator.declare import units_of_cells
from simphys.simulator.model_checks import require_choices, require_counts, require_grid, require_layers
from simphys.simulator.space import OnGrid
from simphys.simulator.waves import differences_of_staggered

from .axis import Axis

KINDS = ("free", "wall", "absorbing")


@dataclass(frozen=True)
class Params(Record):
    """Physical parameters; each is a Tensor and may require a gradient."""

    vp: Tensor = declare("*cells", "m/s", sign="positive", section="medium")
    """Speed of compressional waves in each cell."""
    vs: Tensor = declare("*cells", "m/s", sign="positive", section="medium")
    """Speed of shear waves in each cell."""
    density: Tensor = declare("*cells", "kg/m^3", sign="positive", section="medium")
    """Density of each cell."""
    source_position: Tensor = declare("sources, dim", "m")
    """Position (x, z) or (x, y, z) of each source."""
    force: Tensor = declare("sources, dim", "N")
    """Force of each source for a control of 1; in a section by length along y [N/m]."""
    moment: Tensor = declare("sources, stress_components", "N m/s")
    """Moment rates of each source for a control of 1: xx, yy, zz, xy, xz, yz.

    In a section: xx, zz, xz by length along y [N m/(m s)]."""
    receiver_position: Tensor = declare("receivers, dim", "m")
    """Position (x, z) or (x, y, z) of each receiver."""
    fibre_position: Tensor = declare("fibre, dim", "m")
    """Middle of each channel of the fibres."""


@dataclass(frozen=True)
class State(Record):
    """Velocities, half a time step ahead of the stresses' time, stresses, and the memory of the absorbing layers.

    In a section, fields with a y in their names are empty, [0].
    """

    vx: Tensor = declare("*cells", "m/s")
    """Velocity along x at the lower x-face of each cell."""
    vy: Tensor = declare("*cells", "m/s", only_if="in_space")
    """Velocity along y at the lower y-face of each cell."""
    vz: Tensor = declare("*cells", "m/s")
    """Velocity along z, downwards, at the upper face of each cell."""
    sxx: Tensor = declare("*cells", "Pa")
    """Stress xx in the middle of each cell, positive in tension."""
    syy: Tensor = declare("*cells", "Pa", only_if="in_space")
    """Stress yy in the middle of each cell."""
    szz: Tensor = declare("*cells", "Pa")
    """Stress zz in the middle of each cell."""
    sxy: Tensor = declare("*cells", "Pa", only_if="in_space")
    """Stress xy at the edge of each cell where its x and y are least."""
    sxz: Tensor = declare("*cells", "Pa")
    """Stress xz at the edge (in a section, the corner) of each cell where its x and z are least."""
    syz: Tensor = declare("*cells", "Pa", only_if="in_space")
    """Stress yz at the edge of each cell where its y and z are least."""
    memory_sxx_x: Tensor = declare("*layer_x", "Pa")
    """Convolved h d(sxx)/dx in the layers across x."""
    memory_sxy_x: Tensor = declare("*layer_x", "Pa", only_if="in_space")
    """Convolved h d(sxy)/dx."""
    memory_sxz_x: Tensor = declare("*layer_x", "Pa")
    """Convolved h d(sxz)/dx."""
    memory_sxy_y: Tensor = declare("*layer_y", "Pa", only_if="in_space")
    """Convolved h d(sxy)/dy in the layers across y."""
    memory_syy_y: Tensor = declare("*layer_y", "Pa", only_if="in_space")
    """Convolved h d(syy)/dy."""
    memory_syz_y: Tensor = declare("*layer_y", "Pa", only_if="in_space")
    """Convolved h d(syz)/dy."""
    memory_sxz_z: Tensor = declare("*layer_z", "Pa")
    """Convolved h d(sxz)/dz in the layers across z."""
    memory_syz_z: Tensor = declare("*layer_z", "Pa", only_if="in_space")
    """Convolved h d(syz)/dz."""
    memory_szz_z: Tensor = declare("*layer_z", "Pa")
    """Convolved h d(szz)/dz."""
    memory_vx_x: Tensor = declare("*layer_x", "m/s")
    """Convolved h d(vx)/dx."""
    memory_vy_x: Tensor = declare("*layer_x", "m/s", only_if="in_space")
    """Convolved h d(vy)/dx."""
    memory_vz_x: Tensor = declare("*layer_x", "m/s")
    """Convolved h d(vz)/dx."""
    memory_vx_y: Tensor = declare("*layer_y", "m/s", only_if="in_space")
    """Convolved h d(vx)/dy."""
    memory_vy_y: Tensor = declare("*layer_y", "m/s", only_if="in_space")
    """Convolved h d(vy)/dy."""
    memory_vz_y: Tensor = declare("*layer_y", "m/s", only_if="in_space")
    """Convolved h d(vz)/dy."""
    memory_vx_z: Tensor = declare("*layer_z", "m/s")
    """Convolved h d(vx)/dz."""
    memory_vy_z: Tensor = declare("*layer_z", "m/s", only_if="in_space")
    """Convolved h d(vy)/dz."""
    memory_vz_z: Tensor = declare("*layer_z", "m/s")
    """Convolved h d(vz)/dz."""
    received: Tensor = declare("dim receivers", "m/s")
    """vx at all receivers, then vy in space, and then vz at all of them."""
    strain: Tensor = declare("fibre", "1")
    """Mean strain over the gauge of each channel of the fibres, positive in extension."""


def name_axes(cells: Sequence[int]) -> str:
    """Name the axes of a grid: those of a section, or of space."""
    return "xz" if len(cells) == 2 else "xyz"


def name_sides(cells: Sequence[int]) -> tuple[str, ...]:
    """Name the sides of a grid: x-, x+, ... z- (the top), z+."""
    return tuple([axis + side for axis in name_axes(cells) for side in "-+"])


@dataclass(frozen=True)
class Elastic(OnGrid, Model):
    """Elastic waves in a section x, z or in space x, y, z, with z downwards: everything without a gradient.

    Cell (i, j) has its middle at spacing * (i + 1/2, j + 1/2) [m]. The control of a step is the strength of each
    source [S], by which its force and moment rates are multiplied.
    """

    cells: tuple[int, ...]
    """Number of cells along x and z, or along x, y and z."""
    spacing: float
    """Edge length h of a cell [m]."""
    dt: float
    """Time step [s]."""
    order: int = 2
    """Order of the differences in space: 2, 4 or 8; of one half of it at the sides (`numerics.staggered`)."""
    sides: tuple[str, ...] = ("wall", "wall", "free", "wall")
    """Kind of each side, as `name_sides` lists them: free, wall or absorbing; only the top, z-, can be free.

    free: the traction at the top vanishes. wall: rigid and without friction; the velocity across it, and the shear
    stresses at it vanish. absorbing: a layer inside the grid absorbs waves (see `layer`); behind it is a wall.
    """
    layer: int = 10
    """Width of absorbing layers, in cells."""
    layer_speed: float = 0.0
    """Design speed of the absorbing layers [m/s], usually the largest in the medium."""
    layer_frequency: float = 0.0
    """Frequency that the layers absorb best [Hz], usually the dominant one."""
    sources: int = 0
    """Number of sources, S."""
    forces: bool = True
    """True if sources have forces; else `force` has no effect."""
    moments: bool = False
    """True if sources have moment tensors; else `moment` has no effect."""
    receivers: int = 0
    """Number of receivers, R."""
    fibre: tuple[tuple[float, ...], ...] = ()
    """Gauge of each channel of the fibres: a vector along it, as long as the channel [m]."""

    Params, State = Params, State

    def __post_init__(self) -> None:
        require_grid(self)
        require_counts(self, order=1, layer=0, sources=0, receivers=0)
        if len(self.cells) not in (2, 3):
            constraint, remedy = "a section has 2 dimensions, x and z, and space has 3", "Give 2 or 3 counts."
            raise InputError("Elastic.cells", constraint, list(self.cells), remedy)
        require_choices(self, order=ORDERS)
        names = name_sides(self.cells)
        if len(self.sides) != len(names) or not set(self.sides) <= set(KINDS):
            constraint = f"must hold {len(names)} of {KINDS}, one for each of {names}"
            raise InputError("Elastic.sides", constraint, list(self.sides), "Name one for each side.")
        if "free" in (*self.sides[:-2], self.sides[-1]):
            constraint, remedy = "only the top, z-, can be free", "Let the other sides be wall or absorbing."
            raise InputError("Elastic.sides", constraint, list(self.sides), remedy)
        for name, count in zip(self.axes, self.cells, strict=True):
            least = max(self.layer * self.count_layers(name), least_count(self.order))
            if count < least:
                constraint = f"axis {name} has at least {least} cells, for its layers and differences"
                remedy = "Take more cells, a thinner layer or a lower order."
                raise InputError("Elastic.cells", constraint, count, remedy)
        if not all([len(gauge) == len(self.cells) and any(gauge) for gauge in self.fibre]):
            constraint = f"a gauge is a vector of {len(self.cells)} components, not all of them 0"
            raise InputError("Elastic.fibre", constraint, self.fibre, "Give one for each channel.")
        require_layers(self, self.sides)

    # --- axes and fields

    @property
    def axes(self) -> str:
        """Names of the axes, in order."""
        return name_axes(self.cells)

    @cached_property
    def x(self) -> Axis:
        """Axis x."""
        return self._make_axis("x")

    @cached_property
    def y(self) -> Axis:
        """Axis y, in space alone."""
        return self._make_axis("y")

    @cached_property
    def z(self) -> Axis:
        """Axis z."""
        return self._make_axis("z")

    def _make_axis(self, name: str) -> Axis:
        number = self.axes.index(name)
        ends = [kind == "absorbing" for kind in self.sides[2 * number : 2 * number + 2]]
        return Axis(self.cells[number], self.order, self.layer, *ends)

    def axis(self, name: str) -> Axis:
        """Return an axis by its name."""
        found: Axis = getattr(self, name)
        return found

    def count_layers(self, axis: str) -> int:
        """Count the absorbing layers across an axis."""
        number = self.axes.index(axis)
        return self.sides[2 * number : 2 * number + 2].count("absorbing")

    @property
    def in_space(self) -> bool:
        """True in space, False in a section, which lacks the fields with a y."""
        return "y" in self.axes

    @property
    def layer_x(self) -> Shape:
        """Shape of the memory of the layers across x: that at x- first."""
        return self._layer_shape("x")

    @property
    def layer_y(self) -> Shape:
        """Shape of the memory of the layers across y."""
        return self._layer_shape("y")

    @property
    def layer_z(self) -> Shape:
        """Shape of the memory of the layers across z."""
        return self._layer_shape("z")

    def _layer_shape(self, axis: str) -> Shape:
        number = self.axes.index(axis)
        return (*self.cells[:number], self.layer * self.count_layers(axis), *self.cells[number + 1 :])

    @property
    def velocities(self) -> tuple[str, ...]:
        """Names of the velocities."""
        return tuple([f"v{i}" for i in self.axes])

    @property
    def normal_stresses(self) -> tuple[str, ...]:
        """Names of the normal stresses."""
        return tuple([f"s{i}{i}" for i in self.axes])

    @property
    def shear_stresses(self) -> tuple[str, ...]:
        """Names of the shear stresses: xz, or xy, xz, yz."""
        return tuple([f"s{i}{j}" for i in self.axes for j in self.axes if i < j])

    @property
    def stress_components(self) -> tuple[str, ...]:
        """Names of all stresses, in the order of the moment rates."""
        return (*self.normal_stresses, *self.shear_stresses)

    def place(self, field: str) -> tuple[float, ...]:
        """Return the place of a velocity or stress within a cell, in units of the spacing: at faces 0, else 1/2."""
        across = field[1:] if field not in self.normal_stresses else ""
        return tuple([0.0 if axis in across else 0.5 for axis in self.axes])

    def weights(self, field: str) -> Array:
        """Weights of summation by parts at the places of a field, [*cells]: 1 but near sides."""
        along = [self.axis(name).weights(place) for name, place in zip(self.axes, self.place(field), strict=True)]
        return np.asarray(reduce(np.multiply.outer, along))

    def mask(self, field: str) -> Array:
        """0 where a field vanishes at the sides x-, y- and z-, else 1, [*cells]."""
        found = np.ones(self.cells)
        for number, place in enumerate(self.place(field)):
            moves = field == "vz" and self.sides[-2] == "free"
            if place == 0 and not (moves and self.axes[number] == "z"):
                found[(slice(None),) * number + (0,)] = 0
        return found

    # --- the contract

    @property
    def around(self) -> tuple[str, ...]:
        """Continuation of the places beyond the sides for sources: what goes above the top, comes as far below it."""
        return (*self.beyond[:-2], "free", "absorbing")

    @property
    def beyond(self) -> tuple[str, ...]:
        """Continuation of the fields beyond the sides for receivers: by 0, but see `above`."""
        return ("absorbing",) * len(self.sides)

    @property
    def above(self) -> Shape:
        """Shape of the two rows above the top, to which fields are continued for points near it."""
        return (*self.cells[:-1], 2)

    def describe_waves(self, params: Arrays) -> Waves:
        staggered = partial(differences_of_staggered, staggered_difference(self.order))
        return Waves(float(params["vs"].min()), self.spacing, self.dt, staggered)

    def largest_dt(self, speed: float) -> float:
        """Return the largest stable time step [s] for compressional waves of this speed."""
        dim = float(len(self.cells))
        return self.spacing / (speed * np.sqrt(dim) * sum(np.abs(staggered_difference(self.order))))

    def control_shape(self) -> Shape | None:
        return (self.sources,) if self.sources else None

    def describe_grid(self) -> Grid:
        fields = units_of_cells(self, State) | units_of_cells(self, Params)
        return Grid(cells=self.cells, spacing=self.spacing, offset=0.5, fields=fields, depth=True)


def check_params(params: Arrays) -> None:
    """Raise UnphysicalValue unless the bulk modulus is positive."""
    vp, vs = np.broadcast_arrays(params["vp"], params["vs"])
    low = 3 * vp**2 <= 4 * vs**2
    if low.any():
        at = tuple(map(int, np.argwhere(low)[0]))
        constraint, found = "vp must be above 1.155 vs, for a positive bulk modulus", f"{vp[at]:g} and {vs[at]:g}"
        raise UnphysicalValue("Elastic", constraint, f"{found} in cell {list(at)}", "Raise vp, or lower vs.")
