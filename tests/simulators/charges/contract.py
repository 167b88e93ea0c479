"""The small systems of charges that keep the contract of a simulator."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from simphys.autograd import runtime

from ...helpers.contract import Case, Contract, System
from .systems import NAMES, fields, system

STEPS = 12
MANY_MEMBERS = 8
"""Batch members that keep the threads of a CPU busy."""
INTEGRATORS = {"semi_implicit_euler": "symplectic", "velocity_verlet": "verlet"}


def build(
    dim: int, *, steps: int = STEPS, field_batch: int | None = None, field: bool = True, **options: Any
) -> System:
    """Build a system of charges in a field."""
    return System(*system(dim, **options), fields(steps, dim, field_batch) if field else None)


def launch_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Launch a kernel for each step, as for large systems."""
    monkeypatch.setattr(runtime, "PARALLEL_WORK_US", 0.0)


def cases(name: str, dim: int, **options: Any) -> list[Case]:
    """Make a case for each integrator."""
    case = {key: options.pop(key) for key in tuple(options) if key in Case.__dataclass_fields__}
    return [
        Case(
            f"{name}, {label}",
            functools.partial(build, dim, integrator=integrator, steps=case.get("steps", STEPS), **options),
            **{"steps": STEPS, **case},
        )
        for integrator, label in INTEGRATORS.items()
    ]


FULL = {"gradcheck": {"tolerance": 1e-6}}
BATCHED = {
    "all": NAMES,
    "charge and velocity": ("charge", "velocity"),
    "field constants": ("position", "coupling", "softening"),
    "mass": ("mass",),
}

CONTRACT = Contract(
    modes=(
        *cases("plane", 2, bodies=21, seed=2, large=launch_each_step),
        *cases("line", 1, bodies=3, seed=1, large=launch_each_step),
        *cases("space", 3, bodies=5, seed=3, large=launch_each_step),
        *cases("without a field", 2, field=False),
    ),
    batches=(
        *[
            case
            for name, batched in BATCHED.items()
            for shared, field_batch in (("its own field", 3), ("one field", None))
            for case in cases(
                f"{name}, {shared}", 2, batch=3, batched=batched, field_batch=field_batch, large=launch_each_step,
                members=1e-12,
            )
        ],
        Case(
            "many members",
            functools.partial(build, 2, batch=MANY_MEMBERS, batched=("position",), field=False),
            STEPS,
            large=launch_each_step,
        ),
    ),
    devices=(  # one thread per system, and one per body
        *cases("few bodies", 3, bodies=5, batch=2, batched=("position", "charge"), f32=2e-4),
        *cases("many bodies", 3, bodies=40, batch=2, batched=("position", "charge"), f32=2e-4),
    ),
    budgets=(
        *cases("plane", 2, keep=([STEPS], [0, 3, 8], "final")),
        *cases("plane, each step", 2, keep=([STEPS],), large=launch_each_step),
    ),
    derivatives=(
        *cases("plane", 2, bodies=4, dt=0.1, steps=5, **FULL),
        *cases("line", 1, bodies=4, dt=0.1, steps=5, **FULL),
        *cases("space", 3, bodies=4, dt=0.1, steps=5, **FULL),
        *cases(
            "batch", 2, bodies=3, batch=2, batched=("position", "charge"), dt=0.1, steps=4, losses=("final",), **FULL
        ),
    ),
    certificates=tuple(cases("plane", 2, alone=("velocity", "softening"))),
    threads=(  # 250 us: one launch for all steps
        Case(
            "plane",
            functools.partial(build, 2, bodies=150),
            STEPS,
            options={"deterministic": True},
            work_us=(0.0, 250.0),
        ),
        Case(
            "space",
            functools.partial(build, 3, bodies=20, batch=9, integrator="velocity_verlet", field_batch=9),
            STEPS,
            options={"deterministic": True},
            work_us=(0.0, 250.0),
        ),
    ),
)  # fmt: skip
