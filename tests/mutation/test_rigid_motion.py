"""Every term in the adjoints and tangents of free motion, joints, motors and springs of rigid bodies is needed."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.autograd.proof.mutation import ERRORS
from simphys.simulators import rigid
from simphys.simulators.rigid import Capsule, Plane, RigidBodies, Sphere
from simphys.simulators.rigid.contacts import time_of_impact, time_of_impact_adjoint, time_of_impact_tangent
from simphys.simulators.rigid.joints import joint_constraints, joint_row, motor, spring_damper
from simphys.simulators.rigid.motion import drift, inertia, kick, variational
from simphys.simulators.rigid.solver import mobility, split_step
from simphys.substep import function, launch
from simphys.substep.routine import Routine

from ..simulators.rigid.free_bodies import arms as joint_arms
from ..simulators.rigid.free_bodies import bodies, drift_inputs, free_drift_inputs, kick_inputs, leaf, state
from ..simulators.rigid.joints.test_joint_constraints import chain
from ..simulators.rigid.joints.test_motor import driven_joints
from ..simulators.rigid.joints.test_spring_damper import held, spring_model
from ..simulators.rigid.solver import test_mobility, test_split_step
from .suite import *  # noqa: F403 - the tests of all sweeps
from .sweep import Sweep, has_tangents_by_hand

EACH = 1 / 2
"""Number of mutants per rule in a sample: each compiles a kernel."""

EQUIVALENT = {
    "*: q_b + still -> q_b - still": "the opposite quaternion is the same rotation",
    "jvp_time_of_impact: impact >= 0 -> impact > 0": "the impact is not the first candidate here",
    "jvp_contact_at: gap < pair.FAR -> gap <= pair.FAR": "no gap is that large here",
    "adj_contact_at: g < pair.FAR -> g <= pair.FAR": "no gap is that large here",
    "adj_contact: poses > 1 -> poses >= 1": "only repeats a computation",
}

MARGIN = 10_000
"""Length of the margins on either side of a copied array."""

Check = Callable[[Any], None]

CHECKED = {"function": "adjoint"}
"""The function of the changed package that a check compiles: adjoint or tangent; all others are the original ones."""


def make_check(
    original: ModuleType,
    function: str,
    model: RigidBodies,
    *inputs: Tensor,
    given: Any = None,
    outputs: Callable[[Any], Any] | None = None,
) -> Check:
    """Return a check of a sub-step in a copy of the package; the original functions but that of CHECKED are reused.

    `given` are the arguments before the inputs; `outputs` selects the outputs to check.
    """
    first = (model,) if given is None else (model, *given) if isinstance(given, tuple) else (model, given)

    def check(package: Any) -> None:
        mine = importlib.import_module(original.__name__.replace(rigid.__name__, package.__name__))
        rule = getattr(mine, function)

        def chosen(*x: Tensor) -> Any:
            found = rule.apply(*first, *x)
            return found if outputs is None else outputs(found)

        is_routine = isinstance(rule.pattern, Routine)
        with changed_function(getattr(original, function), rule) if is_routine else nullcontext():
            gradcheck(chosen, inputs, mode="projected", repeats=1)

    return check


@contextmanager
def changed_function(original: Any, rule: Any) -> Iterator[None]:
    """Let a routine of a changed package take the original functions but that of CHECKED, and arrays with margins."""
    known, changed = (vars(each.pattern)["_functions"] for each in (original, rule))
    mixed = known._replace(**{CHECKED["function"]: getattr(changed, CHECKED["function"])})
    with patch.object(rule.pattern, "_functions", mixed), patch.object(function, "run_pass", run_with_margins):
        yield


def run_with_margins(op: Any, name: Any, given: Any) -> list[np.ndarray[Any, Any]]:
    """Run a pass on copies in larger arrays. Adjoints begin with 1, which is subtracted again."""
    prepared, offset = vars(launch)["_prepare"](op, name, False, False), float(name == "adjoint")
    known = {**given, **{key: np.full(shape, offset) for key, shape in prepared.results}}
    copies = [with_margins(np.full(shape, offset) if key is None else known[key]) for key, shape, _ in prepared.arrays]
    prepared.kernel(*copies, *[op.relations[key] for key in prepared.relations],
        *[op.inputs[key] for key in prepared.numbers], *prepared.sizes, 1)  # fmt: skip
    found = {key: copy for (key, _, _), copy in zip(prepared.arrays, copies, strict=True)}
    return [found[key].reshape(shape) - offset if key in found else np.zeros(shape) for key, shape in prepared.results]


def with_margins(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Copy an array to the middle of a larger one, so that a mutant with wrong indices does no harm."""
    room = np.zeros(values.size + 2 * MARGIN, values.dtype)[MARGIN:-MARGIN]
    room[:] = values.reshape(-1)
    return room


def check_tangents(check: Check) -> Check:
    """Return the check with the tangent of the changed package."""

    def check_package(package: Any) -> None:
        with patch.dict(CHECKED, function="tangent"):
            check(package)

    return check_package


def tangents_of(sweep: Sweep) -> Any:
    """Return the sweep over the tangent rules beside the adjoint rules of a sweep."""
    rules = tuple([rule.replace("adj_", "jvp_") for rule in sweep.rules])
    return sweep._replace(rules=rules, check=check_tangents(sweep.check))


def check_all(*checks: Check) -> Check:
    """Return a check that makes all of these."""

    def check(package: Any) -> None:
        for each in checks:
            each(package)

    return check


def when_needed(make: Callable[[], Check]) -> Check:
    """Return the check that this makes, which is made at its first use: to collect tests launches no kernel."""
    made = functools.cache(make)

    def check(package: Any) -> None:
        made()(package)

    return check


def check_kick(model: RigidBodies) -> Check:
    return make_check(kick, "Kick", model, *kick_inputs(model).values(), given=0.3)


def check_drift(dim: int, *, full: bool = False) -> Check:
    model = bodies(dim, 2, full=full)
    return make_check(drift, "Drift", model, *drift_inputs(model).values(), given=0.3)


def check_free_drift(dim: int) -> Check:
    model = bodies(dim, 2)
    return make_check(drift, "FreeDrift", model, *free_drift_inputs(model).values(), given=0.3)


def check_mobility(dim: int) -> Check:
    model = test_mobility.make_model(dim)
    return make_check(
        mobility, "Mobility", model, *test_mobility.make_inputs(model), given=test_mobility.contact_states(model)
    )


def check_time_of_impact() -> Check:
    """Check impacts in space: of a rotating capsule, and with a sphere that rests on another until then."""
    shapes = (Capsule(0.1, 0.2),), (Sphere(0.1),), (Sphere(0.1),)
    model = RigidBodies(3, 0.05, shapes, (Plane((0.0, 0.0, 1.0)),), fixed=(2,), apart=((0, 2),), free_anchors=True)
    values = (
        [[0.0225, 0.105, 0.155], [0.3225, 0.0525, 0.15075], [0.36, 0.05, -0.05]],
        [[0.98, 0.1, 0.15, 0.1], [0.9, -0.1, 0.2, 0.3], [0.9, -0.1, 0.2, 0.3]],
        [[0.9, 0.2, -1.8, 0.5, 1.0, -0.7], [-1.5, 0.1, -0.01, 0.4, -0.3, 0.6], [0.0] * 6],
        [[0.001, -0.002, 0.003], [-0.002, 0.001, 0.0002], [0.0005, 0.001, -0.0002]],
    )
    leaves = [tensor(np.array(each), requires_grad=True) for each in values]
    _, _, _, time, active, _ = [each.data for each in time_of_impact.TimeOfImpact.apply(model, *leaves)]
    assert sorted(active[active > 0].tolist()) == [time_of_impact.REST, time_of_impact.IMPACT, time_of_impact.IMPACT], (
        active
    )
    (rests,), impacts = (np.flatnonzero(active == each) for each in (time_of_impact.REST, time_of_impact.IMPACT))
    assert time[rests] in time[impacts]

    def differentiable(found: Any) -> tuple[Any, ...]:
        """The gaps of impacts and their derivatives are exactly 0: the factor makes a value of what is but rounding."""
        return found[0][rests], found[0][impacts] * 1e17, *found[1:4]

    return make_check(time_of_impact, "TimeOfImpact", model, *leaves, outputs=differentiable)


def check_split_step(dim: int) -> Check:
    model = test_split_step.balls(dim)
    return make_check(
        split_step, "SplitStep", model, *test_split_step.make_inputs(model), given=test_split_step.first_impacts(model)
    )


def check_joint_rows(dim: int) -> Check:
    model = chain(dim)
    poses = leaf(3, dim, seed=1), leaf(3, model.rotations, seed=2)
    return make_check(joint_constraints, "JointRows", model, *poses, joint_arms(model), given=0.7)


def check_motors() -> Check:
    model = driven_joints(2)
    joint_inputs = leaf(3, seed=1), leaf(3, seed=2, low=0.5), *[leaf(5, seed=n, low=0.5) for n in (3, 4, 5)]
    return make_check(motor, "JointForce", model, *state(model), *joint_inputs, joint_arms(model))


def check_springs(dim: int) -> Check:
    model = spring_model(dim)
    spring_inputs = [leaf(3, seed=seed, low=0.5, high=2.0) for seed in range(3)]
    return make_check(spring_damper, "SpringDamper", model, *state(model), *spring_inputs, *held(model))


def check_arms(dim: int) -> Check:
    model = chain(dim)
    anchors = [leaf(3, dim, seed=seed) for seed in range(3)]
    return make_check(joint_constraints, "Arms", model, *anchors)


make_sweep = functools.partial(Sweep, package=rigid, equivalent=EQUIVALENT, errors=(*ERRORS, TypeError, AttributeError))


def sweep_substep(module: ModuleType, check: Check) -> Sweep:
    """Return the sweep over the loops of a sub-step."""
    return make_sweep(module, ("adj_*",), check)


SWEEPS = [
    make_sweep(inertia, ("adj_*",), check_all(check_drift(3), check_drift(3, full=True))),
    make_sweep(kick, ("adj_*",), check_all(check_kick(bodies(2, fixed=(1,))), check_kick(bodies(3)))),
    make_sweep(drift, ("adj_drift",), check_all(check_drift(2), check_drift(3))),
    make_sweep(drift, ("adj_drift_freely",), check_all(check_free_drift(2), check_free_drift(3))),
    make_sweep(variational, ("adj_*",), check_all(check_drift(2), check_drift(3), check_drift(3, full=True))),
    sweep_substep(time_of_impact_adjoint, when_needed(check_time_of_impact)),
    sweep_substep(split_step, check_split_step(3)),
    sweep_substep(mobility, check_mobility(3)),
    make_sweep(joint_constraints, ("adj_measure_arms",), check_all(check_arms(2), check_arms(3))),
    make_sweep(joint_row, ("adj_*",), check_all(check_joint_rows(2), check_joint_rows(3))),
    make_sweep(joint_constraints, ("adj_joint_row",), check_joint_rows(3)),
    make_sweep(motor, ("adj_*",), check_motors()),
    make_sweep(spring_damper, ("adj_*",), check_all(check_springs(2), check_springs(3))),
]
SWEEPS += [tangents_of(sweep) for sweep in SWEEPS if has_tangents_by_hand(sweep.module)]
SWEEPS += [make_sweep(time_of_impact_tangent, ("jvp_*",), check_tangents(when_needed(check_time_of_impact)))]
