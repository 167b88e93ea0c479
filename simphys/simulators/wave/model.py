"""The model of a wave simulation: a grid with boundaries, absorbing layers, sources and receivers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from simphys.autograd import Tensor
from simphys.autograd.errors import InputError
from simphys.numerics.stencil import ORDERS, second_difference
from simphys.simulator import Array, Arrays, Grid, Model, Record, Shape, StepLimit, Waves, declare
from simphys.simulator.model_checks import require_choices, require_counts, require_grid, require_layers, require_sides
from simphys.simulator.space import OnGrid
from simphys.simulator.waves import differences_of_second
from simphys.substep import Weights

from .differences import Terms, first, make_weights, second, stack
from .slab import Slab

BOUNDARIES = ("zero", "free", "periodic", "absorbing")
SOURCES = ("point", "plane_x", "plane_y", "plane_z")


@dataclass(frozen=True)
class Params(Record):
    """Physical parameters; each is a Tensor and may require a gradient."""

    speed: Tensor = declare("*cells", "m/s", sign="positive", section="medium")
    """Wave speed in each cell."""
    source_velocity: Tensor = declare("sources, dim", "m/s")
    """Velocity of each source."""
    receiver_position: Tensor = declare("receivers, dim", "m")
    """Position of each receiver."""


@dataclass(frozen=True)
class State(Record):
    """The field at the current and the previous step, and the memory variables of the absorbing layers."""

    height: Tensor = declare("*cells", "any unit")
    """The field u, such as a height or a pressure."""
    previous: Tensor = declare("*cells", "any unit")
    """The field one time step earlier."""
    slope_memory: Tensor = declare("layer_cells", "any unit")
    """psi of the absorbing layers: convolved first derivatives; see `model.slabs`."""
    curvature_memory: Tensor = declare("layer_cells", "any unit")
    """zeta of the absorbing layers: convolved second derivatives."""
    source_position: Tensor = declare("sources, dim", "m")
    """Position of each source; a plane source uses only the component along its normal."""
    received: Tensor = declare("receivers", "any unit")
    """Value of `height` at each receiver."""


@dataclass(frozen=True)
class Wave(OnGrid, Model):
    """The scalar wave equation u_tt = c^2 (laplace u + f) on a regular grid: everything without a gradient.

    Cell (i, j, k) is at spacing * (i, j, k) [m]. The control of a step is the strength of each source [S]:
    f = sum_s strength_s delta(x - x_s). The delta of a point source has dim dimensions, that of a plane source one.
    """

    cells: tuple[int, ...]
    """Number of cells along each of 1, 2 or 3 axes."""
    spacing: float
    """Edge length of a cell [m]."""
    dt: float
    """Time step [s]."""
    order: int = 2
    """Order of the finite differences in space: 2, 4 or 8."""
    boundaries: tuple[str, ...] = ()
    """Boundary condition of each side x-, x+, y-, ...: zero, free, periodic or absorbing; all zero by default.

    zero: the field vanishes outside and is extended oddly, as at a clamped edge or at the free surface of a pressure.
    free: the slope vanishes and the field is extended evenly, as at the free edge of a membrane or at a hard wall.
    absorbing: a layer inside the grid absorbs waves (see `curvature`); behind it the field is zero.
    """
    layer: int = 20
    """Width of absorbing layers, in cells."""
    layer_speed: float = 0.0
    """Design speed of the absorbing layers [m/s], usually the largest in the medium."""
    layer_frequency: float = 0.0
    """Frequency that the layers absorb best [Hz], usually the dominant one."""
    sources: tuple[str, ...] = ()
    """Kind of each of S sources: point, or plane_x, plane_y, plane_z for a plane with this normal."""
    receivers: int = 0
    """Number of receivers, R."""

    Params, State = Params, State

    def __post_init__(self) -> None:
        require_grid(self, 1, 2, 3)
        require_counts(self, order=1, layer=0, receivers=0)
        require_choices(self, order=ORDERS)
        require_sides(self, "boundaries", BOUNDARIES, "zero")
        for axis in range(self.dim):
            layers = self.boundaries[2 * axis : 2 * axis + 2].count("absorbing")
            # the differences of a single one end before the opposite side
            least = max(layers * self.layer + (self.halo if layers == 1 else 0), self.order)
            if self.cells[axis] < least:
                remedy = "Take more cells, a thinner layer or a lower order."
                constraint = f"axis {axis} has at least {least} cells, to hold its absorbing layers and differences"
                raise InputError("Wave.cells", constraint, self.cells[axis], remedy)
        require_layers(self, self.boundaries)
        for kind in self.sources:
            if kind not in SOURCES[: self.dim + 1]:
                raise InputError("Wave.sources", f"each is one of {SOURCES[: self.dim + 1]}", kind, "Correct it.")

    @property
    def halo(self) -> int:
        """Number of cells that a difference reads on either side of its own."""
        return self.order // 2

    @cached_property
    def slabs(self) -> tuple[Slab, ...]:
        """The absorbing layers, in the order of the sides."""
        made: list[Slab] = []
        for side, kind in enumerate(self.boundaries):
            if kind == "absorbing":
                axis = side // 2
                shape = (*self.cells[:axis], self.layer, *self.cells[axis + 1 :])
                first = 0 if side % 2 == 0 else self.cells[axis] - self.layer
                offset = made[-1].offset + math.prod(made[-1].shape) if made else 0
                made.append(Slab(axis, first, self.layer, offset, shape))
        return tuple(made)

    @property
    def layer_cells(self) -> int:
        """Length of each memory variable of the layers."""
        return sum([math.prod(slab.shape) for slab in self.slabs])

    @cached_property
    def laplacian(self) -> Weights:
        """dx^2 laplace u of a field u."""
        return make_weights([term for axis in range(self.dim) for term in self._differences(second, axis)])

    @cached_property
    def layer_slope(self) -> Weights:
        """D u in the cells of the layers."""
        return stack([make_weights(self._differences(first, slab.axis), slab.cells) for slab in self.slabs])

    @cached_property
    def layer_bend(self) -> Weights:
        """D2 u in the cells of the layers."""
        return stack([make_weights(self._differences(second, slab.axis), slab.cells) for slab in self.slabs])

    @cached_property
    def memory_slope(self) -> Weights:
        """D of a memory variable of the layers, which is 0 outside of its layer."""
        ends = ("absorbing", "absorbing")
        return stack([make_weights(first(s.shape, s.axis, ends, self.order, s.offset)) for s in self.slabs])

    @cached_property
    def cells_of_layers(self) -> Weights:
        """Sums over the layers that a cell belongs to."""
        index = np.full((*self.cells, len(self.slabs)), -1)
        for number, slab in enumerate(self.slabs):
            index[..., number][slab.cells] = slab.offset + np.arange(math.prod(slab.shape)).reshape(slab.shape)
        index = index.reshape(-1, len(self.slabs))
        return Weights(index, np.where(index >= 0, 1.0, 0.0))

    def _differences(self, kind: Any, axis: int) -> Terms:
        found: Terms = kind(self.cells, axis, self.boundaries[2 * axis : 2 * axis + 2], self.order)
        return found

    @property
    def even_axes(self) -> Array:
        """Bits of the axes along which each source is constant [S]: all but the normal of a plane."""
        every = 2**self.dim - 1
        bits = [0 if kind == "point" else every - (1 << SOURCES.index(kind) - 1) for kind in self.sources]
        return np.array(bits, np.int32)

    def control_shape(self) -> Shape | None:
        return (len(self.sources),) if self.sources else None

    def describe_grid(self) -> Grid:
        """Describe the cells and the fields worth plotting; `previous` is omitted, as it repeats `height`."""
        return Grid(cells=self.cells, spacing=self.spacing, offset=0.0, fields={"height": "", "speed": "m/s"})

    def describe_waves(self, params: Arrays) -> Waves:
        second = partial(differences_of_second, second_difference(self.order))
        return Waves(float(params["speed"].min()), self.spacing, self.dt, second)

    def largest_dt(self, speed: float) -> float:
        """Return the largest stable time step [s] for waves of this speed (Courant, Friedrichs and Lewy 1928).

        Leapfrog is stable while dt^2 c^2 times the largest eigenvalue of the negative Laplacian is below 4. Each axis
        adds the alternating sum of the difference coefficients to that eigenvalue.
        """
        coefficients = np.array(second_difference(self.order))
        largest = abs(coefficients[0] + 2 * sum([c * (-1) ** k for k, c in enumerate(coefficients) if k]))
        return float(2 * self.spacing / (speed * math.sqrt(self.dim * largest)))

    def step_limits(self, params: Arrays, state: Arrays) -> tuple[StepLimit, ...]:
        fastest = float(params["speed"].max())
        return (StepLimit(self.largest_dt(fastest), f"the largest speed, {fastest:.4g}", "take larger cells"),)
