"""Sections of a scene file for smoothed particle hydrodynamics, and the arrays that they define."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from simphys.scenefile.section import Count, Fields, NonNegative, Positive, Problem, Section, Simulator

from .model import SPH, Params
from .place import count_layers, fill_blocks, place_walls
from .stability import count_most

Vector = Annotated[list[float], Field(min_length=2, max_length=3)]
Lengths = Annotated[list[Positive], Field(min_length=2, max_length=3)]
ROOM = 1.7
"""Room in lists of neighbours, in the largest number at the start."""
WHOLE = 1e-6
"""Rounding that is allowed where lengths are whole numbers of spacings."""
SIDES = ("x-", "x+", "y-", "y+", "z-", "z+")


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


class TankSection(Section):
    """The tank: size [m] of each axis, of 2 or 3, and its walls, such as "x-" at the begin of the first axis and "y+"
    at the end of the second. Axes of `periodic` repeat themselves; other sides without walls are open."""

    size: Lengths
    walls: list[Literal["x-", "x+", "y-", "y+", "z-", "z+"]] = []
    periodic: list[Literal["x", "y", "z"]] = []


class BlockSection(Section):
    """A block of fluid from `low` to `high` [m] with a velocity [m/s], and with the pressure of rest if hydrostatic."""

    low: Vector
    high: Vector
    velocity: Vector | None = None
    hydrostatic: bool = True


class MaterialSection(Section):
    """The fluid: density at rest [kg/m^3], sound speed [m/s], viscosity [Pa s], and slip length at walls [m]."""

    density: Positive = 1000.0
    sound_speed: Positive
    viscosity: NonNegative = 0.0
    slip_length: NonNegative = 0.0


class EnvironmentSection(Section):
    """Gravity [m/s^2], a vector; by default there is none."""

    gravity: Vector | None = None


class GaugesSection(Section):
    """Gauges of the fluid's depth at places [m] along the first axis, each the mean over a window of a width [m]."""

    places: Annotated[list[float], Field(min_length=1)]
    width: Positive


def periods(tank: TankSection) -> tuple[float, ...]:
    """Return the period [m] of each axis, inf for those that do not repeat themselves."""
    return tuple([size if axis in tank.periodic else math.inf for axis, size in zip("xyz", tank.size, strict=False)])


def find_smoothing(chosen: SPHSimulator) -> float:
    return 1.5 * chosen.spacing if chosen.smoothing is None else chosen.smoothing


def find_skin(chosen: SPHSimulator) -> float:
    return 0.2 * find_smoothing(chosen) if chosen.skin is None else chosen.skin


def place_particles(config: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return positions of fluid and of walls, [n, dim] each."""
    chosen, tank = config.simulator, config.tank
    fluid = np.concatenate(fill_blocks(config.blocks, chosen.spacing))
    layers = count_layers(chosen.spacing, find_smoothing(chosen))
    return fluid, place_walls(tank.size, tank.walls, chosen.spacing, layers)


def find_gravity(config: Any) -> np.ndarray:
    given = config.environment.gravity
    return np.zeros(len(config.tank.size)) if given is None else np.array(given)


def build_fields(config: Any) -> Fields:
    """Expand every parameter field and state component to full length."""
    material, gravity = config.material, find_gravity(config)
    blocks = fill_blocks(config.blocks, config.simulator.spacing)
    fluid, walls = place_particles(config)
    position = np.concatenate([fluid, walls])
    velocity, density = np.zeros_like(position), np.full(len(position), material.density)
    begin = 0
    for block, places in zip(config.blocks, blocks, strict=True):
        rows = slice(begin, begin + len(places))
        begin = rows.stop
        velocity[rows] = 0.0 if block.velocity is None else block.velocity
        if block.hydrostatic:
            density[rows] *= compress(config, places, block)
    params = {name: np.array(getattr(material, name)) for name in ("sound_speed", "viscosity", "slip_length")}
    params |= {"rest_density": np.array(material.density), "gravity": gravity}
    state = {"position": position, "velocity": velocity, "density": density, "depth": measure(config, fluid)}
    return Fields(params={name: params[name] for name in Params.names()}, state=state, nodes=len(position))


def compress(config: Any, places: np.ndarray, block: BlockSection) -> np.ndarray:
    """Density of a block at rest under gravity, over that without pressure; gravity points away from its surface."""
    gravity, c, n = find_gravity(config), config.material.sound_speed, config.simulator.exponent
    surface = np.where(gravity < 0, block.high, block.low)
    head = (places - surface) @ gravity
    return np.asarray((1 + n * head / c**2) ** (1 / n))


def measure(config: Any, fluid: np.ndarray) -> np.ndarray:
    """Measure the depth at the gauges."""
    gauges, spacing, size = config.gauges, config.simulator.spacing, config.tank.size
    if gauges is None:
        return np.zeros(0)
    u = np.abs(fluid[:, :1] - np.array(gauges.places)) / gauges.width
    weight = 0.5 * np.clip(1.5 - u, 0, None) ** 2 - 1.5 * np.clip(0.5 - u, 0, None) ** 2
    return np.asarray(weight.sum(axis=0) * spacing ** len(size) / (gauges.width * find_breadth(size)))


def find_breadth(size: list[float]) -> float:
    """Return the tank's breadth [m], 1 in the plane."""
    return size[1] if len(size) == 3 else 1.0


def build_model(config: Any) -> SPH:
    """Build the model of a validated scene."""
    chosen, gauges, size = config.simulator, config.gauges, config.tank.size
    fluid, walls = place_particles(config)
    box, smoothing, skin = periods(config.tank), find_smoothing(chosen), find_skin(chosen)
    room = chosen.neighbours
    if room is None:
        room = math.ceil(ROOM * count_most(np.concatenate([fluid, walls]), box, 2 * smoothing + skin))
    return SPH(
        fluid_count=len(fluid),
        wall_count=len(walls),
        box=box,
        dt=config.time.dt,
        spacing=chosen.spacing,
        smoothing=smoothing,
        skin=skin,
        neighbours=room,
        exponent=chosen.exponent,
        diffusion=chosen.diffusion,
        background=chosen.background,
        gauges=() if gauges is None else tuple(gauges.places),
        gauge_width=1.0 if gauges is None else gauges.width,
        breadth=find_breadth(size),
    )


def find_problems(sections: Mapping[str, Any]) -> Iterator[Problem]:
    """Find all problems. A section that is itself invalid is absent, and checks that depend on it are skipped."""
    tank, simulator, blocks = (sections.get(name) for name in ("tank", "simulator", "blocks"))
    environment = sections.get("environment")
    if tank is None or simulator is None:
        return
    dim = len(tank.size)
    yield from _check_tank(tank, simulator)
    if environment is not None and environment.gravity is not None and len(environment.gravity) != dim:
        yield _components(("environment", "gravity"), environment.gravity, dim)
    for number, block in enumerate(blocks or ()):
        yield from _check_block(block, ("blocks", number), tank, simulator)


def _components(key: tuple[str | int, ...], found: list[float], dim: int) -> Problem:
    constraint = f"must have {dim} components, as tank.size"
    return Problem(key=key, constraint=constraint, found=found, remedy=f"Give {dim}.")


def _check_tank(tank: TankSection, simulator: SPHSimulator) -> Iterator[Problem]:
    smoothing, axes = find_smoothing(simulator), "xyz"[: len(tank.size)]
    if not 1.0 <= smoothing / simulator.spacing <= 3.0:
        constraint = f"must be between 1 and 3 spacings of {simulator.spacing:g} m, for sums over neighbours"
        remedy = f"Take {1.5 * simulator.spacing:.3g} m, or leave it out."
        yield Problem(key=("simulator", "smoothing"), constraint=constraint, found=smoothing, remedy=remedy)
    for side in tank.walls:
        if side[0] not in axes or side[0] in tank.periodic:
            constraint = f"walls are at sides of the axes {', '.join(axes)} that are not periodic"
            yield Problem(key=("tank", "walls"), constraint=constraint, found=side, remedy="Take it out.")
    for axis, size in zip(axes, tank.size, strict=True):
        key = ("tank", "size", axes.index(axis))
        closed = axis in tank.periodic or f"{axis}+" in tank.walls
        if closed and _is_uneven(size, simulator.spacing):
            constraint = f"must be a whole number of spacings of {simulator.spacing:g} m"
            whole = max(1, round(size / simulator.spacing)) * simulator.spacing
            yield Problem(key=key, constraint=constraint, found=size, remedy=f"Take {whole:.6g} m.")
        if axis in tank.periodic and size < 4 * smoothing:
            constraint = f"a periodic axis must be at least two cut-offs of 2h long, {4 * smoothing:.4g} m"
            yield Problem(
                key=key, constraint=constraint, found=size, remedy="Take a longer axis, or a smaller spacing."
            )


def _check_block(
    block: BlockSection, key: tuple[str | int, ...], tank: TankSection, simulator: SPHSimulator
) -> Iterator[Problem]:
    for name in ("low", "high", "velocity"):
        given = getattr(block, name)
        if given is not None and len(given) != len(tank.size):
            yield _components((*key, name), given, len(tank.size))
            return
    for axis, (low, high) in enumerate(zip(block.low, block.high, strict=True)):
        place = (*key, "high", axis)
        if high - low < (1 - WHOLE) * simulator.spacing or _is_uneven(high - low, simulator.spacing):
            constraint = f"must be a whole number of spacings of {simulator.spacing:g} m above low, {low:g} m"
            yield Problem(key=place, constraint=constraint, found=high, remedy="Change the block, or the spacing.")
        name, size = "xyz"[axis], tank.size[axis]
        for side, bound, given, outside in (("-", 0.0, low, low < -WHOLE), ("+", size, high, high > size + WHOLE)):
            if outside and (f"{name}{side}" in tank.walls or name in tank.periodic):
                constraint = f"particles must lie in the tank, from 0 to {size:g} m along {name}"
                place = (*key, "low" if side == "-" else "high", axis)
                yield Problem(key=place, constraint=constraint, found=given, remedy=f"Take {bound:g} m.")


def _is_uneven(length: float, spacing: float) -> bool:
    return abs(length / spacing - round(length / spacing)) > 1e-4
