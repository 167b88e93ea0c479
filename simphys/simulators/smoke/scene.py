"""A scene of incompressible flow with smoke: the arrays and the model made of its sections."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.autograd import tensor
from simphys.scenefile.model_sections import fill_record, scene_of
from simphys.scenefile.section import EACH, Fields
from simphys.scenefile.sections import Config
from simphys.scenefile.shared import SIDES, Side

from . import outline, scene_checks
from .model import Params, Smoke
from .sections import (
    EmitterSection,
    GridSection,
    ObstacleSection,
    SideFlowSection,
    SmokeSimulator,
    StateSection,
    make_model,
)
from .shapes import distance, fraction_inside


@scene_of(Smoke, dim="grid.cells")
class SmokeConfig(Config):
    """A scene of incompressible flow with smoke."""

    FILES = (("obstacle", "file"), ("state", EACH, "file"))
    SIZES = ((("grid", "cells"), 100), (("obstacle", "outline", "modes"), 100))

    find_problems = staticmethod(scene_checks.find_problems)

    simulator: SmokeSimulator
    grid: GridSection
    sides: dict[Side, SideFlowSection] = {}
    emitters: list[EmitterSection] = []
    obstacle: ObstacleSection | None = None
    state: StateSection = StateSection()

    def build_fields(self) -> Fields:
        model = self.build_model()
        zero = [0.0] * model.dim
        sides = [self.sides.get(name, SideFlowSection()) for name in SIDES[: 2 * model.dim]]
        emitted = [
            fraction_inside(distance(model, each.centre, each.radius), model.spacing) * each.rate
            for each in self.emitters
        ]
        params = {
            **fill_record(self, Params),
            "boundary_velocity": np.array([side.velocity or zero for side in sides]),
            "boundary_smoke": np.array([side.smoke for side in sides]),
            "smoke_rate": np.sum(emitted, axis=0) if emitted else np.zeros(model.cells),
            "obstacle": np.zeros(0) if self.obstacle is None else self.obstacle.measure(model),
        }
        state = {
            "velocity": self.state.compute_velocity(model),
            "smoke": self.state.compute_smoke(model),
            "force": np.array(zero),
        }
        design = {}
        if self.obstacle is not None and self.obstacle.outline is not None:
            design = {"stretch": np.zeros(()), "outline": np.zeros((self.obstacle.outline.modes, 2))}
        return Fields(params=params, state=state, design=design, designed=frozenset({"obstacle"} if design else ()))

    def build_model(self) -> Smoke:
        return make_model(self.simulator, self.grid, dt=self.time.dt, has_obstacle=self.obstacle is not None)

    def design(self) -> outline.Design | None:
        """Build the outline of an obstacle."""
        design = self.fields.design
        return outline.Design(**{name: tensor(values) for name, values in design.items()}) if design else None

    def designed(self, model: Any, params: Any, design: Any) -> Any:
        """Give the parameters the obstacle with this outline."""
        given = None if self.obstacle is None else self.obstacle.outline
        if given is None:
            return params
        return params.replace(obstacle=outline.distance(model, given.centre, given.radius, design))
