"""Checks within and between the sections of a mass-spring scene."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from simphys.scenefile.control import PatternSection
from simphys.scenefile.section import NOTHING, Key, Problem, Range, Words, rows_of
from simphys.simulators.mass_spring.scene import (
    ControllerSection,
    EnvironmentSection,
    GeometrySection,
    MaterialSection,
    StateSection,
    geometry_positions,
    geometry_springs,
    spring_lengths,
)


def find_problems(sections: Mapping[str, Any]) -> list[Problem]:
    """Collect all problems. A section that is itself invalid is None; checks that depend on it are skipped."""
    geometry: GeometrySection | None = sections.get("geometry")
    material: MaterialSection | None = sections.get("material")
    environment: EnvironmentSection | None = sections.get("environment")
    state: StateSection | None = sections.get("state")
    controller: ControllerSection | None = sections.get("controller")
    control: Any = sections.get("control")
    waves = control.waves if isinstance(control, PatternSection) else None
    if geometry is None:
        return []
    found = list(_check_positions(geometry))
    if found:
        return found
    position = geometry_positions(geometry)
    count, dim = position.shape
    found += _check_nodes(geometry, count)
    found += _check_springs(geometry, count)
    found += _check_actuators(geometry, _spring_count(geometry))
    for place, anchor in enumerate(geometry.anchors):
        found += _check_length(("geometry", "anchors", place, "point"), anchor.point, dim, "axis")
    if environment is not None and environment.gravity is not None:
        found += _check_length(("environment", "gravity"), environment.gravity, dim, "axis")
    if state is not None and state.velocity is not None:
        found += _check_velocity(state.velocity, count, dim)
    if controller is not None:
        found += _check_controller(geometry, controller, waves, dim)
    if material is not None:
        found += _check_material(material, nodes=count, springs=_spring_count(geometry))
        found += _check_amplitude(geometry, material)
        if not found:
            found += _check_rest_lengths(geometry, material, position)
    return found


def _check_positions(geometry: GeometrySection) -> Iterator[Problem]:
    key: Key = ("geometry",)
    lattice, position = geometry.lattice, geometry.position
    if (lattice is None) == (position is None):
        found = Words("neither" if lattice is None else "both")
        yield Problem(key=key, constraint="needs one of position and lattice", found=found, remedy="Give exactly one.")
        return
    if lattice is not None:
        dim = len(lattice.shape)
        if geometry.springs is not None:
            constraint, remedy = "a lattice has its own springs", "Drop springs, or list the positions instead."
            yield Problem(key=(*key, "springs"), constraint=constraint, found=geometry.springs, remedy=remedy)
        if lattice.origin is not None:
            yield from _check_length((*key, "lattice", "origin"), lattice.origin, dim, "axis")
        for place, face in enumerate(geometry.pinned_faces):
            if face[0] not in "xyz"[:dim]:
                constraint = f"must be a face of a lattice in {dim}-D"
                remedy = f"Its axes are {', '.join('xyz'[:dim])}."
                yield Problem(key=(*key, "pinned_faces", place), constraint=constraint, found=face, remedy=remedy)
    if position is not None:
        if geometry.pinned_faces:
            faces, remedy = geometry.pinned_faces, "List the nodes in pinned."
            yield Problem(key=(*key, "pinned_faces"), constraint="needs a lattice", found=faces, remedy=remedy)
        for node, row in enumerate(position):
            yield from _check_length((*key, "position", node), row, len(position[0]), "axis of the first node")


def _check_nodes(geometry: GeometrySection, count: int) -> Iterator[Problem]:
    for place, node in enumerate(geometry.pinned):
        yield from _check_node(("geometry", "pinned", place), node, count)
    for place, anchor in enumerate(geometry.anchors):
        yield from _check_node(("geometry", "anchors", place, "node"), anchor.node, count)


def _spring_count(geometry: GeometrySection) -> int:
    """Number of the scene's own springs, whose node indices may still be invalid."""
    return len(geometry.springs or []) if geometry.lattice is None else len(geometry_springs(geometry))


def _check_springs(geometry: GeometrySection, count: int) -> Iterator[Problem]:
    for place, pair in enumerate(geometry.springs or []):
        key: Key = ("geometry", "springs", place)
        for side, node in enumerate(pair):
            yield from _check_node((*key, side), node, count)
        if pair[0] == pair[1]:
            constraint = "a spring must join two different nodes"
            yield Problem(key=key, constraint=constraint, found=pair, remedy="Drop it or change one end.")


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
            yield Problem(key=key, constraint=constraint, found=max(listed), remedy=remedy)
            continue
        driven = np.arange(springs)[rows_of(chosen)].tolist()
        if not driven:
            yield Problem(key=key, constraint="an actuator drives a spring", found=NOTHING, remedy="Name one or more.")
        for spring in driven:
            if (owner := owners.setdefault(spring, place)) != place:
                found = Words(f"spring {spring}, which actuator {owner} drives already")
                remedy = "Remove it from one of them."
                yield Problem(key=key, constraint="a spring has at most one actuator", found=found, remedy=remedy)
                break


def _check_controller(
    geometry: GeometrySection, controller: ControllerSection, waves: int | None, dim: int
) -> Iterator[Problem]:
    key: Key = ("controller",)
    yield from _check_length((*key, "goal"), controller.goal, dim, "axis")
    if not geometry.actuators:
        remedy = "Add [[geometry.actuators]], or drop it."
        yield Problem(key=key, constraint="needs actuators to drive", found=NOTHING, remedy=remedy)
    if waves is None:
        remedy = 'Give [control] with kind = "pattern", waves and frequency.'
        yield Problem(key=key, constraint="needs a pattern as its control", found=NOTHING, remedy=remedy)


def _check_amplitude(geometry: GeometrySection, material: MaterialSection) -> Iterator[Problem]:
    key: Key = ("material", "amplitude")
    if geometry.actuators and material.amplitude is None:
        remedy = "Add amplitude = 0.2, for example."
        yield Problem(key=key, constraint="actuated springs need an amplitude", found=NOTHING, remedy=remedy)
    if not geometry.actuators and material.amplitude is not None:
        remedy = "Add [[geometry.actuators]], or drop it."
        yield Problem(key=key, constraint="belongs to actuated springs", found=material.amplitude, remedy=remedy)


def _check_material(material: MaterialSection, *, nodes: int, springs: int) -> Iterator[Problem]:
    if material.stiffness is None and springs:
        yield Problem(
            key=("material", "stiffness"),
            constraint=f"the {springs} springs need a stiffness",
            found=NOTHING,
            remedy="Add stiffness = 1e3, for example.",
        )
    for name, count, what in (
        ("stiffness", springs, "spring"),
        ("damping", springs, "spring"),
        ("rest_length", springs, "spring"),
        ("amplitude", springs, "spring"),
        ("mass", nodes, "node"),
        ("drag", nodes, "node"),
    ):
        value = getattr(material, name)
        if isinstance(value, list):
            yield from _check_length(("material", name), value, count, what)


def warn_if_unused(geometry: GeometrySection, material: MaterialSection) -> None:
    """Warn of properties of springs in a scene that has none but anchors, which have their own."""
    if _spring_count(geometry):
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


def _check_rest_lengths(
    geometry: GeometrySection, material: MaterialSection, position: np.ndarray
) -> Iterator[Problem]:
    """Check springs of zero length: these have no direction, and f = k (1 - L/l) d is undefined unless L = 0."""
    if material.rest_length is None:
        return
    ends = geometry_springs(geometry)
    rest = np.broadcast_to(np.asarray(material.rest_length), len(ends))
    for spring in np.flatnonzero((spring_lengths(position, ends) == 0.0) & (rest != 0.0)).tolist():
        yield Problem(
            key=("geometry", "springs", spring),
            constraint=f"a spring of zero length needs the rest length 0, not {rest[spring]:g}",
            found=ends[spring].tolist(),
            remedy="Move its nodes apart or set its rest length to 0.",
        )


def _check_velocity(velocity: list[list[float]], nodes: int, dim: int) -> Iterator[Problem]:
    yield from _check_length(("state", "velocity"), velocity, nodes, "node")
    for node, row in enumerate(velocity):
        yield from _check_length(("state", "velocity", node), row, dim, "axis")


def _check_node(key: Key, node: int, count: int) -> Iterator[Problem]:
    if node >= count:
        constraint = f"must be the index of one of {count} nodes, counted from 0"
        yield Problem(key=key, constraint=constraint, found=node, remedy=f"Give an index from 0 to {count - 1}.")


def _check_length(key: Key, value: list[float] | list[list[float]], count: int, what: str) -> Iterator[Problem]:
    if len(value) != count:
        constraint = f"must have {count} elements, one for each {what}"
        remedy = f"It has {len(value)}: give {count}."
        yield Problem(key=key, constraint=constraint, found=value, remedy=remedy)
