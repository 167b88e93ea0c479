"""Sections of a scene of billiards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simphys.scenefile.section import Fields, Problem
from simphys.scenefile.sections import Config
from simphys.simulator import Model
from simphys.simulator.bodies import Bodies
from simphys.simulators import billiards
from simphys.simulators.billiards import scene, scene_checks


class BilliardsConfig(Config):
    """A scene of balls on a table."""

    simulator: scene.BilliardsSimulator
    geometry: scene.Geometry
    material: scene.Material
    table: scene.Table = scene.Table()
    state: scene.State = scene.State()

    @classmethod
    def simulator_problems(cls, sections: Mapping[str, Any]) -> list[Problem]:
        return scene_checks.problems(
            geometry=sections.get("geometry"),
            material=sections.get("material"),
            table=sections.get("table"),
            state=sections.get("state"),
            loss=sections.get("loss"),
        )

    @classmethod
    def simulator_fields(cls, sections: Mapping[str, Any]) -> Fields:
        return scene.fields(
            geometry=sections["geometry"],
            material=sections["material"],
            table=sections["table"],
            state=sections["state"],
        )

    def build(self) -> tuple[Model, billiards.Params, billiards.State]:
        return billiards.build(self)

    def require_stable(self, model: Any, params: Any, state: Any) -> None:
        """Raise InputError if balls overlap or are off the table; every time step is stable."""
        scene_checks.require_apart(state.position.data, *[p.data for p in (params.radius, params.lower, params.upper)])

    def bodies_of(self, model: Any) -> Bodies:
        return scene.bodies(self)
