"""A scene of nodes and springs: its sections, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simphys.scenefile.section import EACH, Fields, Problem
from simphys.scenefile.sections import Config

from . import scene, scene_checks
from .model import MassSpring, check_params


class MassSpringConfig(Config):
    """A scene of nodes and springs."""

    SIZES = ((("geometry", "lattice", "shape"), 1000), (("controller", "hidden"), 1000))

    PARAMETERS = (
        {("material", name): name for name in ("stiffness", "damping", "mass", "drag")}
        | {("geometry", "anchors", EACH, name): name for name in ("stiffness", "damping")}
        | {("environment", "ground", name): f"ground_{name}" for name in ("height", "stiffness", "friction")}
    )

    simulator: scene.MassSpringSimulator
    geometry: scene.GeometrySection
    material: scene.MaterialSection = scene.MaterialSection()
    environment: scene.EnvironmentSection = scene.EnvironmentSection()
    state: scene.StateSection = scene.StateSection()
    controller: scene.ControllerSection | None = None

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> list[Problem]:
        return scene_checks.find_problems(sections)

    def build_fields(self) -> Fields:
        scene_checks.warn_if_unused(self.geometry, self.material)
        return scene.build_fields(self)

    def build_model(self) -> MassSpring:
        return scene.build_model(self)

    def require_stable(self, model: Any, params: Any, state: Any) -> None:
        check_params({"mass": params.mass.data})
        super().require_stable(model, params, state)
