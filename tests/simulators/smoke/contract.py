"""The small flows that keep the contract of a simulator."""

from __future__ import annotations

import functools
from typing import Any

from ...helpers.contract import Case, Contract, System
from .fluids import KINDS, NAMES, fluid

STEPS = 5


def build(kind: str, **options: Any) -> System:
    return System(*fluid(kind, **options))


BATCHED = {"all": NAMES, "viscosity": ("velocity", "viscosity"), "obstacle": ("smoke", "boundary_velocity", "obstacle")}
TOLERANCE = 1e-11
"""Pressure solves end at a residual of 1e-14."""

SILENT = {"final": frozenset({"gradient by force"})}
"""The force of the last step acts on no state."""

CONTRACT = Contract(
    modes=tuple(
        [
            Case(kind, functools.partial(build, kind), STEPS, TOLERANCE, silent=SILENT if kind == "channel" else None)
            for kind in KINDS
        ]
    ),
    batches=tuple(
        [
            Case(
                f"channel, {name}",
                functools.partial(build, "channel", batch=2, batched=batched),
                STEPS,
                TOLERANCE,
                members=TOLERANCE,
            )
            for name, batched in BATCHED.items()
        ]
    ),
    devices=(Case("walls", functools.partial(build, "walls"), STEPS, TOLERANCE, f32=1e-3),),
    budgets=(
        Case("channel", functools.partial(build, "channel"), STEPS, keep=([STEPS],), budget=0.98),
        Case("walls", functools.partial(build, "walls"), STEPS, keep=([STEPS], [0, 2], "final"), budget=0.98),
    ),
    derivatives=tuple(
        [
            Case(
                kind,
                functools.partial(build, kind, batch=2 if kind == "torus" else None),
                3,
                dot_product=1e-10,
            )
            for kind in KINDS
        ]
    ),
    certificates=(Case("channel", functools.partial(build, "channel"), STEPS, alone=("velocity", "viscosity")),),
)
