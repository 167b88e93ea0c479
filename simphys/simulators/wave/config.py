"""A scene of waves: its sections, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simphys.scenefile.section import EACH, Fields, Problem
from simphys.scenefile.sections import Config

from . import scene, scene_checks
from .model import Wave
from .receive import receive


class WaveConfig(Config):
    """A scene of waves."""

    FILES = (("medium", EACH, "file"), ("state", EACH, "file"))

    SIZES = ((("grid", "cells"), 50), (("receivers", "lines", EACH, "count"), 100))

    simulator: scene.WaveSimulator
    grid: scene.GridSection
    medium: scene.MediumSection
    state: scene.StateSection = scene.StateSection()
    sources: list[scene.SourceSection] = []
    receivers: scene.ReceiversSection = scene.ReceiversSection()

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> list[Problem]:
        return scene_checks.find_problems(sections)

    def build_fields(self) -> Fields:
        return scene.build_fields(self)

    def build_model(self) -> Wave:
        return scene.build_model(self)

    def first_state(self, model: Any, params: Any, state: Any) -> Any:
        """Let the receivers read the start."""
        return state.replace(received=receive(model, state.height, params.receiver_position))

    def completed(self, state: Any, design: Any = None, params: Any = None) -> Any:
        """Repeat an initial field at rest one step earlier."""
        sought = {unknown.parameter for unknown in self.unknowns.values()}
        if self.state.previous is not None or "previous" in sought:
            return state
        return state.replace(previous=state.height)
