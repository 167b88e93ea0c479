"""A scene of balls on a table: its sections, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simphys.scenefile.section import Fields, Problem
from simphys.scenefile.sections import Config

from . import scene, scene_checks
from .model import Billiards
from .placement import check_start


class BilliardsConfig(Config):
    """A scene of balls on a table."""

    simulator: scene.BilliardsSimulator
    geometry: scene.GeometrySection
    material: scene.MaterialSection
    table: scene.TableSection = scene.TableSection()
    state: scene.StateSection = scene.StateSection()

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> list[Problem]:
        return scene_checks.find_problems(sections)

    def build_fields(self) -> Fields:
        return scene.build_fields(self)

    def build_model(self) -> Billiards:
        return scene.build_model(self)

    def require_stable(self, model: Any, params: Any, state: Any) -> None:
        """Accept any time step, but no balls that overlap or lie off the table."""
        check_start(params.arrays(), state.arrays())
