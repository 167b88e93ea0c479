"""A scene of point charges: the sections of its file, the arrays and the model made of them, and their checks."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from simphys.scenefile.model_sections import fill_record, scene_of
from simphys.scenefile.section import Fields, Section, Simulator
from simphys.scenefile.sections import Config

from .markers import ChargeMarkers
from .model import Charges, Params, State

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


@scene_of(Charges, bodies="geometry.position", dim="geometry.position.0")
class ChargesConfig(Config):
    """A scene of point charges."""

    simulator: ChargesSimulator
    geometry: GeometrySection

    def build_fields(self) -> Fields:
        start = fill_record(self, State)
        markers = ChargeMarkers(*start["position"].shape)
        return Fields(params=fill_record(self, Params), state=start, nodes=markers.nodes, markers=markers)

    def build_model(self) -> Charges:
        position = self.geometry.position
        return Charges(len(position), len(position[0]), self.time.dt, self.simulator.integrator)
