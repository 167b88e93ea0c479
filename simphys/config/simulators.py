"""Which sections belong to which simulator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simphys.config.sections import Config
from simphys.mass_spring import scene as mass_spring
from simphys.mass_spring.scene_checks import problems
from simphys.section import Fields, Problem


class MassSpringConfig(Config):
    """A scene of nodes and springs."""

    simulator: mass_spring.MassSpring
    geometry: mass_spring.Geometry
    material: mass_spring.Material = mass_spring.Material()
    environment: mass_spring.Environment = mass_spring.Environment()
    state: mass_spring.State = mass_spring.State()

    @classmethod
    def simulator_problems(cls, sections: Mapping[str, Any]) -> list[Problem]:
        return problems(
            geometry=sections.get("geometry"),
            material=sections.get("material"),
            environment=sections.get("environment"),
            state=sections.get("state"),
        )

    @classmethod
    def simulator_fields(cls, sections: Mapping[str, Any]) -> Fields:
        return mass_spring.fields(
            geometry=sections["geometry"],
            material=sections["material"],
            environment=sections["environment"],
            state=sections["state"],
        )


SIMULATORS: dict[str, type[Config]] = {"mass_spring": MassSpringConfig}
"""The sections of a scene by `simulator.name`."""
