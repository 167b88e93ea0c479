"""The small waves that keep the contract of a simulator. Budgets of memory are in test_memory.py."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import pytest

from simphys.autograd import runtime
from simphys.simulators.wave.model import Wave

from ...helpers.contract import Case, Contract, System
from .systems import LINE, PLANE, SPACE, TORUS, case

STEPS = 7


def build(model: Wave, steps: int = STEPS, **options: Any) -> System:
    return System(*case(model, steps, **options)[:4])


def share_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the loops of large models, which threads share."""
    monkeypatch.setattr(runtime, "PARALLEL_WORK_US", 0.0)
    monkeypatch.setattr(runtime, "parallel", lambda work_us: True)


MODELS = {"plane": PLANE, "line": LINE, "space": SPACE, "torus": TORUS}
SILENT = {"final": frozenset({"gradient by received"})}
"""The initial readings do not influence the final state, apart from the readings themselves."""
BATCHED = (
    ("source_position",),
    ("speed",),
    ("control", "receiver_position"),
    ("height", "previous", "source_velocity"),
)
DERIVATIVE = {"mode": "projected", "repeats": 1, "tolerance": 1e-6}
SMALL = replace(PLANE, order=2, boundaries=("zero", "absorbing", "free", "free"))
"""A model that is quick to compile."""

CONTRACT = Contract(
    modes=tuple([Case(name, functools.partial(build, model), STEPS, silent=SILENT) for name, model in MODELS.items()]),
    batches=(
        *[
            Case(
                f"plane, {batched[0]}", functools.partial(build, PLANE, batch=3, batched=batched), STEPS, members=1e-12
            )
            for batched in BATCHED
        ],
        Case(
            "plane, large",
            functools.partial(build, PLANE, batch=2, batched=("height", "source_position")),
            STEPS,
            large=share_out,
            members=1e-12,
        ),
    ),
    devices=(
        Case("plane", functools.partial(build, SMALL, 2, batch=2, batched=("source_position", "height")), 2, f32=2e-5),
    ),
    derivatives=(
        *[
            Case(name, functools.partial(build, model, 5), 5, gradcheck=DERIVATIVE, reduced=True)
            for name, model in MODELS.items()
        ],
        *[
            Case(
                f"plane, {batched[0]}",
                functools.partial(build, PLANE, 4, batch=2, batched=batched),
                4,
                gradcheck=DERIVATIVE,
                reduced=True,
            )
            for batched in (("source_position", "control"), ("speed", "height"))
        ],
    ),
    certificates=(Case("plane", functools.partial(build, PLANE), STEPS, alone=("height", "speed")),),
    threads=(Case("plane", functools.partial(build, PLANE, batch=2, batched=("source_position",)), STEPS),),
)
