"""A scene of heat conduction: its sections, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simphys.scenefile.section import EACH, Fields, Problem
from simphys.scenefile.sections import Config

from . import scene
from .model import Heat


class HeatConfig(Config):
    """A scene of heat conduction."""

    FILES = (("medium", EACH, "file"), ("state", EACH, "file"))

    SIZES = ((("grid", "cells"), 50),)

    simulator: scene.HeatSimulator
    grid: scene.GridSection
    medium: scene.MediumSection
    state: scene.StateSection

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> list[Problem]:
        return list(scene.find_problems(sections))

    def build_fields(self) -> Fields:
        return scene.build_fields(self)

    def build_model(self) -> Heat:
        return scene.build_model(self)
