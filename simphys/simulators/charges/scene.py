"""A scene of point charges: the sections of its file, the arrays and the model made of them, and their checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from simphys.scenefile.demands import demands_of
from simphys.scenefile.section import Fields, Positive, Problem, Section, Simulator
from simphys.scenefile.sections import Config
from simphys.scenefile.shared import check_length, check_rows

from .markers import ChargeMarkers
from .model import Charges

Vector = Annotated[list[float], Field(min_length=1, max_length=3)]


class ChargesSimulator(Simulator):
    """Options of the simulator.

    integrator: the error of a motion falls with dt by "semi_implicit_euler", and with dt^2 by "velocity_verlet".
    """

    name: Literal["charges"]
    integrator: Literal["semi_implicit_euler", "velocity_verlet"] = "velocity_verlet"


class GeometrySection(Section):
    """Start positions [m] of the bodies."""

    position: Annotated[list[Vector], Field(min_length=1)]


class MaterialSection(Section):
    """Properties of the bodies: charge [C] and mass [kg], one number for all, or a list with one for each body.

    coupling [N m^2/C^2]: the force between two unit charges at unit distance; softening [m]: the length below which the
    force falls off.
    """

    charge: float | list[float]
    mass: Positive | list[Positive] = 1.0
    coupling: float = 1.0
    softening: Positive


class StateSection(Section):
    """Start velocity [m/s] of each body; at rest by default."""

    velocity: list[Vector] | None = None


class ChargesConfig(Config):
    """A scene of point charges."""

    DEMANDS = demands_of(MaterialSection, "mass", "softening")

    simulator: ChargesSimulator
    geometry: GeometrySection
    material: MaterialSection
    state: StateSection = StateSection()

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> Iterator[Problem]:
        geometry, material, state = map(sections.get, ("geometry", "material", "state"))
        if geometry is None:
            return
        n, dim = len(geometry.position), len(geometry.position[0])
        axis = "axis of the first body's position"
        yield from check_rows(("geometry", "position"), geometry.position, dim, axis)
        for name in ("charge", "mass"):
            yield from check_length(("material", name), getattr(material, name, None), n, "body")
        if state is not None:
            yield from check_length(("state", "velocity"), state.velocity, n, "body")
            yield from check_rows(("state", "velocity"), state.velocity, dim, axis)

    def build_fields(self) -> Fields:
        position, velocity = self.geometry.position, self.state.velocity
        n = len(position)
        params = {
            "charge": np.full(n, self.material.charge, float),
            "mass": np.full(n, self.material.mass, float),
            "coupling": np.array(self.material.coupling),
            "softening": np.array(self.material.softening),
        }
        start = {
            "position": np.array(position, float),
            "velocity": np.array(velocity or np.zeros_like(position), float),
        }
        markers = ChargeMarkers(*start["position"].shape)
        return Fields(params=params, state=start, nodes=n, markers=markers)

    def build_model(self) -> Charges:
        position = self.geometry.position
        return Charges(len(position), len(position[0]), self.time.dt, self.simulator.integrator)
