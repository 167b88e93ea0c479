"""The time step that the stiffest pair, bond or angle allows."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.simulator import Arrays, StepLimit
from simphys.simulator.neighbours import find_nearest

from .topology import find_lengths


def step_limits(model: Any, params: Arrays, state: Arrays) -> tuple[StepLimit, ...]:
    """Limit the time step to 2 / omega of the pair, bond or angle whose force changes fastest.

    All neighbours together may allow less: after a blow-up the tangent of a step tells.
    """
    molecule, inverse = model.molecule, 1 / params["mass"]
    excluded = None if isinstance(molecule, float) else molecule.astype(np.int64)
    distance, i, j = find_nearest(state["position"], model.box, excluded)
    rate = pair_stiffness(model, params, distance) * (inverse[i] + inverse[j])
    if len(model.bonds):
        rates = params["bond_stiffness"] * inverse[model.bonds].sum(axis=1)
        if rates.max() > rate:
            (i, j), rate = model.bonds[rates.argmax()].tolist(), rates.max()
    if len(model.angles):
        a, b, c = model.angles.T
        u, w = (1 / find_lengths(state["position"], model.angles[:, ends]) for ends in ([0, 1], [2, 1]))
        rates = params["angle_stiffness"] * (inverse[a] * u**2 + inverse[c] * w**2 + inverse[b] * (u + w) ** 2)
        if rates.max() > rate:
            (i, j), rate = model.angles[rates.argmax(), [0, 2]].tolist(), rates.max()
    limit = 2 / float(np.sqrt(rate)) if rate > 0 else np.inf
    cause = f"the force between atoms {i} and {j}, which changes fastest"
    together = StepLimit(np.inf, "all forces", "begin with less motion", ((model, params, state),))
    return StepLimit(limit, cause, "move the atoms apart"), together


def pair_stiffness(model: Any, params: Arrays, r: float) -> float:
    """Second derivative [N/m] of a pair's potential by its distance, at least 0, without the switch."""
    e, s, k = (float(params[name]) for name in ("epsilon", "sigma", "steepness"))
    if model.potential == "morse":
        a = np.exp(min(-k * (r - s), 300.0))
        return max(float(4 * e * k * k * (4 * a * a - a)), 0.0)
    a = (s / r) ** 6
    return max(4 * e * (156 * a * a - 42 * a) / r**2, 0.0)
