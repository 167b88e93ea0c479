"""The small systems of material points that keep the contract of a simulator.

There are few, as each is compiled: laws, actuators and walls in 2-D; driven colliders. Nested and fused steps call the
same functions of a law. Other laws and 3-D are covered by certificates of shipped scenes (test_certificates.py: liquid,
walker): all modes, derivatives over the horizon, and sub-steps.
"""

from __future__ import annotations

import functools
from typing import Any

from simphys.simulators.mpm.collider import Collider

from ...helpers.contract import Case, Contract, System
from .systems import system

STEPS = 6
TOLERANCE = 1e-11


def build(**options: Any) -> System:
    return System(*system(2, **options))


PLANE = functools.partial(build, laws=("snow", "fluid"), steps=STEPS)
COLLIDERS = functools.partial(
    build,
    laws=("fluid",),
    actuators=1,
    steps=STEPS,
    colliders=(Collider("sphere", (0.12,), "sticking"), Collider("box", (0.08, 0.1), "friction")),
)
FLUID = functools.partial(build, laws=("fluid",), particles=5, actuators=0)
SYSTEMS = {"plane": PLANE, "colliders": COLLIDERS}
SHARED = {"mass": ("mass", "gravity", "deformation"), "position": ("position", "young_modulus", "control")}

CONTRACT = Contract(
    modes=tuple([Case(name, made, STEPS, TOLERANCE) for name, made in SYSTEMS.items()]),
    batches=(
        *[
            Case(
                f"{name}, all", functools.partial(made, batch=2), STEPS, TOLERANCE, losses=("final",), members=TOLERANCE
            )
            for name, made in SYSTEMS.items()
        ],
        *[
            Case(
                f"plane, {name}",
                functools.partial(PLANE, batch=2, batched=batched),
                STEPS,
                TOLERANCE,
                members=TOLERANCE,
            )
            for name, batched in SHARED.items()
        ],
    ),
    devices=(Case("plane", PLANE, STEPS, TOLERANCE, f32=2e-3),),
    budgets=tuple([Case(name, made, STEPS, TOLERANCE, keep=("final",), budget=0.92) for name, made in SYSTEMS.items()]),
    derivatives=(
        Case(
            "plane",
            functools.partial(PLANE, steps=3),
            3,
            losses=("final",),
            gradcheck={"mode": "projected", "repeats": 1, "tolerance": 1e-6},
            dot_product=1e-11,
        ),
        Case(  # no scene has sand; nested steps compile fastest, and fused ones have the same table of laws
            "sand",
            functools.partial(build, laws=("drucker_prager",), actuators=0),
            3,
            losses=("final",),
            gradcheck={"mode": "projected", "repeats": 1, "tolerance": 1e-6},
            dot_product=None,
            options={"mode": "nested"},
        ),
    ),
    certificates=(
        Case("plane", PLANE, STEPS, TOLERANCE),
        Case("fluid", FLUID, 4, TOLERANCE, alone=("velocity",)),
    ),
    quick=(),  # each takes seconds to compile
    threads=(
        Case(
            "fluid",
            functools.partial(build, laws=("fluid",), particles=101, steps=STEPS, actuators=1),
            STEPS,
            options={"deterministic": True},
        ),
    ),
)
