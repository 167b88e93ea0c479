"""A scene of smoothed particle hydrodynamics: its sections, the arrays and the model made of them, and their checks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from simphys.autograd.errors import InputError
from simphys.scenefile.model_sections import fill_model, fill_record, scene_of
from simphys.scenefile.section import Count, Fields, Key, Length, NonNegative, Positive, Problem, Section, Simulator
from simphys.scenefile.sections import Config
from simphys.scenefile.shared import Side
from simphys.simulator import Array, Arrays
from simphys.simulator.neighbours import count_most, find_nearest, require_room

from .model import SPH, Params
from .place import count_layers, fill_blocks, place_walls

Vector = Annotated[list[float], Field(min_length=2, max_length=3), Length("dim")]
Lengths = Annotated[list[Positive], Field(min_length=2, max_length=3)]
ROOM = 1.7
"""Room in lists of neighbours, in the largest number at the start."""
WHOLE = 1e-6
"""Rounding that is allowed where lengths are whole numbers of spacings."""
NEAREST = 0.5
"""Least distance of two particles at the start, in spacings."""
STIFF = 5.0
"""Least sound speed, in speeds of the fluid at the start or after a fall through its own height."""


class SPHSimulator(Simulator):
    """Options of the simulator.

    spacing [m] of particles at rest. smoothing [m]: a particle meets those within twice this length, by default 1.5
    spacings. skin [m]: by which lists of neighbours reach further, by default 0.2 of the smoothing length. neighbours:
    room in a list, by default 1.7 times what the start has. exponent [1]: of the equation of state, 7 is Tait's, 1
    is linear. diffusion [1] of the density, delta. background [Pa]: pressure at rest, for flows without a free surface.
    """

    name: Literal["sph"]
    spacing: Positive
    smoothing: Positive | None = None
    skin: NonNegative | None = None
    neighbours: Count | None = None
    exponent: Annotated[float, Field(ge=1)] = 7.0
    diffusion: NonNegative = 0.1
    background: NonNegative = 0.0

    @property
    def smoothing_length(self) -> float:
        """Smoothing length [m], given or by default."""
        return 1.5 * self.spacing if self.smoothing is None else self.smoothing


class TankSection(Section):
    """The tank: size [m] of each axis, of 2 or 3, and its walls, such as "x-" at the begin of the first axis and "y+"
    at the end of the second. Axes of `periodic` repeat themselves; other sides without walls are open."""

    size: Lengths
    walls: list[Side] = []
    periodic: list[Literal["x", "y", "z"]] = []


class BlockSection(Section):
    """A block of fluid from `low` to `high` [m] with a velocity [m/s], and with the pressure of rest if hydrostatic."""

    low: Vector
    high: Vector
    velocity: Vector | None = None
    hydrostatic: bool = True


class GaugesSection(Section):
    """Gauges of the fluid's depth at places [m] along the first axis, each the mean over a window of a width [m]."""

    places: Annotated[list[float], Field(min_length=1)]
    width: Positive


@scene_of(SPH, dim="tank.size")
class SPHConfig(Config):
    """A scene of smoothed particle hydrodynamics."""

    SIZES = ((("tank", "size"), 2000),)

    simulator: SPHSimulator
    tank: TankSection
    blocks: Annotated[list[BlockSection], Field(min_length=1)]
    gauges: GaugesSection | None = None

    @property
    def breadth(self) -> float:
        """Breadth of the tank [m], 1 in the plane."""
        return self.tank.size[1] if len(self.tank.size) == 3 else 1.0

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> Iterator[Problem]:
        tank, simulator, blocks = map(sections.get, ("tank", "simulator", "blocks"))
        if tank is None or simulator is None:
            return
        yield from _check_tank(tank, simulator)
        for number, block in enumerate(blocks or ()):
            yield from _check_block(block, ("blocks", number), tank, simulator)

    def place_particles(self) -> tuple[list[Array], Array]:
        """Return positions of the fluid of each block and of the walls, [n, dim] each."""
        chosen, tank = self.simulator, self.tank
        layers = count_layers(chosen.spacing, chosen.smoothing_length)
        return fill_blocks(self.blocks, chosen.spacing), place_walls(tank.size, tank.walls, chosen.spacing, layers)

    def build_fields(self) -> Fields:
        params = fill_record(self, Params)
        blocks, walls = self.place_particles()
        position = np.concatenate([*blocks, walls])
        velocity, density = np.zeros_like(position), np.full(len(position), params["rest_density"])
        begin = 0
        for block, places in zip(self.blocks, blocks, strict=True):
            rows = slice(begin, begin + len(places))
            begin = rows.stop
            velocity[rows] = 0.0 if block.velocity is None else block.velocity
            if block.hydrostatic:
                density[rows] *= self._compress(places, block, params)
        depth = self._measure_depth(position[:begin])
        state = {"position": position, "velocity": velocity, "density": density, "depth": depth}
        return Fields(params=params, state=state, nodes=len(position))

    def _compress(self, places: Array, block: BlockSection, params: Arrays) -> Array:
        """Density of a block at rest under gravity, over that without pressure; gravity points from its surface."""
        gravity = params["gravity"]
        head, n = (places - np.where(gravity < 0, block.high, block.low)) @ gravity, self.simulator.exponent
        return np.asarray((1 + n * head / params["sound_speed"] ** 2) ** (1 / n))

    def _measure_depth(self, fluid: Array) -> Array:
        """Measure the depth at the gauges."""
        if (gauges := self.gauges) is None:
            return np.zeros(0)
        u = np.abs(fluid[:, :1] - np.array(gauges.places)) / gauges.width
        weight = 0.5 * np.clip(1.5 - u, 0, None) ** 2 - 1.5 * np.clip(0.5 - u, 0, None) ** 2
        volume = self.simulator.spacing ** len(self.tank.size)
        return np.asarray(weight.sum(axis=0) * volume / (gauges.width * self.breadth))

    def build_model(self) -> SPH:
        chosen, gauges, tank = self.simulator, self.gauges, self.tank
        blocks, walls = self.place_particles()
        box = tuple([size if axis in tank.periodic else math.inf for axis, size in zip("xyz", tank.size, strict=False)])
        smoothing = chosen.smoothing_length
        skin = 0.2 * smoothing if chosen.skin is None else chosen.skin
        room = chosen.neighbours
        if room is None:
            room = math.ceil(ROOM * count_most(np.concatenate([*blocks, walls]), box, 2 * smoothing + skin))
        return fill_model(
            self,
            SPH,
            fluid_count=sum([len(places) for places in blocks]),
            wall_count=len(walls),
            box=box,
            smoothing=smoothing,
            skin=skin,
            neighbours=room,
            gauges=() if gauges is None else tuple(gauges.places),
            gauge_width=1.0 if gauges is None else gauges.width,
            breadth=self.breadth,
        )

    def require_stable(self, model: Any, params: Any, state: Any) -> None:
        given, position, velocity = params.arrays(), state.position.data, state.velocity.data
        super().require_stable(model, params, state)
        distance, i, j = find_nearest(position, model.box)
        if distance < NEAREST * model.spacing:
            constraint = f"particles {i} and {j} must be at least {NEAREST * model.spacing:.3g} apart, half a spacing"
            raise InputError("blocks", constraint, f"{distance:.3g}", "Move one of the blocks.")
        fluid = position[: model.fluid_count]
        gravity = np.abs(given["gravity"]) * (fluid.max(axis=0) - fluid.min(axis=0)) * ~np.isfinite(model.box)
        fastest = max(float(np.sqrt((velocity**2).sum(axis=1)).max()), float(np.sqrt(2 * gravity.sum())))
        if given["sound_speed"] < STIFF * fastest:
            constraint = f"at least {STIFF:g} times the speed of the fluid, {fastest:.3g}, to be nearly incompressible"
            remedy = f"Take {2 * STIFF * fastest:.2g}."
            raise InputError("material.sound_speed", constraint, f"{given['sound_speed']:g}", remedy)
        require_room(model, position, ROOM, "a particle")


def _check_tank(tank: TankSection, simulator: SPHSimulator) -> Iterator[Problem]:
    smoothing, axes = simulator.smoothing_length, "xyz"[: len(tank.size)]
    if not 1.0 <= smoothing / simulator.spacing <= 3.0:
        constraint = f"must be between 1 and 3 spacings of {simulator.spacing:g}, for sums over neighbours"
        remedy = f"Take {1.5 * simulator.spacing:.3g}, or leave it out."
        yield Problem(("simulator", "smoothing"), constraint, smoothing, remedy)
    for place, side in enumerate(tank.walls):
        if side[0] in tank.periodic:
            yield Problem(("tank", "walls", place), "a periodic axis has no walls", side, "Take it out.")
    for axis, size in zip(axes, tank.size, strict=True):
        key = ("tank", "size", axes.index(axis))
        closed = axis in tank.periodic or f"{axis}+" in tank.walls
        if closed and _is_uneven(size, simulator.spacing):
            constraint = f"must be a whole number of spacings of {simulator.spacing:g}"
            whole = max(1, round(size / simulator.spacing)) * simulator.spacing
            yield Problem(key, constraint, size, f"Take {whole:.6g}.")
        if axis in tank.periodic and size < 4 * smoothing:
            constraint = f"a periodic axis must be at least two cut-offs of 2h long, {4 * smoothing:.4g}"
            yield Problem(key, constraint, size, "Take a longer axis, or a smaller spacing.")


def _check_block(block: BlockSection, key: Key, tank: TankSection, simulator: SPHSimulator) -> Iterator[Problem]:
    for axis, (low, high) in enumerate(zip(block.low, block.high, strict=True)):
        place = (*key, "high", axis)
        if high - low < (1 - WHOLE) * simulator.spacing or _is_uneven(high - low, simulator.spacing):
            constraint = f"must be a whole number of spacings of {simulator.spacing:g} above low, {low:g}"
            yield Problem(place, constraint, high, "Change the block, or the spacing.")
        name, size = "xyz"[axis], tank.size[axis]
        for side, bound, given, outside in (("-", 0.0, low, low < -WHOLE), ("+", size, high, high > size + WHOLE)):
            if outside and (f"{name}{side}" in tank.walls or name in tank.periodic):
                constraint = f"particles must lie in the tank, from 0 to {size:g} along {name}"
                place = (*key, "low" if side == "-" else "high", axis)
                yield Problem(place, constraint, given, f"Take {bound:g}.")


def _is_uneven(length: float, spacing: float) -> bool:
    return abs(length / spacing - round(length / spacing)) > 1e-4
