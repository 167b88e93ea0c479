"""Consistency checks within and between the sections that describe material points, grid and colliders."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from simphys.numerics.orientation import matrices
from simphys.rollout.budget import format_size, measure_free
from simphys.scenefile.section import NOTHING, Key, Problem, Words
from simphys.scenefile.shared import check_axes, check_one_of, check_sides
from simphys.simulator import Array

from .collider import SHAPES
from .laws import LAW_PARAMETERS, LAWS
from .sections import SHAPE_KEYS, BodySection, ColliderSection, GridSection

PARTICLE_BYTES = 500
"""Memory [B] that one particle takes at least: parameters, state and their copies."""


def find_problems(sections: Mapping[str, Any]) -> Iterator[Problem]:
    """Find all problems. A section that is itself invalid is absent; checks that need it are skipped."""
    grid, bodies, colliders = map(sections.get, ("grid", "bodies", "colliders"))
    wrong = [] if grid is None else list(_check_grid(grid))
    dim = None if grid is None else len(grid.cells)
    if bodies is not None and not bodies:
        wrong.append(Problem(("bodies",), "there must be a body", NOTHING, "Add a [[bodies]] section."))
    for place, body in enumerate(bodies or []):
        wrong += _check_body(("bodies", place), body, dim)
    if dim is not None:
        for place, collider in enumerate(colliders or []):
            wrong += _check_collider(("colliders", place), collider, dim)
    if grid is not None and bodies is not None:
        wrong = wrong or list(_check_counts(grid, bodies))
        wrong = wrong or list(_check_places(grid, bodies))
        if not wrong:
            for place, collider in enumerate(colliders or []):
                wrong += _check_overlap(("colliders", place), collider, grid, bodies)
    yield from wrong


def _check_grid(grid: GridSection) -> Iterator[Problem]:
    least = 2 * grid.margin + 2
    for axis, count in enumerate(grid.cells):
        if count < least:
            constraint = f"must be at least {least}, as walls take {grid.margin} nodes at each side"
            yield Problem(("grid", "cells", axis), constraint, count, "Give more nodes.")
    yield from check_sides(("grid", "walls"), grid.walls, len(grid.cells))


def _check_body(key: Key, body: BodySection, dim: int | None) -> Iterator[Problem]:
    yield from _check_shape(key, body)
    for name in ("lower", "upper", "centre", "origin", "counts", "velocity", "fibre"):
        if dim is not None:
            yield from check_axes((*key, name), getattr(body, name), dim)
    if body.lower and body.upper and len(body.lower) == len(body.upper) and not np.all(np.less(body.lower, body.upper)):
        constraint = f"must be beyond the lower corner {body.lower} along every axis"
        yield Problem((*key, "upper"), constraint, body.upper, "Exchange the corners, or give the box a size.")
    if body.per_cell is not None and body.particle_spacing is not None:
        both = {"per_cell": body.per_cell, "particle_spacing": body.particle_spacing}
        yield Problem(key, "must have only one of per_cell and particle_spacing", both, "Drop one.")
    yield from check_one_of(key, body, "density", "particle_mass")
    if body.fibre is not None and not any(body.fibre):
        yield Problem((*key, "fibre"), "must have a direction", body.fibre, "Give a nonzero vector.")
    if body.fibre is not None and body.actuator is None:
        remedy = "Add actuator = 0, or drop fibre."
        yield Problem((*key, "fibre"), "is only for a body with an actuator", body.fibre, remedy)
    yield from _check_law(key, body)


def _check_shape(key: Key, body: BodySection) -> Iterator[Problem]:
    for shape, names in SHAPE_KEYS.items():
        for name in names:
            value = getattr(body, name)
            if shape == body.shape and value is None:
                remedy = f"Add {name}: a {shape} is described by {' and '.join(names)}."
                yield Problem((*key, name), f"a {shape} needs {name}", NOTHING, remedy)
            elif shape != body.shape and value is not None:
                remedy = f"A {body.shape} is described by {' and '.join(SHAPE_KEYS[body.shape])}."
                yield Problem((*key, name), f"is for a {shape}, not for a {body.shape}", value, remedy)


def _check_law(key: Key, body: BodySection) -> Iterator[Problem]:
    if body.law not in LAWS:
        yield Problem((*key, "law"), "must be a constitutive law", body.law, f"Known: {', '.join(LAWS)}.")
        return
    reads = LAWS[body.law].PARAMETERS
    for name in LAW_PARAMETERS:
        value, given = body.parameter(name), getattr(body, name)
        if name in reads and value is None:
            remedy = f"The law {body.law} uses {', '.join(reads)}."
            yield Problem((*key, name), f"the law {body.law} needs {name}", NOTHING, f"Add it. {remedy}")
        elif name not in reads and given is not None:
            remedy = f"It uses {', '.join(reads)}."
            yield Problem((*key, name), f"the law {body.law} does not use {name}", given, f"Drop it. {remedy}")


def _check_collider(key: Key, collider: ColliderSection, dim: int) -> Iterator[Problem]:
    yield from check_axes((*key, "position"), collider.position, dim)
    yield from check_axes((*key, "velocity"), collider.velocity, dim)
    count = dim if collider.shape == "box" else SHAPES[collider.shape]
    if len(collider.size) != count:
        constraint = f"a {collider.shape} has {count} size{'' if count == 1 else 's'}"
        remedy = {
            "sphere": "Give its radius.",
            "box": "Give half of each edge.",
            "capsule": "Give half of the distance between its centres, and the radius.",
            "plane": "Omit it.",
        }[collider.shape]
        yield Problem((*key, "size"), constraint, collider.size, remedy)
    for name, plane, space in (
        ("rotation", "an angle [rad]", "a quaternion (w, x, y, z)"),
        ("spin", "a number", "a vector"),
    ):
        value = getattr(collider, name)
        if value is not None and isinstance(value, list) != (dim == 3):
            yield Problem((*key, name), f"must be {plane if dim == 2 else space} in {dim}-D", value, "Correct it.")
    if isinstance(collider.rotation, list) and not any(collider.rotation):
        yield Problem((*key, "rotation"), "must not be zero", collider.rotation, "For no rotation, give [1, 0, 0, 0].")


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
