"""A scene of material points: its sections, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from simphys.scenefile.section import EACH, Fields, Problem
from simphys.scenefile.sections import Config

from . import scene, scene_checks
from .model import MPM


class MPMConfig(Config):
    """A scene of material points."""

    SIZES = ((("grid", "cells"), 50), (("bodies", EACH, "counts"), 500))

    simulator: scene.MPMSimulator
    grid: scene.GridSection
    bodies: list[scene.BodySection]
    environment: scene.EnvironmentSection = scene.EnvironmentSection()
    colliders: list[scene.ColliderSection] = []

    @cached_property
    def seeding(self) -> scene.Seeding:
        """The particles of all bodies, seeded once."""
        return scene.Seeding([scene.particles(body, self.grid) for body in self.bodies])

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> list[Problem]:
        return scene_checks.find_problems(sections)

    def build_fields(self) -> Fields:
        return scene.build_fields(self)

    def build_model(self) -> MPM:
        return scene.build_model(self)
