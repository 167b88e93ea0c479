"""The small systems of elastic waves that keep the contract of a simulator."""

from __future__ import annotations

import functools

import pytest

from simphys.autograd import runtime

from ...helpers.contract import Case, Contract
from .systems import BOX, LAYERS, SMALL, SPACE, make_system

STEPS = 4


def silent(*names: str) -> dict[str, frozenset[str]]:
    """Gradients that are 0: by the readings at the start, which a step replaces, and by forces or moments not used."""
    found = frozenset([f"gradient by {name}" for name in names])
    return {"all": found - {"gradient by received"}, "final": found}


def share_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the loops of large models, which threads share."""
    monkeypatch.setattr(runtime, "PARALLEL_WORK_US", 0.0)
    monkeypatch.setattr(runtime, "parallel", lambda work_us: True)


BATCHED = functools.partial(make_system, BOX, batch=3, batched=("source_position", "vs"))
CONTRACT = Contract(
    modes=(
        Case("layers", functools.partial(make_system, LAYERS), STEPS, silent=silent("received"), large=share_out),
        Case("space", functools.partial(make_system, SPACE), STEPS, silent=silent("received", "moment")),
    ),
    batches=(Case("box", BATCHED, STEPS, members=1e-12, large=share_out),),
    devices=(Case("box", BATCHED, STEPS, f32=2e-5),),
    budgets=(Case("layers", functools.partial(make_system, SMALL, 40), 40, losses=("final",), keep=("final",)),),
    derivatives=(Case("layers", functools.partial(make_system, LAYERS), STEPS, dot_product=1e-11, reduced=True),),
    quick=(),  # each takes seconds to compile
)
