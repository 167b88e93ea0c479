"""Every term of the adjoints of free motion, joints, motors and springs of rigid bodies is needed."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.autograd.proof.mutation import ERRORS, Mutant
from simphys.simulators import rigid
from simphys.simulators.rigid import (
    Capsule,
    Plane,
    RigidBodies,
    Sphere,
    drift,
    inertia,
    joint_row,
    joint_rows,
    kick,
    meeting,
    mobility,
    motor,
    nested,
    parting,
    spring_damper,
    variational,
)
from simphys.simulators.rigid.checks import EULER, INTEGRATORS
from simphys.simulators.rigid.fused import lightly_optimized

from ..simulators.rigid import test_mobility, test_parting
from ..simulators.rigid.free_bodies import bodies, drift_inputs, kick_inputs, leaf, state
from ..simulators.rigid.test_joint_rows import chain
from ..simulators.rigid.test_motor import driven
from ..simulators.rigid.test_spring_damper import sprung
from .sweep import Sweep, stale

EACH = 1
"""Number of mutants per rule in a sample: each compiles a kernel."""

EQUIVALENT = {
    "functions.adj_rotate: spin(0.0) -> -spin(0.0)": "zero",
    "in_plane.adj_rotate: one(0.0) -> -one(0.0)": "zero",
    "Mobility.backward: 2 * model.contacts -> *": "the size of work space, beyond which arrays have a margin here",
    "loops.adj_meet: g < pair.FAR -> g <= pair.FAR": "nothing is as far as that here",
    "loops.adj_meet: of_impact >= 0 -> of_impact > 0": "it is not the first candidate here",
    "loops.adj_meet: poses > 1 -> poses >= 1": "computes again what is known",
    "loops.adj_meet: unmoved0 + c * dim -> c * dim": "0 here; in fused loops held by nested = fused",
    "loops.adj_meet: frame0 + c * 3 * dim -> c * 3 * dim": "0 here; in fused loops held by nested = fused",
    "loops.adj_mobility: *row0 + at_m -> at_m": "likewise",
    "loops.adj_mobility: adj_turned0 + at_g -> at_g": "likewise",
    "loops.adj_mobility: adj_moment0 + at_g -> at_g": "likewise",
    "loops.adj_mobility: adj_facing0 + place_of(k, side, NJ) * S -> place_of(k, side, NJ) * S": "likewise",
    "loops.adj_joint_rows: adj_row0 + k * width -> k * width": "0 here; in fused loops held by nested = fused",
}

MARGIN = 10_000
"""Number of padding entries on either side."""

Check = Callable[[Any], None]


def checked(
    original: ModuleType,
    function: str,
    model: RigidBodies,
    *inputs: Tensor,
    given: Any = None,
    outputs: Callable[[Any], Any] | None = None,
) -> Check:
    """Make a check of a Function in a copy of the package, with the original forward kernel.

    `given` are the arguments before the inputs; `outputs` selects the outputs to check. The adjoint kernel has to
    add to the adjoints of the inputs, its last arguments.
    """
    first = (model,) if given is None else (model, *given) if isinstance(given, tuple) else (model, given)

    def check(package: Any) -> None:
        mine = importlib.import_module(f"{package.__name__}.{original.__name__.rsplit('.', 1)[-1]}")
        with lightly_optimized():
            forward, adjoint = vars(original)["_kernels"](model).forward, vars(mine)["_kernels"](model).adjoint

            def adding(*arguments: Any) -> None:
                given = [with_margins(each) if isinstance(each, np.ndarray) else each for each in arguments]
                for values in given[-len(inputs) :]:
                    values += 1
                adjoint(*given)
                for values, found in zip(arguments[-len(inputs) :], given[-len(inputs) :], strict=True):
                    values[:] = found - 1

            kernels = SimpleNamespace(forward=forward, adjoint=adding)
            with patch.object(mine, "_kernels", lambda _: kernels):

                def chosen(*x: Tensor) -> Any:
                    found = getattr(mine, function).apply(*first, *x)
                    return found if outputs is None else outputs(found)

                gradcheck(chosen, inputs, mode="projected", repeats=1)

    return check


def with_margins(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Copy into the middle of an array, so that a mutant with indices out of bounds does no harm."""
    room = np.zeros(values.size + 2 * MARGIN, values.dtype)[MARGIN:-MARGIN]
    room[:] = values
    return room


def of_kick(model: RigidBodies) -> Check:
    return checked(kick, "Kick", model, *kick_inputs(model).values(), given=0.3)


def of_drift(dim: int, integrator: str) -> Check:
    model = bodies(dim, 2, integrator=integrator)
    return checked(drift, "Drift", model, *drift_inputs(model).values(), given=0.3)


def of_mobility(dim: int, integrator: str = EULER) -> Check:
    model = replace(test_mobility.model_of(dim), integrator=integrator)
    return checked(mobility, "Mobility", model, *test_mobility.inputs_of(model), given=test_mobility.what_of(model))


def of_mobility_of_both(package: Any) -> None:
    for integrator in INTEGRATORS:
        of_mobility(3, integrator)(package)


def of_meeting() -> Check:
    """Make a check of the impacts of a rotating capsule, and of a sphere that rests on another until then, in space."""
    shapes = (Capsule(0.1, 0.2),), (Sphere(0.1),), (Sphere(0.1),)
    model = RigidBodies(3, 0.05, shapes, (Plane((0.0, 0.0, 1.0)),), fixed=(2,), apart=((0, 2),))
    values = (
        [[0.0, 0.1, 0.2], [0.36, 0.05, 0.151], [0.36, 0.05, -0.05]],
        [[0.98, 0.1, 0.15, 0.1], [0.9, -0.1, 0.2, 0.3], [0.9, -0.1, 0.2, 0.3]],
        [[0.9, 0.2, -1.8, 0.5, 1.0, -0.7], [-1.5, 0.1, -0.01, 0.4, -0.3, 0.6], [0.0] * 6],
    )
    leaves = [tensor(np.array(each), requires_grad=True) for each in values]
    _, _, _, time, active, _ = [each.data for each in meeting.Meeting.apply(model, *leaves)]
    assert sorted(active[active > 0].tolist()) == [meeting.REST, meeting.IMPACT, meeting.IMPACT], active
    (rests,) = np.flatnonzero(active == meeting.REST)
    assert time[rests] in time[active == meeting.IMPACT]

    def differ(found: Any) -> tuple[Any, ...]:
        return found[0][rests], *found[1:4]  # the gap of an impact is 0

    return checked(meeting, "Meeting", model, *leaves, outputs=differ)


def of_parting(dim: int) -> Check:
    model = test_parting.balls(dim)
    return checked(parting, "Parting", model, *test_parting.inputs_of(model), given=test_parting.first_of(model))


def of_rows(dim: int) -> Check:
    model = chain(dim)
    return checked(joint_rows, "JointRows", model, leaf(3, dim, seed=1), leaf(3, model.rotations, seed=2))


def of_motors() -> Check:
    model = driven(2)
    of_joints = leaf(3, seed=1), leaf(3, seed=2, low=0.5), leaf(5, seed=3, low=0.5)
    return checked(motor, "JointForce", model, *state(model), *of_joints)


def of_springs() -> Check:
    model = sprung(2)
    of_each = [leaf(3, seed=seed, low=0.5, high=2.0) for seed in range(3)]
    return checked(spring_damper, "SpringDamper", model, *state(model), *of_each)


sweep_of = functools.partial(Sweep, package=rigid, equivalent=EQUIVALENT, errors=(*ERRORS, TypeError, AttributeError))


def around(module: ModuleType, function: str, check: Check, *others: str) -> Sweep:
    """List the loops of a sub-step, its kernel, its Function, and `others`."""
    return sweep_of(module, (*others, "loops.adj_*", "kernels.adjoint", f"{function}.backward"), check)


SWEEPS = [
    sweep_of(inertia, ("functions.adj_*",), of_kick(bodies(3, integrator="variational"))),
    sweep_of(kick, ("functions.adj_*",), of_kick(bodies(3))),
    around(kick, "Kick", of_kick(bodies(2, fixed=(1,)))),
    sweep_of(drift, ("functions.adj_*",), of_drift(3, "semi_implicit_euler")),
    around(drift, "Drift", of_drift(2, "semi_implicit_euler")),
    sweep_of(variational, ("in_plane.adj_*",), of_drift(2, "variational")),
    sweep_of(variational, ("in_space.adj_*",), of_drift(3, "variational")),
    around(meeting, "Meeting", of_meeting()),
    around(parting, "Parting", of_parting(3)),
    around(mobility, "Mobility", of_mobility_of_both),
    sweep_of(nested, ("turns.add_turns",), of_rows(3)),
    sweep_of(joint_row, ("turns_in_plane.adj_*",), of_rows(2)),
    sweep_of(joint_row, ("turns_in_space.adj_*", "functions.adj_*"), of_rows(3)),
    around(joint_rows, "JointRows", of_rows(2)),
    around(motor, "JointForce", of_motors()),
    around(spring_damper, "SpringDamper", of_springs()),
]


def test_what_is_listed_as_equivalent_exists() -> None:
    assert not stale(SWEEPS)


def test_the_rules_as_they_are_pass(sweep: Sweep) -> None:
    sweep.passes_the_original()


def test_a_changed_rule_is_noticed(sweep: Sweep, mutant: Mutant) -> None:
    assert sweep.notices(mutant) != sweep.is_equivalent(mutant)
