"""A scene of smoothed particle hydrodynamics: its sections, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from simphys.autograd.errors import InputError
from simphys.scenefile.section import Fields, Problem
from simphys.scenefile.sections import Config

from . import scene
from .model import SPH, check_params
from .stability import count_most, find_nearest

NEAREST = 0.5
"""Least distance of two particles at the start, in spacings."""
STIFF = 5.0
"""Least sound speed, in speeds of the fluid at the start or after a fall through its own height."""


class SPHConfig(Config):
    """A scene of smoothed particle hydrodynamics."""

    SIZES = ((("tank", "size"), 2000),)

    simulator: scene.SPHSimulator
    tank: scene.TankSection
    blocks: Annotated[list[scene.BlockSection], Field(min_length=1)]
    material: scene.MaterialSection
    environment: scene.EnvironmentSection = scene.EnvironmentSection()
    gauges: scene.GaugesSection | None = None

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> list[Problem]:
        return list(scene.find_problems(sections))

    def build_fields(self) -> Fields:
        return scene.build_fields(self)

    def build_model(self) -> SPH:
        return scene.build_model(self)

    def require_stable(self, model: Any, params: Any, state: Any) -> None:
        given, position, velocity = params.arrays(), state.position.data, state.velocity.data
        check_params(given)
        super().require_stable(model, params, state)
        distance, i, j = find_nearest(position, model.box)
        if distance < NEAREST * model.spacing:
            constraint = f"particles {i} and {j} must be at least {NEAREST * model.spacing:.3g} m apart, half a spacing"
            raise InputError("blocks", constraint, f"{distance:.3g} m", "Move one of the blocks.")
        fluid = position[: model.fluid_count]
        gravity = np.abs(given["gravity"]) * (fluid.max(axis=0) - fluid.min(axis=0)) * ~np.isfinite(model.box)
        fastest = max(float(np.sqrt((velocity**2).sum(axis=1)).max()), float(np.sqrt(2 * gravity.sum())))
        if given["sound_speed"] < STIFF * fastest:
            constraint = (
                f"at least {STIFF:g} times the speed of the fluid, {fastest:.3g} m/s, to be nearly incompressible"
            )
            remedy = f"Take {2 * STIFF * fastest:.2g} m/s."
            raise InputError("material.sound_speed", constraint, f"{given['sound_speed']:g} m/s", remedy)
        most = count_most(position, model.box, model.cutoff + model.skin)
        if most > model.neighbours:
            constraint = f"room for the {most} neighbours of a particle at the start, and some more"
            remedy = f"Set simulator.neighbours to {int(scene.ROOM * most)}, or leave it out."
            raise InputError("simulator.neighbours", constraint, f"{model.neighbours}", remedy)
