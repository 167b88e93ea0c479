"""A scene of incompressible flow with smoke: its sections, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simphys.autograd import tensor
from simphys.scenefile.section import EACH, Fields, Problem
from simphys.scenefile.sections import Config

from . import outline, scene, scene_checks
from .model import Smoke


class SmokeConfig(Config):
    """A scene of incompressible flow with smoke."""

    FILES = (("obstacle", "file"), ("state", EACH, "file"))

    SIZES = ((("grid", "cells"), 100), (("obstacle", "outline", "modes"), 100))

    simulator: scene.SmokeSimulator
    grid: scene.GridSection
    fluid: scene.FluidSection = scene.FluidSection()
    sides: dict[scene.Side, scene.SideFlowSection] = {}
    emitters: list[scene.EmitterSection] = []
    obstacle: scene.ObstacleSection | None = None
    state: scene.StateSection = scene.StateSection()

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> list[Problem]:
        return scene_checks.find_problems(sections)

    def build_fields(self) -> Fields:
        return scene.build_fields(self)

    def build_model(self) -> Smoke:
        return scene.build_model(self)

    def design(self) -> outline.Design | None:
        """Build the outline of an obstacle."""
        design = scene.design(self.obstacle)
        return outline.Design(**{name: tensor(values) for name, values in design.items()}) if design else None

    def designed(self, model: Any, params: Any, design: Any) -> Any:
        """Give the parameters the obstacle with this outline."""
        given = None if self.obstacle is None else self.obstacle.outline
        if given is None:
            return params
        return params.replace(obstacle=outline.distance(model, given.centre, given.radius, design))
