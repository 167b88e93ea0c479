"""Energies of nodes and springs.

    kinetic      sum m v^2 / 2, of nodes that move
    potential    -sum m g.x + sum k (|d| - L)^2 / 2 + sum k_g p^2 / 2

with g gravity, from the origin, the vector d between the ends of a spring of stiffness k and rest length L, and the
depth p = max(0, h - x_up) of a node in a ground of stiffness k_g.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.autograd import Tensor, ops
from simphys.simulator import Array
from simphys.simulator.markers import ENERGIES, KINETIC, Energetic, NodeMarkers, Whole


@dataclass(frozen=True, eq=False)
class SpringMarkers(Energetic, NodeMarkers):
    """Nodes, and what is stored between them."""

    ends: Array
    """Nodes of each spring, [S, 2]."""
    pinned: Array
    """True for nodes that never move, [n]."""
    conservative: bool = True
    """False if actuators change the rest lengths, so that springs have no potential."""

    @property
    def energies(self) -> tuple[str, ...]:
        return ENERGIES if self.conservative else (KINETIC,)

    def kinetic_energy(self, params: Any, state: Whole) -> Tensor:
        v = state["velocity"]
        found: Tensor = 0.5 * ops.sum((params.mass * ops.sum(v * v, axis=2))[:, self._free], axis=1)
        return found

    def potential_energy(self, params: Any, state: Whole) -> Tensor:
        x = state["position"]
        found: Tensor = -ops.sum((params.mass * ops.sum(x * params.gravity, axis=2))[:, self._free], axis=1)
        if len(self.ends):
            d = x[:, self.ends[:, 1]] - x[:, self.ends[:, 0]]
            stretch = ops.norm(d, axis=2) - params.rest_length
            found = found + 0.5 * ops.sum(params.stiffness * stretch * stretch, axis=1)
        depth = ops.maximum(params.ground_height - x[:, self._free, self.dim - 1], 0.0)
        return found + 0.5 * params.ground_stiffness * ops.sum(depth * depth, axis=1)

    @property
    def _free(self) -> Array:
        return np.flatnonzero(~self.pinned)
