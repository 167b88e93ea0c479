"""The small systems of atoms that keep the contract of a simulator."""

from __future__ import annotations

import functools

import pytest

from simphys.autograd import runtime

from ...helpers.contract import Case, Contract
from .systems import system

STEPS = 8


def launch_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Launch a kernel for each step, as for large systems."""
    monkeypatch.setattr(runtime, "PARALLEL_WORK_US", 0.0)


NOT_READ = "gradient by msd"
ALONE = frozenset(["gradient by steepness", "gradient by friction", "gradient by temperature", NOT_READ])
PLANE = Case(
    "plane", functools.partial(system, 2), STEPS, losses=("final",), silent={"final": ALONE}, large=launch_each_step
)
BATH = functools.partial(system, potential="morse", heat_bath=True)
LINKED = functools.partial(BATH, 3, linked=True)
MOLECULE = Case(
    "space, Morse, charges and a molecule in a bath",
    LINKED,
    STEPS,
    losses=("final",),
    silent={"final": frozenset([NOT_READ])},
)

CONTRACT = Contract(
    modes=(PLANE, MOLECULE),
    batches=(Case("plane", functools.partial(system, 2, batch=2), STEPS, losses=("final",), members=1e-12),),
    budgets=(Case("plane", functools.partial(system, 2, bins=0), 40, losses=("final",), keep=([40], "final")),),
    derivatives=(
        Case("plane, Morse, a heat bath", functools.partial(BATH, 2), 4, losses=("final",), dot_product=1e-11),
    ),
    certificates=(Case("plane", functools.partial(system, 2, bins=0), STEPS, alone=("velocity", "sigma")),),
    quick=(),  # each takes seconds to compile
)
