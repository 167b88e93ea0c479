"""A scene of shallow water: its sections, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simphys.scenefile.section import EACH, Fields, Problem
from simphys.scenefile.sections import Config

from . import scene, stability
from .model import ShallowWater, check_params


class ShallowConfig(Config):
    """A scene of shallow water."""

    FILES = (("medium", EACH, "file"), ("state", EACH, "file"))

    SIZES = ((("grid", "cells"), 50),)

    simulator: scene.ShallowSimulator
    grid: scene.GridSection
    medium: scene.MediumSection
    state: scene.StateSection = scene.StateSection()

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> list[Problem]:
        return scene.find_problems(sections)

    def build_fields(self) -> Fields:
        return scene.build_fields(self)

    def build_model(self) -> ShallowWater:
        return scene.build_model(self)

    def require_stable(self, model: Any, params: Any, state: Any) -> None:
        check_params(params.arrays())
        stability.require_wet(params, state)
        super().require_stable(model, params, state)
