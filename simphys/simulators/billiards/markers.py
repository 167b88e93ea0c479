"""Energies of balls on a level table: sum m v^2 / 2. They carry no spin, so that rolling counts for nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from simphys.autograd import Tensor, ops
from simphys.simulator.markers import KINETIC, Energetic, NodeMarkers, Whole


@dataclass(frozen=True)
class BallMarkers(Energetic, NodeMarkers):
    """The centres of the balls, and the energy of their motion."""

    @property
    def energies(self) -> tuple[str, ...]:
        return (KINETIC,)

    def kinetic_energy(self, params: Any, state: Whole) -> Tensor:
        v = state["velocity"]
        found: Tensor = 0.5 * ops.sum(params.mass * ops.sum(v * v, axis=2), axis=1)
        return found

    def potential_energy(self, params: Any, state: Whole) -> Tensor:
        """Compute 0: a level table stores nothing."""
        return 0.0 * self.kinetic_energy(params, state)
