"""Results of the contract's cases as the processor computes them, while this process computes on another device.

A process computes on one device only. The processor's results come from a second process, which lives as long as this.
"""

from __future__ import annotations

import importlib
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from simphys.rollout import rollout

from .contract import Case, Result, evaluate


class Place(NamedTuple):
    """Where a case is found: its simulator, the kind of cases of its contract, and its number there."""

    simulator: str
    kind: str
    number: int

    @property
    def case(self) -> Case:
        """Return the case itself."""
        contracts = importlib.import_module("tests.simulators.test_contract").CONTRACTS
        found: Case = getattr(contracts[self.simulator], self.kind)[self.number]
        return found


def compute(place: Place) -> Result:
    """Return states and gradients of a case on the device in force, those for budgets within their memory."""
    case = place.case
    options: dict[str, Any] = dict(case.options)
    if place.kind == "budgets":
        options["keep"] = case.keep[0]
        model, params, state, control = case.system()
        plan = rollout(model, params, state, control=control, steps=case.steps, keep=case.keep[0]).plan
        assert plan is not None, "a rollout of an engine has a plan"
        options["memory"] = int(plan.predicted_bytes * case.budget)
    loss = "final" if options.get("keep") == "final" else case.losses[0]
    return evaluate(case.system(), case.steps, loss, **options)


def compute_on_processor(place: Place, precision: str) -> Result:
    """Return what `compute` gives on the processor in a precision."""
    return _pool().submit(_compute, place, precision).result()


@cache
def _pool() -> ProcessPoolExecutor:
    sys.path.append(str(Path(__file__).parents[2]))  # the second process, which gets this path, imports tests from it
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))


def _compute(place: Place, precision: str) -> Result:
    from simphys.autograd import runtime

    runtime.init(arch="cpu", precision=precision, threads=1)
    return compute(place)
