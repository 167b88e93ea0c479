"""A scene of point charges: the sections of its file, and the arrays and the model made of them."""

from __future__ import annotations

from typing import Literal

from simphys.scenefile.model_sections import fill_record, scene_of
from simphys.scenefile.section import Fields, Simulator
from simphys.scenefile.sections import Config

from .model import ChargeMarkers, Charges, Params, State


class ChargesSimulator(Simulator):
    """Options of the simulator.

    integrator: the error of a motion falls with dt by "semi_implicit_euler", and with dt^2 by "velocity_verlet".
    """

    name: Literal["charges"]
    integrator: Literal["semi_implicit_euler", "velocity_verlet"] = "velocity_verlet"


@scene_of(Charges, bodies="geometry.position", dim="geometry.position.0")
class ChargesConfig(Config):
    """A scene of point charges."""

    simulator: ChargesSimulator

    def build_fields(self) -> Fields:
        start = fill_record(self, State)
        markers = ChargeMarkers(*start["position"].shape)
        return Fields(params=fill_record(self, Params), state=start, nodes=markers.nodes, markers=markers)
