"""Every term in the adjoints and tangents of free motion, joints, motors and springs of rigid bodies is needed."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.autograd.kernels.variant import reduced_optimization
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
    joint_constraints,
    joint_row,
    kick,
    mobility,
    motor,
    nested,
    split_step,
    spring_damper,
    time_of_impact,
    variational,
)

from ..simulators.rigid import test_mobility, test_split_step
from ..simulators.rigid.free_bodies import bodies, drift_inputs, kick_inputs, leaf, state
from ..simulators.rigid.test_joint_constraints import chain
from ..simulators.rigid.test_motor import driven_joints
from ..simulators.rigid.test_spring_damper import spring_model
from .sweep import Sweep, stale

EACH = 1
"""Number of mutants per rule in a sample: each compiles a kernel."""

EQUIVALENT = {
    "loops.jvp_drift: i * at.* -> i": "the factor is 1 in the plane; space is held by tangent = adjoint of a horizon",
    "loops.jvp_time_of_impact: impact >= 0 -> impact > 0": "the impact is not the first candidate here",
    "loops.jvp_contact_at: gap < pair.FAR -> gap <= pair.FAR": "no gap is that large here",
    "turns_in_plane.jvp_turn: one(0.0) -> -one(0.0)": "zero",
    "in_plane.adj_rotate: one(0.0) -> -one(0.0)": "zero",
    "Mobility.backward: 2 * model.contacts -> *": "the size of a workspace, beyond which arrays have a margin here",
    "loops.adj_time_of_impact: g < pair.FAR -> g <= pair.FAR": "no gap is that large here",
    "loops.adj_time_of_impact: impact >= 0 -> impact > 0": "the impact is not the first candidate here",
    "loops.adj_time_of_impact: poses > 1 -> poses >= 1": "only repeats a computation",
}

MARGIN = 10_000
"""Length of the margins on either side of a copied array."""

Check = Callable[[Any], None]

CHECKED = {"kernel": "adjoint"}
"""The kernel of the changed package that a check compiles: adjoint or tangent; all others are the original ones."""


def make_check(
    original: ModuleType,
    function: str,
    model: RigidBodies,
    *inputs: Tensor,
    given: Any = None,
    outputs: Callable[[Any], Any] | None = None,
) -> Check:
    """Return a check of a Function in a copy of the package; the original kernels but that of CHECKED are reused.

    `given` are the arguments before the inputs; `outputs` selects the outputs to check. The adjoint kernel must add to
    the adjoints of the inputs, which backward returns.
    """
    first = (model,) if given is None else (model, *given) if isinstance(given, tuple) else (model, given)

    def check(package: Any) -> None:
        mine = importlib.import_module(f"{package.__name__}.{original.__name__.rsplit('.', 1)[-1]}")
        rule = getattr(mine, function)
        with reduced_optimization():
            used = choose_kernels(vars(original)["_kernels"](model), vars(mine)["_kernels"](model))
            adjoint = used.adjoint

            def backward(ctx: Any, *adjoints: Any) -> Any:
                launches: list[Any] = []
                with patch.object(mine, "_kernels", lambda _: SimpleNamespace(adjoint=lambda *a: launches.append(a))):
                    found = rule_backward(ctx, *adjoints)
                for arguments in launches:
                    add_to(adjoint, arguments, [each for each in found if isinstance(each, np.ndarray)])
                return found

            kernels, rule_backward = SimpleNamespace(forward=used.forward, tangent=used.tangent), rule.backward
            with patch.object(mine, "_kernels", lambda _: kernels), patch.object(rule, "backward", backward):

                def chosen(*x: Tensor) -> Any:
                    found = rule.apply(*first, *x)
                    return found if outputs is None else outputs(found)

                gradcheck(chosen, inputs, mode="projected", repeats=1)

    return check


def choose_kernels(original: Any, changed: Any) -> SimpleNamespace:
    """Choose the kernel of CHECKED from a changed package, all others from the original; tangents get margins."""
    found = {**vars(original), CHECKED["kernel"]: getattr(changed, CHECKED["kernel"])}
    return SimpleNamespace(**{**found, "tangent": functools.partial(launch_with_margins, found["tangent"])})


def launch_with_margins(kernel: Any, *arguments: Any) -> None:
    """Launch with copies in larger arrays, and copy the results back."""
    given = copy_with_margins(arguments)
    kernel(*given)
    for values, mine in zip(leaves_of(arguments), leaves_of(given), strict=True):
        if values.flags.writeable:
            values[:] = mine


def check_tangents(check: Check) -> Check:
    """Return the check with the tangent kernel of the changed package."""

    def check_package(package: Any) -> None:
        with patch.dict(CHECKED, kernel="tangent"):
            check(package)

    return check_package


def tangents_of(sweep: Sweep) -> Any:
    """Return the sweep over the tangent rules beside the adjoint rules of a sweep."""
    names = {"adj_": "jvp_", "kernels.adjoint": "kernels.tangent", ".backward": ".jvp", ".pull": ".push"}
    rules = []
    for rule in sweep.rules:
        for old, new in names.items():
            rule = rule.replace(old, new)
        rules.append(rule)
    return sweep._replace(rules=tuple(rules), check=check_tangents(sweep.check))


def add_to(adjoint: Any, arguments: tuple[Any, ...], found: list[np.ndarray[Any, Any]]) -> None:
    """Launch with copies in larger arrays, where those that `found` shares begin with 1; put back what was added."""
    given = copy_with_margins(arguments)
    pairs = [
        (values, mine)
        for values, mine in zip(leaves_of(arguments), leaves_of(given), strict=True)
        if any(np.shares_memory(values, each) for each in found)
    ]
    for _, mine in pairs:
        mine += 1
    adjoint(*given)
    for values, mine in pairs:
        values[:] = mine - 1


def leaves_of(value: Any) -> list[np.ndarray[Any, Any]]:
    """Return the arrays in records, to any depth."""
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in leaves_of(part)]
    return [value] if isinstance(value, np.ndarray) else []


def copy_with_margins(value: Any) -> Any:
    """Copy the arrays in records to the middle of larger ones, so that a mutant with wrong indices does no harm."""
    if isinstance(value, tuple):
        parts = [copy_with_margins(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if not isinstance(value, np.ndarray):
        return value
    room = np.zeros(value.size + 2 * MARGIN, value.dtype)[MARGIN:-MARGIN]
    room[:] = value
    return room


def check_kick(model: RigidBodies) -> Check:
    return make_check(kick, "Kick", model, *kick_inputs(model).values(), given=0.3)


def check_drift(dim: int) -> Check:
    model = bodies(dim, 2)
    return make_check(drift, "Drift", model, *drift_inputs(model).values(), given=0.3)


def check_mobility(dim: int) -> Check:
    model = test_mobility.make_model(dim)
    return make_check(
        mobility, "Mobility", model, *test_mobility.make_inputs(model), given=test_mobility.contact_states(model)
    )


def check_time_of_impact() -> Check:
    """Check impacts in space: of a rotating capsule, and with a sphere that rests on another until then."""
    shapes = (Capsule(0.1, 0.2),), (Sphere(0.1),), (Sphere(0.1),)
    model = RigidBodies(3, 0.05, shapes, (Plane((0.0, 0.0, 1.0)),), fixed=(2,), apart=((0, 2),))
    values = (
        [[0.0225, 0.105, 0.155], [0.3225, 0.0525, 0.15075], [0.36, 0.05, -0.05]],
        [[0.98, 0.1, 0.15, 0.1], [0.9, -0.1, 0.2, 0.3], [0.9, -0.1, 0.2, 0.3]],
        [[0.9, 0.2, -1.8, 0.5, 1.0, -0.7], [-1.5, 0.1, -0.01, 0.4, -0.3, 0.6], [0.0] * 6],
    )
    leaves = [tensor(np.array(each), requires_grad=True) for each in values]
    _, _, _, time, active, _ = [each.data for each in time_of_impact.TimeOfImpact.apply(model, *leaves)]
    assert sorted(active[active > 0].tolist()) == [time_of_impact.REST, time_of_impact.IMPACT, time_of_impact.IMPACT], (
        active
    )
    (rests,) = np.flatnonzero(active == time_of_impact.REST)
    assert time[rests] in time[active == time_of_impact.IMPACT]

    def differentiable(found: Any) -> tuple[Any, ...]:
        return found[0][rests], *found[1:4]  # the gap of an impact is 0

    return make_check(time_of_impact, "TimeOfImpact", model, *leaves, outputs=differentiable)


def check_split_step(dim: int) -> Check:
    model = test_split_step.balls(dim)
    return make_check(
        split_step, "SplitStep", model, *test_split_step.make_inputs(model), given=test_split_step.first_impacts(model)
    )


def check_joint_rows(dim: int) -> Check:
    model = chain(dim)
    return make_check(joint_constraints, "JointRows", model, leaf(3, dim, seed=1), leaf(3, model.rotations, seed=2))


def check_motors() -> Check:
    model = driven_joints(2)
    joint_inputs = leaf(3, seed=1), leaf(3, seed=2, low=0.5), leaf(5, seed=3, low=0.5)
    return make_check(motor, "JointForce", model, *state(model), *joint_inputs)


def check_springs() -> Check:
    model = spring_model(2)
    spring_inputs = [leaf(3, seed=seed, low=0.5, high=2.0) for seed in range(3)]
    return make_check(spring_damper, "SpringDamper", model, *state(model), *spring_inputs)


make_sweep = functools.partial(Sweep, package=rigid, equivalent=EQUIVALENT, errors=(*ERRORS, TypeError, AttributeError))


def sweep_substep(module: ModuleType, function: str, check: Check, *others: str) -> Sweep:
    """Return the sweep over the loops of a sub-step, its kernel and its Function, and `others`."""
    return make_sweep(module, (*others, "loops.adj_*", "kernels.adjoint", f"{function}.backward"), check)


SWEEPS = [
    make_sweep(inertia, ("functions.adj_*",), check_drift(3)),
    make_sweep(kick, ("functions.adj_*",), check_kick(bodies(3))),
    sweep_substep(kick, "Kick", check_kick(bodies(2, fixed=(1,)))),
    sweep_substep(drift, "Drift", check_drift(2)),
    make_sweep(variational, ("in_plane.adj_*",), check_drift(2)),
    make_sweep(variational, ("in_space.adj_*",), check_drift(3)),
    sweep_substep(time_of_impact, "TimeOfImpact", check_time_of_impact()),
    sweep_substep(split_step, "SplitStep", check_split_step(3)),
    sweep_substep(mobility, "Mobility", check_mobility(3)),
    make_sweep(nested, ("orientation_adjoint.add_turns",), check_joint_rows(3)),
    make_sweep(joint_row, ("turns_in_plane.adj_*",), check_joint_rows(2)),
    make_sweep(joint_row, ("turns_in_space.adj_*", "functions.adj_*"), check_joint_rows(3)),
    sweep_substep(joint_constraints, "JointRows", check_joint_rows(2)),
    sweep_substep(motor, "JointForce", check_motors()),
    sweep_substep(spring_damper, "SpringDamper", check_springs()),
]
SWEEPS += [tangents_of(sweep) for sweep in SWEEPS if sweep.module is not nested]


def test_what_is_listed_as_equivalent_exists() -> None:
    assert not stale(SWEEPS)


def test_the_rules_as_they_are_pass(sweep: Sweep) -> None:
    sweep.passes_the_original()


def test_a_changed_rule_is_noticed(sweep: Sweep, mutant: Mutant) -> None:
    assert sweep.notices(mutant) != sweep.is_equivalent(mutant)
