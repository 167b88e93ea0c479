"""The largest stable time step of shallow water, and advice after a blow-up.

Linearised about a uniform flow u_a of height h, with c^2 = g h, a wave of wave numbers k_a has on the C-grid

    omega = sum_a u_a sin(k_a dx) / dx +- 2 c/dx sqrt(sum_a sin^2(k_a dx / 2))
    |omega| <= (sum_a |u_a| + 2 sqrt(dim) c) / dx

and the three stages multiply it by 1 + z + z^2/2 + z^3/6, z = -i omega dt, whose modulus is at most 1 while
|omega| dt <= sqrt(3). Over an uneven bottom at rest the largest height bounds omega, as it bounds the quadratic form
g sum h |grad eta|^2. Friction only damps. Sources: Wicker and Skamarock 2002; Arakawa and Lamb 1977.
"""

from __future__ import annotations

import numpy as np

from simphys.autograd.errors import InputError
from simphys.simulator import Arrays, StepLimit

from .model import Params, ShallowWater, State


def require_wet(params: Params, state: State) -> None:
    """Raise InputError if a cell is dry initially."""
    cell, least = shallowest(params.arrays(), state.arrays())
    if least <= 0:
        constraint = "every cell has water: depth + elevation is positive"
        remedy = "Deepen the bottom there: the equations do not cover dry cells."
        raise InputError("medium.depth", constraint, f"{least:.3g} in cell {cell}", remedy)


def step_limits(model: ShallowWater, params: Arrays, state: Arrays) -> tuple[StepLimit, ...]:
    """Limit the time step by small waves on this state's height and velocity."""
    height = float(np.max(params["depth"] + state["elevation"]))
    across = tuple(range(1, 1 + model.dim))
    flow = float(np.abs(state["velocity"]).max(axis=across).sum())
    rate = flow + 2 * np.sqrt(model.dim * float(params["gravity"]) * height)
    cause = f"waves on water of height {height:.3g}"
    return (StepLimit(float(np.sqrt(3) * model.spacing / rate), cause, "use larger cells"),)


def shallowest(params: Arrays, state: Arrays) -> tuple[list[int], float]:
    """Find the cell with the least water, and the height of the water there [m]."""
    height = np.asarray(params["depth"] + state["elevation"])
    cell = np.unravel_index(int(height.argmin()), height.shape)
    return [int(i) for i in cell], float(height[cell])


def advice(model: ShallowWater, params: Arrays, state: Arrays) -> str:
    """Name the cell that has fallen dry, and a remedy."""
    cell, least = shallowest(params, state)
    rest = float(params["depth"][tuple(cell)])
    return (
        "The simulation stops where a cell falls dry. "
        f"Cell {cell} has the least water, {least:.3g} of {rest:.3g} at rest. "
        "Deepen the bottom there, or make the waves lower."
    )
