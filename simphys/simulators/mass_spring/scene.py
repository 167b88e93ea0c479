"""A scene of nodes and springs: the arrays and the model made of its sections."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.nn import Controller
from simphys.scenefile.demands import demands_of
from simphys.scenefile.entry_names import BODIES
from simphys.scenefile.model_sections import scene_of
from simphys.scenefile.section import EACH, Fields, rows_of
from simphys.scenefile.sections import Config
from simphys.simulator import Array

from . import scene_checks
from .lattice import lattice_face
from .markers import SpringMarkers
from .model import MassSpring
from .sections import (
    ControllerSection,
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

    NAMED = (
        ("geometry", "anchors", EACH, "node"),
        ("geometry", "springs", EACH, EACH),
        ("geometry", "pinned", EACH),
    )

    ROWS = dict.fromkeys(("position", "velocity", "mass", "drag", "air_drag"), BODIES)

    DEMANDS = demands_of(GroundSection, "stiffness", "friction", prefix="ground_")

    find_problems = staticmethod(scene_checks.find_problems)

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

    def build_fields(self) -> Fields:
        scene_checks.warn_if_unused(self.geometry, self.material)
        material, anchors = self.material, self.geometry.anchors
        own, ends = self.geometry.place_nodes(), self.geometry.list_springs()
        nodes, dim = own.shape
        velocity = np.zeros((nodes + len(anchors), dim))
        if self.state.velocity is not None:
            velocity[:nodes] = self.state.velocity
        lengths = scene_checks.spring_lengths(own, ends) if material.rest_length is None else material.rest_length
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
        if channels and self.controller is not None and (controller := self._controller()) is not None:
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
        nodes, dim = geometry.place_nodes().shape
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
        return MassSpring(
            np.concatenate([ends, np.array(anchored, dtype=np.int32).reshape(-1, 2)]),
            pinned,
            dim,
            self.time.dt,
            self.simulator.integrator,
            anchors=len(anchored),
            actuator=actuator if geometry.actuators else None,
            air=self.has_air,
            controller=self._controller(),
        )

    def _controller(self) -> Controller | None:
        if (given := self.controller) is None:
            return None
        waves = getattr(self.control, "waves", 0)
        return Controller(waves=waves, hidden=given.hidden, goal=tuple(given.goal), scale=given.scale)
