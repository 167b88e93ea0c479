"""A scene of elastic waves: its sections, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simphys.scenefile.control import WaveletSection
from simphys.scenefile.section import EACH, Fields, Problem
from simphys.scenefile.sections import Config
from simphys.scenefile.sizes import SQUARE
from simphys.scenefile.survey import ReceiversSection

from . import scene, stability
from .model import Elastic, check_params


class ElasticConfig(Config):
    """A scene of elastic waves."""

    FILES = (("medium", EACH, "file"),)

    SIZES = (
        (("grid", "cells"), 50),
        (("grid", "cells", EACH, SQUARE), 24),
        (("receivers", "lines", EACH, "count"), 100),
        (("fibre", EACH, "count"), 100),
    )

    simulator: scene.ElasticSimulator
    grid: scene.GridSection
    medium: scene.MediumSection
    sources: list[scene.SourceSection] = []
    receivers: ReceiversSection = ReceiversSection()
    fibre: list[scene.FibreSection] = []

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> list[Problem]:
        return list(scene.find_problems(sections))

    def build_fields(self) -> Fields:
        return scene.build_fields(self)

    def build_model(self) -> Elastic:
        return scene.build_model(self)

    def require_stable(self, model: Any, params: Any, state: Any) -> None:
        check_params(params.arrays())
        super().require_stable(model, params, state)
        if isinstance(self.control, WaveletSection):
            stability.require_resolved(model, params, self.control.frequency)
