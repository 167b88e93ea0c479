"""The small tables that keep the contract of a simulator."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...helpers.contract import Case, Contract, System
from .tables import busy, leaf

STEPS = 12


def build(**options: Any) -> System:
    return System(*busy(**options))


def pair() -> System:
    """Build two tables whose balls have other masses and velocities, and all else in common."""
    model, params, state = busy()
    masses, velocity = params.mass.data, state.velocity.data
    return System(
        model,
        params.replace(mass=leaf(np.stack([masses, masses[::-1]]))),
        state.replace(velocity=leaf(np.stack([velocity, 0.7 * velocity]))),
    )


CUSHIONS = frozenset(f"gradient by {name}" for name in ("cushion_restitution",))
OPEN = functools.partial(build, deceleration=0.0, cushions=False)
DIFFERENCES = {"mode": "projected", "repeats": 2, "tolerance": 1e-7}

CONTRACT = Contract(
    modes=(
        Case("cushions", build, STEPS),
        Case("open", OPEN, STEPS, silent={"all": CUSHIONS, "final": CUSHIONS}),
    ),
    batches=(Case("cushions", pair, STEPS, members=1e-12),),
    budgets=(Case("cushions", build, STEPS, keep=("final", [0, 3, 8]), budget=0.98),),
    derivatives=(
        Case("cushions", build, STEPS, losses=("final",), gradcheck=DIFFERENCES),
        Case("open", OPEN, STEPS, losses=("final",), gradcheck=DIFFERENCES),
        Case("two tables", pair, STEPS, losses=("states",), gradcheck=DIFFERENCES),
    ),
    certificates=(Case("cushions", build, STEPS, alone=("velocity", "mass")),),
    quick=(),  # each takes seconds to compile
)  # fmt: skip
