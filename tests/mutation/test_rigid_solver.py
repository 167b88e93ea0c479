"""Every term of the adjoints of constraint rows, the solver, sensing and the fused loop is needed."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np

from simphys.autograd import Tensor, ops, tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.autograd.proof.mutation import ERRORS, Mutant
from simphys.rollout import rollout
from simphys.simulators import rigid
from simphys.simulators.rigid import Plane, RigidBodies, Sphere, acts, basis, contact_rows, engine, sense, solve
from simphys.simulators.rigid.checks import VARIATIONAL

from ..simulators.rigid.systems import NAMES, System, chain, controls, leaves, system, unpacked
from ..simulators.rigid.test_contact_rows import WHAT, balls, inputs_of
from ..simulators.rigid.test_solve import model_of, parted
from . import test_rigid_motion as motion
from .sweep import Sweep, stale, use_engine

EACH = 1
"""Number of mutants per rule in a sample: each compiles a kernel."""

EQUIVALENT = {
    "loops.adj_contact_rows: -gap?gap0 + c? / h < v_rest -> *<=*": "the kink, which test_contact_rows.py holds",
    "loops.adj_contact_rows: frame0 + c * 3 * dim -> c * 3 * dim": "0 here; in fused loops held by nested = fused",
    "loops.adj_contact_rows: row0 + c * dim * W -> c * dim * W": "likewise",
    "loops.adj_contact_rows: adj_frame0 + c * 3 * dim -> c * 3 * dim": "likewise",
    "loops.adj_play: adj_speed?adj_speed0 + n * D + e? = 0.0 -> nothing": "of the world: what it is multiplied by is 0",
    "loops.adj_play: acts > 1 -> acts >= 1": "only saves work",
    "loops.adj_play: -bounce?bounce0 + c? * u > 0 -> -bounce?bounce0 + c? * u >= 0": "test_solve.py holds the kink",
    **{
        f"loops.adj_play: {place}": "0 here; in fused loops held by nested = fused"
        for place in (
            "record0 + i * L -> i * L",
            "adj_record0 + i * L -> i * L",
            "adj_record0 + at_P -> at_P",
            "adj_shift0 + bodies?2 * block + side? * D -> bodies?2 * block + side? * D",
            "goal0 + goal_of(act, N) -> goal_of(act, N)",
            "adj_goal0 + goal_of(act, N) -> goal_of(act, N)",
            "trace0 + act * count * N -> act * count * N",
            "adj_impulse0 + act * N -> act * N",
            "gained0 + at_body -> at_body",
            "adj_gained0 + at_body -> at_body",
            "speed0 + at_body -> at_body",
            "result0 + MEET * n * D -> MEET * n * D",
            "adj_speed0 + at_body -> at_body",
        )
    },
    "functions.adj_basis: z < 0 -> z <= 0": "where z = 0, either sign gives tangents",
}

Check = motion.Check


def of_contact_rows(dim: int) -> Check:
    """Make a check of constraint rows of impacts, of resting contacts, and of inactive ones."""
    model = balls(dim)
    return motion.checked(contact_rows, "ContactRows", model, *inputs_of(model), given=tensor(np.array(WHAT, float)))


def of_contact_rows_anywhere(package: Any) -> None:
    # Space first: a plane rule fails to compile there, while a space rule reads out of bounds in the plane.
    for dim in (3, 2):
        of_contact_rows(dim)(package)


def of_solve() -> Check:
    """Make a check of contacts that stick, slide, separate or are inactive, and joints, in steps split by an impact.

    In space, with the gyroscopic torque.
    """
    plane, space = model_of(2, integrator=VARIATIONAL), model_of(3)
    cases = [(model, *parted(model, case)) for model, case in ((plane, 0), (plane, 1), (space, 0))]
    checks = [motion.checked(solve, "Solve", model, *inputs.values(), given=what) for model, what, inputs in cases]

    def check(package: Any) -> None:
        for each in checks:
            each(package)

    return check


def of_sense() -> Check:
    model, _, state = chain(3, controlled=True)
    return motion.checked(sense, "Sense", model, *state.tensors())


def sliding() -> System:
    """Make a ball that slides on a floor and bounces."""
    model = RigidBodies(2, 0.01, ((Sphere(0.1),),), (Plane((0.0, 1.0)),), sweeps=2)
    state = {"position": [[0.0, 0.107]], "velocity": [[1.0, -0.5]], "angular_velocity": 0.5, "orientation": 0.3}
    return system(model, state=state, friction=0.1)


def of_rollouts(*cases: System) -> Check:
    """Make a check of motions by the engine of a copy: of the last state, and of all."""

    def check(package: Any) -> None:
        mine = importlib.import_module(f"{package.__name__}.engine")
        with use_engine(RigidBodies, mine.RigidEngine):
            for model, params, start in cases:
                control = controls(model, 3)

                def moved(*inputs: Tensor, model: RigidBodies = model, driven: bool = control is not None) -> Any:
                    given, state = unpacked(*inputs[: len(NAMES)])
                    made = rollout(model, given, state, steps=3, control=inputs[-1] if driven else None)
                    found = (*made.states.tensors(), *made.final.tensors())
                    return ops.concatenate([each.reshape(-1) for each in found])

                inputs = leaves(params, start) if control is None else (*leaves(params, start), control)
                gradcheck(moved, inputs, mode="projected", repeats=1)

    return check


sweep_of = functools.partial(Sweep, package=rigid, equivalent=EQUIVALENT, errors=(*ERRORS, TypeError, AttributeError))

SWEEPS = [
    sweep_of(basis, ("functions.adj_*",), of_contact_rows_anywhere),
    sweep_of(contact_rows, ("loops.adj_*", "kernels.adjoint", "ContactRows.backward"), of_contact_rows(2)),
    sweep_of(solve, ("Solve.backward",), of_solve()),
    sweep_of(acts, ("loops.adj_play",), of_solve()),
    sweep_of(sense, ("Sense.backward",), of_sense()),
    sweep_of(engine, ("RigidEngine.pull",), of_rollouts(sliding())),
]


def test_what_is_listed_as_equivalent_exists() -> None:
    assert not stale(SWEEPS)


def test_the_rules_as_they_are_pass(sweep: Sweep) -> None:
    sweep.passes_the_original()


def test_a_changed_rule_is_noticed(sweep: Sweep, mutant: Mutant) -> None:
    assert sweep.notices(mutant) != sweep.is_equivalent(mutant)
