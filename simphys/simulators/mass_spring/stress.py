"""Tensions or strains of the springs in recorded states, for pictures."""

from __future__ import annotations

import numpy as np

from simphys.simulator import Arrays, Quantity

from .model import MassSpring


def stresses(model: MassSpring, params: Arrays, states: Arrays) -> dict[str, Quantity]:
    """Compute the elastic tension k (|d| - L) of each spring [N], [rows, S], negative under pressure.

    Of actuated springs, whose rest lengths change, it is their strain (|d| - L) / L.
    """
    if not model.springs or (model.actuators and not np.all(params["rest_length"] > 0)):
        return {}
    position = states["position"]
    length = np.linalg.norm(position[:, model.ends[:, 1]] - position[:, model.ends[:, 0]], axis=2)
    stretch = length - params["rest_length"]
    if model.actuators:
        return {"strain": Quantity(stretch / params["rest_length"], "")}
    return {"tension": Quantity(params["stiffness"] * stretch, "N")}
