"""Which sections a scene of pendulums has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simphys.scenefile.section import Fields, Problem
from simphys.scenefile.sections import Config
from simphys.simulator import Model
from simphys.simulators import pendulum
from simphys.simulators.pendulum import scene
from simphys.simulators.pendulum.spherical.sphere import OntoSphere


class PendulumConfig(Config):
    """A scene of a chain of pendulums, or of a spherical pendulum."""

    simulator: scene.PendulumSimulator
    geometry: scene.Geometry
    material: scene.Material = scene.Material()
    environment: scene.Environment = scene.Environment()
    state: scene.State = scene.State()

    @classmethod
    def simulator_problems(cls, sections: Mapping[str, Any]) -> list[Problem]:
        return scene.problems(
            simulator=sections.get("simulator"),
            geometry=sections.get("geometry"),
            material=sections.get("material"),
            environment=sections.get("environment"),
            state=sections.get("state"),
        )

    @classmethod
    def simulator_fields(cls, sections: Mapping[str, Any]) -> Fields:
        return scene.fields(
            simulator=sections["simulator"],
            geometry=sections["geometry"],
            material=sections["material"],
            environment=sections["environment"],
            state=sections["state"],
        )

    def build(self) -> tuple[Model, Any, Any]:
        return pendulum.build(self)

    def completed(self, state: Any) -> Any:
        """A start that is sought stays on the sphere."""
        if self.simulator.kind == "chain":
            return state
        direction, rate = OntoSphere.apply(*state.tensors())
        return state.replace(direction=direction, rate=rate)
