"""A scene of point charges: its sections, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simphys.scenefile.section import Fields, Problem
from simphys.scenefile.sections import Config

from . import scene
from .model import Charges


class ChargesConfig(Config):
    """A scene of point charges."""

    simulator: scene.ChargesSimulator
    geometry: scene.GeometrySection
    material: scene.MaterialSection
    state: scene.StateSection = scene.StateSection()

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> list[Problem]:
        return scene.find_problems(sections)

    def build_fields(self) -> Fields:
        return scene.build_fields(self)

    def build_model(self) -> Charges:
        return scene.build_model(self)
