"""Sections of a scene of rigid bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simphys.scenefile.section import Fields, Problem
from simphys.scenefile.sections import Config, Pattern
from simphys.simulator import Model
from simphys.simulator.bodies import Bodies
from simphys.simulators import rigid
from simphys.simulators.rigid import scene, scene_checks, sections, stability


class RigidConfig(Config):
    """A scene of rigid bodies with contacts and joints."""

    simulator: sections.RigidSimulator
    bodies: list[sections.Body]
    planes: list[sections.PlaneSection] = []
    joints: list[sections.JointSection] = []
    springs: list[sections.SpringSection] = []
    environment: sections.Environment = sections.Environment()
    contact: sections.Contact = sections.Contact()
    controller: sections.ControllerSection | None = None

    @classmethod
    def simulator_problems(cls, sections: Mapping[str, Any]) -> list[Problem]:
        control = sections.get("control")
        return scene_checks.problems(
            simulator=sections.get("simulator"),
            bodies=sections.get("bodies"),
            planes=sections.get("planes"),
            joints=sections.get("joints"),
            springs=sections.get("springs"),
            environment=sections.get("environment"),
            contact=sections.get("contact"),
            controller=sections.get("controller"),
            waves=control.waves if isinstance(control, Pattern) else None,
            loss=sections.get("loss"),
            unknowns=sections.get("unknowns"),
        )

    @classmethod
    def simulator_fields(cls, sections: Mapping[str, Any]) -> Fields:
        return scene.fields(
            bodies=sections["bodies"],
            joints=sections["joints"],
            springs=sections["springs"],
            environment=sections["environment"],
            contact=sections["contact"],
            controller=sections["controller"],
            waves=getattr(sections.get("control"), "waves", 0),
        )

    def build(self) -> tuple[Model, rigid.Params, rigid.State]:
        return rigid.build(self)

    def require_stable(self, model: Any, params: Any, state: Any) -> None:
        stability.require_stable(model, params, state)

    def bodies_of(self, model: Any) -> Bodies:
        return scene.bodies_of(self)
