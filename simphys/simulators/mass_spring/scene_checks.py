"""Checks within and between the sections of a mass-spring scene."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from simphys.scenefile.control import PatternSection
from simphys.scenefile.section import NOTHING, Key, Problem, Range, Words, rows_of
from simphys.scenefile.shared import check_index, check_length, check_one_of, check_rows, check_side
from simphys.simulator import Array

from .sections import ControllerSection, GeometrySection, MaterialSection


def spring_lengths(position: Array, ends: Array) -> Array:
    """Compute the distances [S] between the ends of springs."""
    return np.linalg.norm(position[ends[:, 1]] - position[ends[:, 0]], axis=1)


def find_problems(sections: Mapping[str, Any]) -> list[Problem]:
    """Collect all problems. A section that is itself invalid is absent; checks that depend on it are skipped."""
    names = ("geometry", "material", "environment", "state", "controller", "control")
    geometry, material, environment, state, controller, control = map(sections.get, names)
    if geometry is None:
        return []
    if found := [*check_one_of(("geometry",), geometry, "position", "lattice")] or [*_check_positions(geometry)]:
        return found
    position, springs = geometry.place_nodes(), len(geometry.list_springs())
    count, dim = position.shape
    velocity = getattr(state, "velocity", None)
    found += _check_names(geometry.names, count)
    for place, node in enumerate(geometry.pinned):
        found += check_index(("geometry", "pinned", place), node, "node", count)
    for place, anchor in enumerate(geometry.anchors):
        found += check_index(("geometry", "anchors", place, "node"), anchor.node, "node", count)
        found += check_length(("geometry", "anchors", place, "point"), anchor.point, dim, "axis")
    for place, pair in enumerate(geometry.springs or []):
        found += _check_spring(("geometry", "springs", place), pair, count)
    found += _check_actuators(geometry, springs)
    found += check_length(("environment", "gravity"), getattr(environment, "gravity", None), dim, "axis")
    found += check_length(("state", "velocity"), velocity, count, "node")
    found += check_rows(("state", "velocity"), velocity, dim, "axis")
    if controller is not None:
        found += _check_controller(geometry, controller, isinstance(control, PatternSection), dim)
    if material is not None:
        found += _check_material(material, nodes=count, springs=springs)
        found += _check_amplitude(geometry, material)
        if not found:
            found += _check_rest_lengths(geometry, material, position)
    return found


def _check_positions(geometry: GeometrySection) -> Iterator[Problem]:
    key: Key = ("geometry",)
    lattice, position = geometry.lattice, geometry.position
    if lattice is not None:
        dim = len(lattice.shape)
        if geometry.springs is not None:
            constraint, remedy = "a lattice has its own springs", "Drop springs, or list the positions instead."
            yield Problem((*key, "springs"), constraint, geometry.springs, remedy)
        yield from check_length((*key, "lattice", "origin"), lattice.origin, dim, "axis")
        for place, face in enumerate(geometry.pinned_faces):
            yield from check_side((*key, "pinned_faces", place), face, dim)
    if position is not None:
        if faces := geometry.pinned_faces:
            yield Problem((*key, "pinned_faces"), "needs a lattice", faces, "List the nodes in pinned.")
        yield from check_rows((*key, "position"), position, len(position[0]), "axis of the first node")


def _check_names(names: Mapping[str, int], count: int) -> Iterator[Problem]:
    """Check that names are those of nodes, each of which has one at most."""
    first: dict[int, str] = {}
    for name, node in names.items():
        key: Key = ("geometry", "names", name)
        yield from check_index(key, node, "node", count)
        if first.setdefault(node, name) != name:
            remedy = f"Node {node} is {first[node]!r} already: drop one of them."
            yield Problem(key, "a node has one name", node, remedy)


def _check_spring(key: Key, pair: list[int], count: int) -> Iterator[Problem]:
    for side, node in enumerate(pair):
        yield from check_index((*key, side), node, "node", count)
    if pair[0] == pair[1]:
        yield Problem(key, "a spring must join two different nodes", pair, "Drop it or change one end.")


def _check_actuators(geometry: GeometrySection, springs: int) -> Iterator[Problem]:
    """Check that each actuator drives springs, that these exist, and that no other actuator drives them."""
    owners: dict[int, int] = {}
    for place, actuator in enumerate(geometry.actuators):
        key: Key = ("geometry", "actuators", place, "springs")
        chosen = actuator.springs
        listed = [chosen.first, chosen.last] if isinstance(chosen, Range) else chosen
        if any(spring >= springs for spring in listed):
            constraint = f"must be indices of the {springs} springs, counted from 0"
            remedy = f"Give indices from 0 to {springs - 1}." if springs else "Add springs."
            yield Problem(key, constraint, max(listed), remedy)
            continue
        driven = np.arange(springs)[rows_of(chosen)].tolist()
        if not driven:
            yield Problem(key, "an actuator drives a spring", NOTHING, "Name one or more.")
        for spring in driven:
            if (owner := owners.setdefault(spring, place)) != place:
                found = Words(f"spring {spring}, which actuator {owner} drives already")
                yield Problem(key, "a spring has at most one actuator", found, "Remove it from one of them.")
                break


def _check_controller(
    geometry: GeometrySection, controller: ControllerSection, has_waves: bool, dim: int
) -> Iterator[Problem]:
    key: Key = ("controller",)
    yield from check_length((*key, "goal"), controller.goal, dim, "axis")
    if not geometry.actuators:
        yield Problem(key, "needs actuators to drive", NOTHING, "Add [[geometry.actuators]], or drop it.")
    if not has_waves:
        remedy = 'Give [control] with kind = "pattern", waves and frequency.'
        yield Problem(key, "needs a pattern as its control", NOTHING, remedy)


def _check_amplitude(geometry: GeometrySection, material: MaterialSection) -> Iterator[Problem]:
    key: Key = ("material", "amplitude")
    if geometry.actuators and material.amplitude is None:
        yield Problem(key, "actuated springs need an amplitude", NOTHING, "Add amplitude = 0.2, for example.")
    if not geometry.actuators and material.amplitude is not None:
        yield Problem(key, "belongs to actuated springs", material.amplitude, "Add [[geometry.actuators]], or drop it.")


def _check_material(material: MaterialSection, *, nodes: int, springs: int) -> Iterator[Problem]:
    if material.stiffness is None and springs:
        constraint = f"the {springs} springs need a stiffness"
        yield Problem(("material", "stiffness"), constraint, NOTHING, "Add stiffness = 1e3, for example.")
    for name, value in material:
        count, what = (nodes, "node") if name in ("mass", "drag", "air_drag") else (springs, "spring")
        yield from check_length(("material", name), value, count, what)


def warn_if_unused(geometry: GeometrySection, material: MaterialSection) -> None:
    """Warn of properties of springs in a scene that has none but anchors, which have their own."""
    if len(geometry.list_springs()):
        return
    given = {name: getattr(material, name) for name in ("stiffness", "damping", "rest_length")}
    for name, value in given.items():
        if value in (MaterialSection.model_fields[name].default, []):
            continue
        why, remedy = "the scene has no springs", "Drop it, or add geometry.springs."
        if geometry.anchors and name == "rest_length":
            why, remedy = "the only springs of the scene are its anchors, whose rest length is 0", "Drop it."
        elif geometry.anchors:
            why = f"the only springs of the scene are its anchors, which have a {name} of their own"
            remedy = f"Set geometry.anchors.0.{name} instead."
        warnings.warn(f"material.{name} = {value} changes nothing: {why}. {remedy}", stacklevel=2)


def _check_rest_lengths(geometry: GeometrySection, material: MaterialSection, position: Array) -> Iterator[Problem]:
    """Check springs of zero length: these have no direction, and f = k (1 - L/l) d is undefined unless L = 0."""
    if material.rest_length is None:
        return
    ends = geometry.list_springs()
    rest = np.broadcast_to(np.asarray(material.rest_length), len(ends))
    for spring in np.flatnonzero((spring_lengths(position, ends) == 0.0) & (rest != 0.0)).tolist():
        constraint = f"a spring of zero length needs the rest length 0, not {rest[spring]:g}"
        remedy = "Move its nodes apart or set its rest length to 0."
        yield Problem(("geometry", "springs", spring), constraint, ends[spring].tolist(), remedy)
