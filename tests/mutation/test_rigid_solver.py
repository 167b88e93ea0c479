"""Every term in the adjoints of contact rows, the solver and a controller's inputs is needed."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np

from simphys.autograd import tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.autograd.proof.mutation import ERRORS
from simphys.simulators import rigid
from simphys.simulators.rigid.contacts import contact_rows
from simphys.simulators.rigid.motion import sense
from simphys.simulators.rigid.solver import phases_adjoint, solve

from ..simulators.rigid.contacts.test_contact_rows import WHAT, H, balls, make_inputs
from ..simulators.rigid.solver.test_solve import make_model, split_case
from ..simulators.rigid.systems import chain
from . import test_rigid_motion as motion
from .suite import *  # noqa: F403 - the tests of all sweeps
from .sweep import Sweep

EACH = 1 / 2
"""Number of mutants per rule in a sample: each compiles a kernel."""

EQUIVALENT = {
    "adj_contact_rows: -gap / h < rest_speed -> *<=*": "the kink: test_contact_rows.py",
    "adj_solve_phases: phase_count > 1 -> phase_count >= 1": "only saves work",
    "adj_aim_at_impact: -x.bounce?c? * u > 0 -> -x.bounce?c? * u >= 0": "the kink: test_solve.py",
}

Check = motion.Check


def check_contact_rows(dim: int) -> Check:
    """Check rows of impacts, of contacts at rest, and of inactive ones."""
    model, given = balls(dim), (tensor(np.array(WHAT, float)), H, 0.5)
    return motion.make_check(contact_rows, "ContactRows", model, *make_inputs(model), given=given)


def check_contact_rows_in_any_dimension(package: Any) -> None:
    # Space first: a plane rule fails to compile there, while a space rule reads out of bounds in the plane.
    for dim in (3, 2):
        check_contact_rows(dim)(package)


def check_solve() -> Check:
    """Check contacts that stick, slide, separate or are inactive, and joints, in steps that an impact splits."""
    plane, space = make_model(2), make_model(3)
    cases = [(model, *split_case(model, case)) for model, case in ((plane, 0), (plane, 1), (space, 0))]
    checks = [motion.make_check(solve, "Solve", model, *inputs.values(), given=what) for model, what, inputs in cases]

    def check(package: Any) -> None:
        for each in checks:
            each(package)

    return check


def check_sense() -> Check:
    model, _, state = chain(3, controlled=True)
    inputs = *state.tensors(), tensor([0.3, -0.2, 0.5], requires_grad=True)

    def check(package: Any) -> None:
        sense_bodies = importlib.import_module(f"{package.__name__}.motion.sense").SenseBodies
        gradcheck(lambda *x: sense_bodies.apply(model, *x, 0.7), inputs, mode="projected", repeats=1)

    return check


make_sweep = functools.partial(Sweep, package=rigid, equivalent=EQUIVALENT, errors=(*ERRORS, TypeError, AttributeError))

SWEEPS = [
    make_sweep(contact_rows, ("adj_basis",), check_contact_rows_in_any_dimension),
    make_sweep(contact_rows, ("adj_contact_rows",), check_contact_rows(2)),
    make_sweep(phases_adjoint, ("adj_*",), check_solve()),
    make_sweep(sense, ("adj_*",), check_sense()),
]
