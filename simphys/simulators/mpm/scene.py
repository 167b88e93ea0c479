"""A scene of material points: the arrays and the model made of its sections."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from simphys.scenefile.demands import demands_of
from simphys.scenefile.model_sections import fill_record, scene_of
from simphys.scenefile.section import EACH, Fields
from simphys.scenefile.sections import Config
from simphys.scenefile.shared import kinds_of_sides
from simphys.simulator import Array

from . import scene_checks
from .collider import Collider
from .laws import LAW_PARAMETERS, LAWS
from .model import MPM, Params
from .sections import BodySection, ColliderSection, GridSection, MPMSimulator

MASS_FLOOR = 1e-10
"""Mass floor of the model, relative to the lightest particle."""


@scene_of(MPM, dim="grid.cells")
class MPMConfig(Config):
    """A scene of material points."""

    SIZES = ((("grid", "cells"), 50), (("bodies", EACH, "counts"), 500))
    DEMANDS = demands_of(ColliderSection, collider_friction="friction") | demands_of(
        BodySection, *LAW_PARAMETERS, mass="particle_mass", volume="particle_volume"
    )

    find_problems = staticmethod(scene_checks.find_problems)

    simulator: MPMSimulator
    grid: GridSection
    bodies: list[BodySection]
    colliders: list[ColliderSection] = []

    @cached_property
    def seeding(self) -> list[tuple[Array, float]]:
        """The particles of each body, seeded once: positions [n, dim], and the volume of each."""
        return [body.seed(self.grid) for body in self.bodies]

    @property
    def laws(self) -> tuple[str, ...]:
        """The laws in use, in the order in which bodies name them."""
        return tuple(dict.fromkeys([body.law for body in self.bodies]))

    def _repeat(self, values: Any, dtype: type = float) -> Array:
        """Repeat the value of each body for all of its particles."""
        return np.repeat(np.asarray(values, dtype), [len(position) for position, _ in self.seeding], axis=0)

    def _volumes_and_masses(self) -> tuple[list[float], list[float]]:
        """Return volume and mass of each particle of each body."""
        pairs = list(zip(self.bodies, self.seeding, strict=True))
        volumes = [body.particle_volume or share for body, (_, share) in pairs]
        masses = [body.particle_mass or (body.density or 0.0) * v for body, v in zip(self.bodies, volumes, strict=True)]
        return volumes, masses

    def build_fields(self) -> Fields:
        """Build every field; a parameter that only some of the laws use is 0 for the particles of the other laws."""
        bodies, colliders, dim = self.bodies, self.colliders, len(self.grid.cells)
        spins, rotations = (1, 1) if dim == 2 else (3, 4)
        volumes, masses = self._volumes_and_masses()
        position = np.concatenate([position for position, _ in self.seeding])
        params = {
            "mass": self._repeat(masses),
            "volume": self._repeat(volumes),
            **fill_record(self, Params),
            "collider_velocity": _stack_rows([c.velocity or [0.0] * dim for c in colliders], dim),
            "collider_spin": _stack_rows([c.spin or [0.0] * spins for c in colliders], spins),
            "collider_friction": np.array([c.friction for c in colliders], dtype=float),
        }
        for name in LAW_PARAMETERS:
            values = [body.parameter(name) if name in LAWS[body.law].PARAMETERS else None for body in bodies]
            is_used = any(name in LAWS[law].PARAMETERS for law in self.laws)
            params[name] = self._repeat([value or 0.0 for value in values]) if is_used else np.zeros(0)
        hidden = any(LAWS[law].HIDDEN for law in self.laws)
        state = {
            "position": position,
            "velocity": self._repeat([body.velocity or [0.0] * dim for body in bodies]),
            "affine": np.zeros((len(position), dim, dim)),
            "deformation": np.tile(np.eye(dim), (len(position), 1, 1)),
            "plastic": self._repeat([LAWS[body.law].REST for body in bodies]) if hidden else np.zeros(0),
            "collider_position": _stack_rows([c.position for c in colliders], dim),
            "collider_rotation": _stack_rows([c.start for c in colliders], rotations),
        }
        actuators = max([-1 if body.actuator is None else body.actuator for body in bodies]) + 1
        channels = actuators + len(colliders) * (dim + spins)
        return Fields(params=params, state=state, nodes=len(position), channels=channels or None)

    def build_model(self) -> MPM:
        grid, bodies, laws, dim = self.grid, self.bodies, self.laws, len(self.grid.cells)
        actuator = self._repeat([-1 if b.actuator is None else b.actuator for b in bodies], np.int32)
        fibre = np.array([b.fibre or [0.0] * (dim - 1) + [1.0] for b in bodies], dtype=float)
        fibre /= np.linalg.norm(fibre, axis=1, keepdims=True)
        return MPM(
            cells=tuple(grid.cells),
            spacing=grid.spacing,
            dt=self.time.dt,
            particles=len(actuator),
            laws=laws,
            law=self._repeat([laws.index(b.law) for b in bodies], np.int32) if len(laws) > 1 else None,
            actuator=actuator if actuator.max() >= 0 else None,
            fibre=self._repeat(fibre) if any(b.fibre for b in bodies) else None,
            walls=kinds_of_sides(grid.walls, dim, "separating"),
            margin=grid.margin,
            colliders=tuple([Collider(c.shape, tuple(c.size), c.contact) for c in self.colliders]),
            skin=grid.skin or 0.0,
            mass_floor=MASS_FLOOR * min(self._volumes_and_masses()[1]),
            group=self._repeat(range(len(bodies)), np.int32),
        )


def _stack_rows(rows: Sequence[Any], width: int) -> Array:
    return np.array([np.ravel(row) for row in rows], dtype=float).reshape(-1, width)
