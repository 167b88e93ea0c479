"""The small systems of fluid that keep the contract of a simulator."""

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


ALONE = frozenset(["gradient by depth"])
PLANE = Case("plane", system, STEPS, losses=("final",), silent={"final": ALONE}, large=launch_each_step)
LINEAR = functools.partial(system, exponent=1.0, background=3.0, gauges=())

CONTRACT = Contract(
    modes=(PLANE, Case("space, a linear equation of state", functools.partial(LINEAR, 3), 3, losses=("final",))),
    batches=(Case("plane", functools.partial(system, batch=2), STEPS, losses=("final",), members=1e-12),),
    budgets=(Case("plane, a linear equation of state", LINEAR, 40, losses=("final",), keep=([40], "final")),),
    derivatives=(Case("plane", system, 4, losses=("final",), dot_product=1e-11),),
    quick=(),  # each takes seconds to compile
)
