"""A scene of molecular dynamics: its sections, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simphys.autograd.errors import InputError
from simphys.scenefile.section import Fields, Problem
from simphys.scenefile.sections import Config

from . import scene
from .model import Molecular, check_params
from .stability import count_most


class MolecularConfig(Config):
    """A scene of molecular dynamics."""

    SIZES = ((("geometry", "cells"), 2000),)

    simulator: scene.MolecularSimulator
    geometry: scene.GeometrySection
    material: scene.MaterialSection = scene.MaterialSection()
    bonds: scene.BondsSection | None = None
    angles: scene.AnglesSection | None = None
    charges: scene.ChargesSection | None = None
    heat_bath: scene.HeatBathSection | None = None
    state: scene.StateSection = scene.StateSection()

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> list[Problem]:
        return list(scene.find_problems(sections))

    def build_fields(self) -> Fields:
        return scene.build_fields(self)

    def build_model(self) -> Molecular:
        return scene.build_model(self)

    def require_stable(self, model: Any, params: Any, state: Any) -> None:
        check_params(params.arrays())
        super().require_stable(model, params, state)
        most = count_most(state.position.data, model.box, model.cutoff + model.skin)
        if most > model.neighbours:
            constraint = f"room for the {most} neighbours of an atom at the start, and some more"
            remedy = f"Set simulator.neighbours to {int(scene.ROOM * most)}, or leave it out."
            raise InputError("simulator.neighbours", constraint, f"{model.neighbours}", remedy)
