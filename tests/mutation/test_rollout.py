"""Every term of the fused rollout's own rules is needed; and its checks notice each error in an engine's rules."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np

import simphys.rollout
from simphys.autograd import tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.autograd.proof.mutation import ERRORS

from ..rollout import cases, pendulums
from ..rollout.cases import Case, case, energy
from .suite import *  # noqa: F403 - the tests of all sweeps
from .sweep import Sweep

EACH = 4
"""Number of mutants per rule in a sample."""

ERRORS_TOO = (*ERRORS, TypeError)
"""Errors of mutants that the checks survive; TypeError, as a dict has no sign."""

EQUIVALENT = {
    "*zeros(*) -> -*zeros(*)": "what is added to 0 may be added to -0",
}

FUSED, RESULTS, RUNNING, SEEDS = (
    importlib.import_module(f"simphys.rollout.{name}") for name in ("fused", "results", "running", "seeds")
)


def proven(given: Case, rollouts: Any, **options: Any) -> None:
    """Check the gradient and the tangents of a rollout."""
    gradcheck(
        lambda *x: cases.loss_of(given.rollout(*x, rollouts=rollouts, **options)),
        given.leaves,
        mode="projected",
        repeats=1,
    )


def rollouts(package: Any) -> None:
    """Check losses of all results, shared inputs, every kind of plan, and tangents in several blocks and pieces."""
    vars(sys.modules[f"{package.__name__}.fused"])["FORWARD_BYTES"] = 1
    vars(sys.modules[f"{package.__name__}.inputs"])["PIECE"] = 48 * 3
    for keep in ([0], [2], "final", "all"):
        proven(case(steps=4, keep=keep), package)
    proven(case(steps=4, keep="all", running=lambda states, steps: tensor(1.0)), package)
    long = case(steps=20, keep=[3, 8, 17], running=energy)
    for memory in ("all", *long.budgets(rollouts=package).values()):
        proven(long, package, memory=memory)
    shared = ("stiffness", "damping", "control", "angle")
    for given in (
        case(steps=5, keep=[0, 2, 5], running=energy),
        case(steps=5, keep="final", running=energy, batch=2, shared=shared),
        case(steps=5, keep=[0, 3], running=energy, batch=2, control=False),
    ):
        for memory in given.budgets(rollouts=package).values():
            proven(given, package, memory=memory)
        along(given, package)


def along(given: Case, package: Any) -> None:
    """Check the adjoint along time: it must change with the weight of a kept state in the loss."""
    leaves = [leaf.detach() for leaf in given.leaves]
    leaves[2].requires_grad_()

    def adjoint(extra: float) -> Any:
        kept = given.rollout(*leaves, rollouts=package, keep="all", keep_adjoint=True)
        middle = kept.angle[:, 2] if kept.angle.ndim == 3 else kept.angle[2]
        (cases.loss_of(kept) + extra * middle.sum()).backward()
        assert kept.adjoint is not None
        return kept.adjoint.angle if kept.angle.ndim == 3 else kept.adjoint.angle[None]

    change = adjoint(2.0) - adjoint(0.0)
    np.testing.assert_allclose(change[:, 2], 2.0, rtol=1e-12)
    assert (np.abs(change[:, 3:]) < 1e-12).all() and (change[:, :2] > 0.5).all()


def engine(module: Any) -> None:
    """Check pendulums from a copy of their module: nested = fused, adjoints = differences and tangents."""
    for of_system in ({}, {"batch": 2, "shared": ("stiffness", "damping", "control")}, {"batch": 2, "control": False}):
        model, params, state, control = module.system(steps=6, **of_system)
        for keep in ("all", "final"):
            given = Case(model, params, state, control, {"steps": 6, "keep": keep, "running": None})
            for memory in given.budgets().values():
                proven(given, simphys.rollout, memory=memory)


SWEEPS = [
    Sweep(SEEDS, ("Seeds.*",), rollouts, simphys.rollout, ERRORS_TOO, EQUIVALENT),
    Sweep(FUSED, ("Rollout.backward", "Rollout.jvp", "_reverse"), rollouts, simphys.rollout, ERRORS_TOO, EQUIVALENT),
    Sweep(RESULTS, ("Results.add_tangents",), rollouts, simphys.rollout, ERRORS_TOO, EQUIVALENT),
    Sweep(RUNNING, ("RunningSum.differentiate",), rollouts, simphys.rollout, ERRORS_TOO, EQUIVALENT),
    Sweep(pendulums, ("PendulumEngine.pull", "PendulumEngine.push"), engine, errors=ERRORS_TOO),
]
