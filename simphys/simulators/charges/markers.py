"""Energies of point charges: sum m v^2 / 2, and that of all pairs at a distance r, k q_i q_j / (r^2 + s^2)^(1/2).

An external field is no part of it: it may change with time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.autograd import Tensor, ops
from simphys.simulator.markers import Energetic, NodeMarkers, Whole


class ChargeMarkers(Energetic, NodeMarkers):
    """Bodies, and the energy between them."""

    def kinetic_energy(self, params: Any, state: Whole) -> Tensor:
        v = state["velocity"]
        found: Tensor = 0.5 * ops.sum(params.mass * ops.sum(v * v, axis=2), axis=1)
        return found

    def potential_energy(self, params: Any, state: Whole) -> Tensor:
        i, j = np.triu_indices(self.nodes, 1)
        d = state["position"][:, i] - state["position"][:, j]
        distance = ops.sqrt(ops.sum(d * d, axis=2) + params.softening * params.softening)
        found: Tensor = params.coupling * ops.sum(params.charge[i] * params.charge[j] / distance, axis=1)
        return found
