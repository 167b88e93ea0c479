"""A scene of pendulums: its sections, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simphys.scenefile.section import Fields, Problem
from simphys.scenefile.sections import Config

from . import scene
from .chain import Chain
from .spherical import Spherical
from .spherical.sphere import ProjectToSphere


class PendulumConfig(Config):
    """A scene of a chain of pendulums, or of a spherical pendulum."""

    simulator: scene.PendulumSimulator
    geometry: scene.GeometrySection
    material: scene.MaterialSection = scene.MaterialSection()
    environment: scene.EnvironmentSection = scene.EnvironmentSection()
    state: scene.StateSection = scene.StateSection()

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> list[Problem]:
        return scene.find_problems(sections)

    def build_fields(self) -> Fields:
        return scene.build_fields(self)

    def build_model(self) -> Chain | Spherical:
        return scene.build_model(self)

    def completed(self, state: Any, design: Any = None, params: Any = None) -> Any:
        """Keep an unknown start on the sphere."""
        if self.simulator.kind == "chain":
            return state
        direction, rate = ProjectToSphere.apply(self.build_model(), *state.tensors())
        return state.replace(direction=direction, rate=rate)
