"""A scene of incompressible flow with smoke: the checks of its sections, and the arrays and the model made of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from simphys.autograd import tensor
from simphys.numerics.multigrid import coarsest_cells
from simphys.scenefile.model_sections import fill_model, fill_record, scene_of
from simphys.scenefile.section import NOTHING, Fields, Key, Problem, Words
from simphys.scenefile.sections import Config
from simphys.scenefile.shared import SIDES, Side, check_cells, check_file, check_one_of
from simphys.simulator import Array

from . import outline
from .model import Params, Smoke
from .sections import (
    EmitterSection,
    GridSection,
    ObstacleSection,
    SideFlowSection,
    SmokeSimulator,
    StateSection,
)
from .shapes import connected, distance, fraction_inside

LARGEST_DIRECT = 2000
"""Largest number of cells along an axis for a direct solution, whose eigenvectors nothing interrupts (some seconds)."""
SLACK = 1e-9
"""Tolerance of the balance of inflow and outflow, relative to the flow."""


@scene_of(Smoke, dim="grid.cells")
class SmokeConfig(Config):
    """A scene of incompressible flow with smoke."""

    SIZES = ((("grid", "cells"), 100), (("obstacle", "outline", "modes"), 100))

    simulator: SmokeSimulator
    grid: GridSection
    sides: dict[Side, SideFlowSection] = {}
    emitters: list[EmitterSection] = []
    obstacle: ObstacleSection | None = None
    state: StateSection = StateSection()

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> Iterator[Problem]:
        grid, sides, obstacle = map(sections.get, ("grid", "sides", "obstacle"))
        if obstacle is not None:
            yield from check_one_of(("obstacle",), obstacle, "shapes", "outline", "file")
            for place, shape in enumerate(obstacle.shapes or []):
                yield from check_one_of(("obstacle", "shapes", place), shape, "radius", "radii")
        if grid is not None and sides is not None:
            yield from _check_sides(grid, sides)

    def find_problems_with(self, model: Smoke) -> Iterator[Problem]:
        if model.projection == "multigrid" and max(coarsest := coarsest_cells(model.cells)) > LARGEST_DIRECT:
            constraint = f"multigrid halves the grid while all counts are even, down to {LARGEST_DIRECT} cells or fewer"
            found = Words(f"{self.grid.cells}, of which {coarsest} is left")
            remedy = 'Give counts with more factors of 2, or let simulator.projection be "conjugate_gradients".'
            yield Problem(("grid", "cells"), constraint, found, remedy)
        wrong = list(check_cells(("state", "smoke"), model.cells, self.state.smoke))
        wrong += check_cells(("state", "velocity"), (model.dim, *model.faces), self.state.velocity)
        obstacle = self.obstacle
        if obstacle is not None and obstacle.outline is not None and model.dim != 2:
            remedy, found = "Use shapes, or a file.", Words(f"a {model.dim}-D grid")
            wrong.append(Problem(("obstacle", "outline"), "an outline needs a 2-D grid", found, remedy))
        elif obstacle is not None and obstacle.file is not None:
            wrong += check_file(("obstacle", "file"), lambda: obstacle.measure(model))
        yield from wrong or _check_balance(model, self.sides, None if obstacle is None else obstacle.measure(model))

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
        return fill_model(self, Smoke, boundaries=self.grid.kinds, has_obstacle=self.obstacle is not None)

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


def _check_sides(grid: GridSection, sides: Mapping[Side, SideFlowSection]) -> Iterator[Problem]:
    kinds = grid.kinds
    for side, kind in zip(SIDES, kinds, strict=False):
        given = sides[side].velocity if side in sides else None
        key: Key = ("sides", side, "velocity")
        if kind == "inflow" and given is None:
            yield Problem(key, "an inflow needs a velocity", NOTHING, "Add one, or make the side open.")
        if kind in ("periodic", "open") and given is not None:
            remedy = 'Omit it, or make the side "inflow" in grid.boundaries.'
            yield Problem(key, f"only an inflow or a wall has a velocity, and this side is {kind}", given, remedy)
    for side, flow in sides.items():
        place = SIDES.index(side)
        if flow.velocity is None or kinds[place] != "closed":
            continue
        if flow.velocity[place // 2] != 0:
            remedy = 'Make it 0 there, or the side "inflow".'
            yield Problem(("sides", side, "velocity"), "the normal velocity at a wall must be 0", flow.velocity, remedy)
        elif grid.slip and any(flow.velocity):
            remedy = "Omit the velocity, or slip."
            yield Problem(("sides", side, "velocity"), "a free-slip wall cannot drag the fluid", flow.velocity, remedy)


def _check_balance(made: Smoke, sides: Mapping[Side, SideFlowSection], distance: Array | None) -> Iterator[Problem]:
    """Check that the fluid entering each connected part of the grid can leave it, as volume is conserved."""
    if "inflow" not in made.boundaries:
        return
    parts = np.ones(made.cells, int) if distance is None else connected(distance > 0, made.boundaries)
    if not parts.any():
        remedy = "Make it smaller, or move it."
        yield Problem(("obstacle",), "an obstacle must leave room for the fluid", Words("no cell left"), remedy)
        return
    enters, flows = np.zeros(parts.max() + 1), np.zeros(parts.max() + 1)
    for side, kind in enumerate(made.boundaries):
        at = np.take(parts, 0 if side % 2 == 0 else -1, axis=side // 2)
        if kind == "open":
            enters[np.unique(at)] = np.nan  # an open side balances any inflow
        elif kind == "inflow":
            flow = sides[SIDES[side]].velocity
            assert flow is not None, "checked before"
            inwards = flow[side // 2] * (1 if side % 2 == 0 else -1)
            np.add.at(enters, at.reshape(-1), inwards)
            np.add.at(flows, at.reshape(-1), abs(inwards))
    unbalanced = np.flatnonzero(np.abs(enters[1:]) > SLACK * flows[1:]) + 1  # part 0 is the obstacle
    if not unbalanced.size:
        return
    part = int(unbalanced[0])
    rate = enters[part] * made.spacing ** (made.dim - 1)
    if parts.max() == 1:
        found = Words(f"a net inflow of {rate:.4g}, and no open side")
        remedy = 'Make a side "open", or let as much flow out at another inflow.'
        yield Problem(("grid", "boundaries"), "as much fluid must leave as enters", found, remedy)
    else:
        found = Words(f"{np.sum(parts == part)} cells that it cuts off, with a net inflow of {rate:.4g}")
        remedy = "Leave a gap around the obstacle, or make a side of these cells open."
        yield Problem(("obstacle",), "the obstacle must not block fluid that enters", found, remedy)
