"""The small systems of heat conduction that keep the contract of a simulator."""

from __future__ import annotations

import functools

import pytest

from simphys.autograd import runtime

from ...helpers.contract import Case, Contract
from .systems import CLOSED, MODELS, PLANE, make_system

STEPS = 5
IMPLICIT = MODELS["plane, Crank-Nicolson"]
BATCHED = (("temperature",), ("conductivity", "control"), ("source", "heat_capacity"))
STRICT = {"deterministic": True}
SILENT = {name: frozenset({"gradient by side_temperature"}) for name in ("all", "final")}
"""The control takes the place of the sides' temperatures; insulated sides have none."""


def share_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the loops of large models, which threads share."""
    monkeypatch.setattr(runtime, "PARALLEL_WORK_US", 0.0)
    monkeypatch.setattr(runtime, "parallel", lambda work_us: True)


CONTRACT = Contract(
    modes=(
        *[
            Case(name, functools.partial(make_system, model), STEPS, silent=SILENT, large=share_out)
            for name, model in MODELS.items()
        ],
        Case("plane, fixed sides", functools.partial(make_system, PLANE, control=False), STEPS),
    ),
    batches=tuple(
        [
            Case(
                f"{kind}, {batched[0]}",
                functools.partial(make_system, model, batch=3, batched=batched),
                STEPS,
                members=1e-12,
                large=share_out,
            )
            for kind, model in (("plane", PLANE), ("Crank-Nicolson", IMPLICIT))
            for batched in BATCHED
        ]
    ),
    devices=tuple(
        [
            Case(name, functools.partial(make_system, MODELS[name], batch=2, batched=("source",)), STEPS, f32=2e-5)
            for name in ("plane", "plane, Crank-Nicolson")
        ]
    ),
    budgets=tuple(
        [
            Case(name, functools.partial(make_system, model, 40), 40, keep=("all", "final"), large=share_out)
            for name, model in (("plane", PLANE), ("Crank-Nicolson", IMPLICIT))
        ]
    ),
    derivatives=(
        *[Case(name, functools.partial(make_system, model, 3), 3, dot_product=1e-11) for name, model in MODELS.items()],
        Case("plane, fixed sides", functools.partial(make_system, PLANE, control=False), 3),
    ),
    certificates=(Case("plane", functools.partial(make_system, PLANE), STEPS, alone=("conductivity", "source")),),
    threads=(
        Case("plane", functools.partial(make_system, PLANE, batch=2, batched=("source",)), STEPS, options=STRICT),
        Case("closed", functools.partial(make_system, CLOSED), STEPS, work_us=(1e9,), options=STRICT),
    ),
)
