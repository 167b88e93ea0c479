"""A scene of nodes and springs: the checks of its sections, and the arrays and the model made of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from simphys.scenefile.controller import ControllerSection, check_controller
from simphys.scenefile.demands import demands_of
from simphys.scenefile.model_sections import fill_model, scene_of
from simphys.scenefile.section import EACH, NOTHING, Fields, Key, Problem, Range, Words, rows_of
from simphys.scenefile.sections import Config
from simphys.scenefile.shared import check_given, check_one_of, check_unused
from simphys.simulator import Array

from .lattice import lattice_face
from .markers import SpringMarkers
from .model import MassSpring
from .sections import (
    EnvironmentSection,
    GeometrySection,
    GroundSection,
    MassSpringSimulator,
    MaterialSection,
    StateSection,
)


@scene_of(MassSpring)
class MassSpringConfig(Config):
    """A scene of nodes and springs."""

    SIZES = ((("geometry", "lattice", "shape"), 1000), (("controller", "hidden"), 1000))
    PARAMETERS = (
        {("material", name): name for name in ("stiffness", "damping", "mass", "drag", "air_drag")}
        | {("geometry", "anchors", EACH, name): name for name in ("stiffness", "damping")}
        | {("environment", "ground", name): f"ground_{name}" for name in ("height", "stiffness", "friction")}
    )

    DEMANDS = demands_of(GroundSection, "stiffness", "friction", prefix="ground_")

    ON_DEMAND = ("air_drag",)

    simulator: MassSpringSimulator
    geometry: GeometrySection
    material: MaterialSection = MaterialSection()
    environment: EnvironmentSection = EnvironmentSection()
    state: StateSection = StateSection()
    controller: ControllerSection | None = None

    @property
    def has_air(self) -> bool:
        """True if the drag of the air is given, or unknown, or has a value."""
        return self.material.air_drag is not None or "air_drag" in self.named_parameters

    @classmethod
    def find_sizes(cls, sections: Mapping[str, Any]) -> dict[str, int]:
        return sections["geometry"].sizes if "geometry" in sections else {}

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> Iterator[Problem]:
        geometry, material, controller, control = map(sections.get, ("geometry", "material", "controller", "control"))
        if geometry is None:
            return
        if wrong := [*check_one_of(("geometry",), geometry, "position", "lattice")]:
            yield from wrong
            return
        wrong += _check_geometry(geometry)
        if controller is not None:
            remedy = "Add [[geometry.actuators]], or drop it."
            wrong += check_controller(control, drives=bool(geometry.actuators), remedy=remedy)
        if material is not None:
            wrong += _check_material(geometry, material)
            wrong = wrong or [*_check_rest_lengths(geometry, material)]
        yield from wrong

    def build_fields(self) -> Fields:
        _warn_if_unused(self.geometry, self.material)
        material, anchors = self.material, self.geometry.anchors
        own, ends = self.geometry.place_nodes(), self.geometry.list_springs()
        nodes, dim = own.shape
        velocity = np.zeros((nodes + len(anchors), dim))
        if self.state.velocity is not None:
            velocity[:nodes] = self.state.velocity
        lengths = _spring_lengths(own, ends) if material.rest_length is None else material.rest_length
        ground = self.environment.ground or GroundSection(stiffness=0.0)

        def expand(value: Any, count: int, behind: list[float] | float = 0.0) -> Array:
            """Broadcast a value to `count` elements, and append those of the anchors."""
            return np.concatenate([np.full(count, value, float), np.full(len(anchors), behind, float)])

        params = {
            "stiffness": expand(material.stiffness or 0.0, len(ends), [anchor.stiffness for anchor in anchors]),
            "damping": expand(material.damping, len(ends), [anchor.damping for anchor in anchors]),
            "rest_length": expand(lengths, len(ends)),
            "mass": expand(material.mass, nodes, 1.0),
            "drag": expand(material.drag, nodes),
            "gravity": np.array(self.environment.gravity or [0.0] * dim, dtype=float),
            **{f"ground_{name}": np.array(value) for name, value in ground},
        }
        if self.has_air:
            params["air_drag"] = expand(material.air_drag or 0.0, nodes)
        channels = len(self.geometry.actuators)
        if channels:
            params["amplitude"] = expand(material.amplitude or 0.0, len(ends))
        if channels and self.controller is not None:
            controller = self.controller.make(self.control)
            network = controller.network(senses=(2 * len(velocity) + 1) * dim, outputs=channels)
            params |= network.initial_arrays(self.controller.seed)
            channels = controller.waves
        points = np.array([anchor.point for anchor in anchors], dtype=float).reshape(-1, dim)
        state = {"position": np.concatenate([own, points]), "velocity": velocity}
        pinned = np.zeros(len(velocity), bool)
        markers = SpringMarkers(len(velocity), dim, ends, pinned, conservative=not self.geometry.actuators)
        return Fields(params=params, state=state, nodes=nodes, channels=channels or None, markers=markers)

    def build_model(self) -> MassSpring:
        """Build the model; anchors are pinned nodes and springs, after the scene's own."""
        geometry, ends = self.geometry, self.geometry.list_springs()
        nodes = len(geometry.place_nodes())
        anchored = [[anchor.node, nodes + place] for place, anchor in enumerate(geometry.anchors)]
        pinned = np.zeros(nodes + len(anchored), dtype=bool)
        pinned[nodes:] = True
        pinned[geometry.pinned] = True
        for face in geometry.pinned_faces:
            assert geometry.lattice is not None, "checked on loading the scene"
            pinned[lattice_face(geometry.lattice.shape, face)] = True
        actuator = np.full(len(ends) + len(anchored), -1, np.int32)
        for number, each in enumerate(geometry.actuators):
            actuator[rows_of(each.springs)] = number
        return fill_model(
            self,
            MassSpring,
            ends=np.concatenate([ends, np.array(anchored, dtype=np.int32).reshape(-1, 2)]),
            pinned=pinned,
            anchors=len(anchored),
            actuator=actuator if geometry.actuators else None,
            air=self.has_air,
            controller=None if self.controller is None else self.controller.make(self.control),
        )


def _spring_lengths(position: Array, ends: Array) -> Array:
    """Compute the distances [S] between the ends of springs."""
    return np.linalg.norm(position[ends[:, 1]] - position[ends[:, 0]], axis=1)


def _check_geometry(geometry: GeometrySection) -> Iterator[Problem]:
    """Check that keys go together, that a node has one name, and a spring one actuator."""
    if geometry.lattice is not None:
        remedy = "Drop springs, or list the positions instead."
        yield from check_unused(("geometry", "springs"), geometry.springs, "a lattice has its own springs", remedy)
    else:
        remedy = "List the nodes in pinned."
        yield from check_unused(("geometry", "pinned_faces"), geometry.pinned_faces, "needs a lattice", remedy)
    first: dict[int, str] = {}
    for name, node in geometry.names.items():
        if first.setdefault(node, name) != name:
            remedy = f"Node {node} is {first[node]!r} already: drop one of them."
            yield Problem(("geometry", "names", name), "a node has one name", node, remedy)
    yield from _check_actuators(geometry, len(geometry.list_springs()))


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


def _check_material(geometry: GeometrySection, material: MaterialSection) -> Iterator[Problem]:
    """Check that springs have what they need, and nothing else."""
    springs, actuated = len(geometry.list_springs()), bool(geometry.actuators)
    if springs:
        yield from check_given(("material", "stiffness"), material.stiffness, "springs", needed=True, example="1e3")
    amplitude = material.amplitude
    yield from check_given(("material", "amplitude"), amplitude, "geometry.actuators", needed=actuated, example="0.2")


def _check_rest_lengths(geometry: GeometrySection, material: MaterialSection) -> Iterator[Problem]:
    """Check springs of zero length: these have no direction, and f = k (1 - L/l) d is undefined unless L = 0."""
    if material.rest_length is None:
        return
    position, ends = geometry.place_nodes(), geometry.list_springs()
    rest = np.broadcast_to(np.asarray(material.rest_length), len(ends))
    for spring in np.flatnonzero((_spring_lengths(position, ends) == 0.0) & (rest != 0.0)).tolist():
        constraint = f"a spring of zero length needs the rest length 0, not {rest[spring]:g}"
        remedy = "Move its nodes apart or set its rest length to 0."
        yield Problem(("geometry", "springs", spring), constraint, ends[spring].tolist(), remedy)


def _warn_if_unused(geometry: GeometrySection, material: MaterialSection) -> None:
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
