"""A scene of material points: the checks of its sections, and the arrays and the model made of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from simphys.numerics.orientation import matrices
from simphys.rollout.budget import format_size, measure_free
from simphys.scenefile.demands import demands_of
from simphys.scenefile.model_sections import fill_model, fill_record, scene_of
from simphys.scenefile.section import EACH, Fields, Key, Problem, Words
from simphys.scenefile.sections import Config
from simphys.scenefile.shared import check_accepted, check_given, check_one_of, check_turn, check_unused, kinds_of_sides
from simphys.simulator import Array

from .laws import LAW_PARAMETERS, LAWS
from .model import MPM, Params
from .sections import SHAPE_KEYS, BodySection, ColliderSection, GridSection, MPMSimulator

MASS_FLOOR = 1e-10
"""Mass floor of the model, relative to the lightest particle."""
PARTICLE_BYTES = 500
"""Memory [B] that one particle takes at least: parameters, state and their copies."""


@scene_of(MPM, dim="grid.cells")
class MPMConfig(Config):
    """A scene of material points."""

    SIZES = ((("grid", "cells"), 50), (("bodies", EACH, "counts"), 500))
    DEMANDS = demands_of(ColliderSection, collider_friction="friction") | demands_of(
        BodySection, *LAW_PARAMETERS, mass="particle_mass", volume="particle_volume"
    )

    simulator: MPMSimulator
    grid: GridSection
    bodies: Annotated[list[BodySection], Field(min_length=1)]
    colliders: list[ColliderSection] = []

    @cached_property
    def seeding(self) -> list[tuple[Array, float]]:
        """The particles of each body, seeded once: positions [n, dim], and the volume of each."""
        return [body.seed(self.grid) for body in self.bodies]

    @property
    def laws(self) -> tuple[str, ...]:
        """The laws in use, in the order in which bodies name them."""
        return tuple(dict.fromkeys([body.law for body in self.bodies]))

    def _repeat(self, values: Any, dtype: type = float) -> Array:
        """Repeat the value of each body for all of its particles."""
        return np.repeat(np.asarray(values, dtype), [len(position) for position, _ in self.seeding], axis=0)

    def _volumes_and_masses(self) -> tuple[list[float], list[float]]:
        """Return volume and mass of each particle of each body."""
        pairs = list(zip(self.bodies, self.seeding, strict=True))
        volumes = [body.particle_volume or share for body, (_, share) in pairs]
        masses = [body.particle_mass or (body.density or 0.0) * v for body, v in zip(self.bodies, volumes, strict=True)]
        return volumes, masses

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> Iterator[Problem]:
        grid, bodies, colliders = map(sections.get, ("grid", "bodies", "colliders"))
        wrong = [] if grid is None else list(_check_grid(grid))
        for place, body in enumerate(bodies or []):
            wrong += _check_body(("bodies", place), body)
        if grid is not None:
            for place, collider in enumerate(colliders or []):
                wrong += _check_collider(("colliders", place), collider, len(grid.cells))
        if grid is not None and bodies is not None:
            wrong = wrong or list(_check_counts(grid, bodies))
            wrong = wrong or list(_check_places(grid, bodies))
            if not wrong:
                for place, collider in enumerate(colliders or []):
                    wrong += _check_overlap(("colliders", place), collider, grid, bodies)
        yield from wrong

    def build_fields(self) -> Fields:
        """Build every field; a parameter that only some of the laws use is 0 for the particles of the other laws."""
        bodies, colliders, dim = self.bodies, self.colliders, len(self.grid.cells)
        spins, rotations = (1, 1) if dim == 2 else (3, 4)
        volumes, masses = self._volumes_and_masses()
        position = np.concatenate([position for position, _ in self.seeding])
        params = {
            "mass": self._repeat(masses),
            "volume": self._repeat(volumes),
            **fill_record(self, Params),
            "collider_velocity": _stack_rows([c.velocity or [0.0] * dim for c in colliders], dim),
            "collider_spin": _stack_rows([c.spin or [0.0] * spins for c in colliders], spins),
            "collider_friction": np.array([c.friction for c in colliders], dtype=float),
        }
        for name in LAW_PARAMETERS:
            values = [body.parameter(name) if name in LAWS[body.law].PARAMETERS else None for body in bodies]
            is_used = any(name in LAWS[law].PARAMETERS for law in self.laws)
            params[name] = self._repeat([value or 0.0 for value in values]) if is_used else np.zeros(0)
        hidden = any(LAWS[law].HIDDEN for law in self.laws)
        state = {
            "position": position,
            "velocity": self._repeat([body.velocity or [0.0] * dim for body in bodies]),
            "affine": np.zeros((len(position), dim, dim)),
            "deformation": np.tile(np.eye(dim), (len(position), 1, 1)),
            "plastic": self._repeat([LAWS[body.law].REST for body in bodies]) if hidden else np.zeros(0),
            "collider_position": _stack_rows([c.position for c in colliders], dim),
            "collider_rotation": _stack_rows([c.start for c in colliders], rotations),
        }
        actuators = max([-1 if body.actuator is None else body.actuator for body in bodies]) + 1
        channels = actuators + len(colliders) * (dim + spins)
        return Fields(params=params, state=state, nodes=len(position), channels=channels or None)

    def build_model(self) -> MPM:
        grid, bodies, laws, dim = self.grid, self.bodies, self.laws, len(self.grid.cells)
        actuator = self._repeat([-1 if b.actuator is None else b.actuator for b in bodies], np.int32)
        fibre = np.array([b.fibre or [0.0] * (dim - 1) + [1.0] for b in bodies], dtype=float)
        fibre /= np.linalg.norm(fibre, axis=1, keepdims=True)
        return fill_model(
            self,
            MPM,
            particles=len(actuator),
            laws=laws,
            law=self._repeat([laws.index(b.law) for b in bodies], np.int32) if len(laws) > 1 else None,
            actuator=actuator if actuator.max() >= 0 else None,
            fibre=self._repeat(fibre) if any(b.fibre for b in bodies) else None,
            walls=kinds_of_sides(grid.walls, dim, "separating"),
            colliders=tuple([collider.make() for collider in self.colliders]),
            mass_floor=MASS_FLOOR * min(self._volumes_and_masses()[1]),
            group=self._repeat(range(len(bodies)), np.int32),
        )


def _stack_rows(rows: Sequence[Any], width: int) -> Array:
    return np.array([np.ravel(row) for row in rows], dtype=float).reshape(-1, width)


def _check_grid(grid: GridSection) -> Iterator[Problem]:
    least = 2 * grid.margin + 2
    for axis, count in enumerate(grid.cells):
        if count < least:
            constraint = f"must be at least {least}, as walls take {grid.margin} nodes at each side"
            yield Problem(("grid", "cells", axis), constraint, count, "Give more nodes.")


def _check_body(key: Key, body: BodySection) -> Iterator[Problem]:
    for shape, names in SHAPE_KEYS.items():
        for name in names:
            yield from check_given((*key, name), getattr(body, name), f"a {shape}", needed=shape == body.shape)
    if body.lower and body.upper and not np.all(np.less(body.lower, body.upper)):
        constraint = f"must be beyond the lower corner {body.lower} along every axis"
        yield Problem((*key, "upper"), constraint, body.upper, "Exchange the corners, or give the box a size.")
    yield from check_one_of(key, body, "per_cell", "particle_spacing", optional=True)
    yield from check_one_of(key, body, "density", "particle_mass")
    if body.actuator is None:
        yield from check_unused((*key, "fibre"), body.fibre, "is only for a body with an actuator")
    if body.law not in LAWS:
        yield Problem((*key, "law"), "must be a constitutive law", body.law, f"Known: {', '.join(LAWS)}.")
        return
    reads = LAWS[body.law].PARAMETERS
    for name in LAW_PARAMETERS:
        if name in reads:
            yield from check_given((*key, name), body.parameter(name), f"the law {body.law}", needed=True)
        else:
            constraint, remedy = f"the law {body.law} does not use it", f"Drop it; it uses {', '.join(reads)}."
            yield from check_unused((*key, name), getattr(body, name), constraint, remedy)


def _check_collider(key: Key, collider: ColliderSection, dim: int) -> Iterator[Problem]:
    yield from check_accepted((*key, "size"), lambda: collider.make().require_valid(dim))
    yield from check_turn((*key, "rotation"), collider.rotation, dim, "an angle [rad]", "a quaternion (w, x, y, z)")
    yield from check_turn((*key, "spin"), collider.spin, dim, "a number", "a vector")


def _check_counts(grid: GridSection, bodies: Sequence[BodySection]) -> Iterator[Problem]:
    """Check that the particles of each body fit into memory, before any is made."""
    for place, body in enumerate(bodies):
        spacing, (lower, upper, _) = body.find_spacing(grid), _extent(body, grid)
        size = math.prod([max(1.0, edge / spacing) for edge in (upper - lower).tolist()]) * PARTICLE_BYTES
        if size > (free := measure_free()):
            constraint = f"its particles must fit into the free memory, {format_size(free)}"
            found = Words(f"{size:.3g} bytes or more, for particles {spacing:g} apart")
            yield Problem(("bodies", place), constraint, found, "Make it smaller, or give a larger particle_spacing.")


def _check_places(grid: GridSection, bodies: Sequence[BodySection]) -> Iterator[Problem]:
    """Check that bodies are inside of the walls and do not overlap."""
    lower = np.full(len(grid.cells), grid.margin * grid.spacing)
    upper = (np.array(grid.cells) - grid.margin) * grid.spacing
    slack = 1e-9 * grid.spacing
    for place, body in enumerate(bodies):
        if not len(body.seed(grid)[0]):
            remedy = "Raise per_cell, or make the body larger."
            yield Problem(("bodies", place), "a body must have a particle", Words("none"), remedy)
        low, high, _ = _extent(body, grid)
        outside = {"lower": (low, low < lower - slack), "upper": (high, high > upper + slack)}
        for corner, (where, is_outside) in outside.items():
            if is_outside.any():
                room = f"from {_format_corner(lower)} to {_format_corner(upper)}"
                constraint = f"a body must be inside of the walls, {room}"
                found = Words(f"its {corner} corner at {_format_corner(where)}")
                yield Problem(("bodies", place), constraint, found, "Move it, make it smaller, or give more cells.")
    for (one, body), (other, second) in combinations(enumerate(bodies), 2):
        if _distance(_extent(body, grid), _extent(second, grid)) < -slack:
            constraint = "bodies must not overlap: their mass would count twice"
            yield Problem(("bodies", other), constraint, Words(f"an overlap with bodies.{one}"), "Move one of them.")


def _extent(body: BodySection, grid: GridSection) -> tuple[Array, Array, float]:
    """Compute lower and upper corner of a body's bounding box, and the radius of its rounding: a ball's, or 0."""
    if body.shape == "ball":
        assert body.centre is not None and body.radius is not None, "checked before"
        return np.array(body.centre) - body.radius, np.array(body.centre) + body.radius, body.radius
    if body.shape == "box":
        return np.array(body.lower), np.array(body.upper), 0.0
    assert body.origin is not None and body.counts is not None, "checked before"
    spacing, first = body.find_spacing(grid), np.array(body.origin)
    return first, first + (np.array(body.counts) - 1) * spacing, 0.0


def _distance(one: tuple[Array, Array, float], other: tuple[Array, Array, float]) -> float:
    """Compute the distance of two boxes with rounded corners; if they overlap, minus the depth of the overlap."""
    radius = one[2] + other[2]
    gap = np.maximum(one[0] - other[1], other[0] - one[1]) + radius  # between the inner boxes, without the rounding
    outside = np.linalg.norm(np.maximum(gap, 0.0))
    return float(outside + min(gap.max(), 0.0) - radius)


def _check_overlap(
    key: Key, collider: ColliderSection, grid: GridSection, bodies: Sequence[BodySection]
) -> Iterator[Problem]:
    """Check that no particle starts inside of a collider."""
    for place, body in enumerate(bodies):
        position, _ = body.seed(grid)
        inside = int(np.count_nonzero(_is_inside(collider, position)))
        if inside:
            found = Words(f"{inside} of the {len(position)} particles of bodies.{place} inside of it")
            yield Problem(key, "a collider must not overlap with a body initially", found, "Move one of them.")


def _is_inside(collider: ColliderSection, position: Array) -> Array:
    """Return True for each of the points [n, dim] that is inside of a collider."""
    local = (position - np.array(collider.position)) @ matrices(collider.start)
    size = collider.size
    match collider.shape:
        case "sphere":
            return np.linalg.norm(local, axis=1) < size[0]
        case "box":
            return np.all(np.abs(local) < size, axis=1)
        case "plane":
            return local[:, -1] < 0
        case "capsule":
            local[:, 0] -= np.clip(local[:, 0], -size[0], size[0])
            return np.linalg.norm(local, axis=1) < size[1]


def _format_corner(corner: Array) -> str:
    return f"({', '.join(f'{value:.4g}' for value in corner)})"
