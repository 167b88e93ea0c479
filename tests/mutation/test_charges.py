"""Every term of the adjoints and tangents of charges is needed: in sub-steps, fused loops and the engine."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

from simphys.autograd import Tensor, runtime, tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.autograd.proof.mutation import ERRORS, Mutant
from simphys.numerics.splitting import Stage
from simphys.rollout import rollout
from simphys.simulators.charges import engine, field, force, fused, fused_adjoint, integrate
from simphys.simulators.charges.model import Charges

from ..simulators.charges.systems import fields, leaves, system, unpacked, weights
from .sweep import Sweep, stale, use_engine

EACH = 6
"""Number of mutants per rule in a sample: most compile a kernel."""

EQUIVALENT = {
    "tangent_kernel.tangent: r % spread == 0 -> *": "the other iterations do the same work, each of them",
}

Check = Callable[[Any], None]


def check(function: Callable[..., Any], inputs: tuple[Tensor, ...]) -> None:
    gradcheck(function, inputs, mode="projected", repeats=1)


def charge_force(module: Any) -> None:
    model, params, state = system(2, bodies=4)
    inputs = (state.position, params.charge, params.coupling, params.softening)
    check(lambda *x: module.ChargeForce.apply(model, *x), inputs)


def field_force(module: Any) -> None:
    check(module.FieldForce.apply, (weights((4,)).requires_grad_(), weights((2,), seed=2).requires_grad_()))


def integration(module: Any) -> None:
    model, params, state = system(2, bodies=4)
    inputs = (*state.tensors(), weights(state.position.shape).requires_grad_(), params.mass)
    check(lambda *x: module.Integrate.apply(model, Stage(0.2, 0.0, 0.3), *x), inputs)


def moved(
    integrator: str,
    *,
    along: bool,
    launches: bool = False,
    shared: bool = False,
    blocks: bool = False,
) -> None:
    """Check the derivative of a rollout of two members in a field: of final states or all, by one launch or many.

    `shared`: the members share parameters and field. `blocks`: not all states are stored.
    """
    steps = 10 if blocks else 3
    model, params, state = system(2, bodies=3, batch=2, integrator=integrator, dt=0.1)
    inputs = leaves(params, state)
    if shared:
        _, params, _ = system(2, bodies=3, integrator=integrator, seed=3)
        inputs = (*inputs[:2], *params.tensors())
    given = fields(steps, 2) if shared else fields(steps, 2, 2)

    options: dict[str, Any] = {"steps": steps, "keep": "all" if along else "final"}
    if blocks:
        plan = rollout(model, params, state, control=given, **options).plan
        assert plan is not None
        options["memory"] = plan.predicted_bytes * 4 // 5

    def run(E: Tensor, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        params, state = unpacked(*inputs)
        result = rollout(model, params, state, control=E, **options)
        return result.states.tensors() if along else result.final.tensors()

    with patch.object(runtime, "PARALLEL_WORK_US", 0.0 if launches else runtime.PARALLEL_WORK_US):
        check(run, (given, *inputs))


def charge_force_with_mass(module: Any) -> None:
    """Check the force's adjoint, and the part of it that only the mass's adjoint in fused loops needs."""
    charge_force(module)
    kernel = functools.cache(fused_adjoint.adjoint_kernel.__wrapped__)
    with patch.object(fused, "force", module), patch.object(fused_adjoint, "adjoint_kernel", kernel):
        moved("semi_implicit_euler", along=False)


def with_adjoints(module: Any) -> None:
    """Check rollouts that use the adjoint kernels of `module`."""
    with patch.object(engine, "fused_adjoint", module):
        moved("semi_implicit_euler", along=False)
        moved("velocity_verlet", along=True)
        moved("velocity_verlet", along=True, launches=True)
        moved("semi_implicit_euler", along=True, launches=True)


def with_tangents(module: Any) -> None:
    """Check rollouts in several blocks that use the tangent kernels of `module`."""
    generic = importlib.import_module("simphys.rollout.fused")
    with (
        patch.object(engine, "fused", reusing(fused, module, "tangent_kernel")),
        patch.object(generic, "FORWARD_BYTES", 1),
    ):
        moved("semi_implicit_euler", along=False, blocks=True)
        moved("velocity_verlet", along=False, blocks=True)


def with_engine(module: Any) -> None:
    """Check rollouts by the engine of `module`: all batched, or with shared parameters and field; or no field."""
    with use_engine(Charges, module.ChargesEngine):
        for along in (False, True):
            moved("velocity_verlet", along=along)
            moved("velocity_verlet", along=along, launches=True, shared=True)
        model, params, state = system(2, bodies=3)
        mass = tensor(params.mass.data)
        check(
            lambda q, x: (
                rollout(model, params.replace(charge=q, mass=mass), state.replace(position=x), steps=2).final.position
            ),
            (params.charge, state.position),
        )


def reusing(original: ModuleType, module: Any, *new: str) -> SimpleNamespace:
    """Copy the original with only the `new` names of `module`, so that nothing else is compiled."""
    return SimpleNamespace(**{**vars(original), **{name: vars(module)[name] for name in new}})


def anew(original: ModuleType, checked: Check, *kernels: str) -> Check:
    """Wrap `checked` such that only the named kernels of a module are recompiled."""
    compiled = vars(original)["_kernels"]
    own: dict[str, Any] = {}

    def reused(*arguments: Any) -> SimpleNamespace:
        mine = own["_kernels"](*arguments)
        return SimpleNamespace(**{**vars(compiled(*arguments)), **{name: getattr(mine, name) for name in kernels}})

    def check_of(module: Any) -> None:
        own["_kernels"] = module._kernels
        with patch.object(module, "_kernels", reused):
            checked(module)

    return check_of


sweep_of = functools.partial(Sweep, equivalent=EQUIVALENT)


def sub_step(module: ModuleType, function: str, checked: Check, of_adjoint: Check | None = None) -> list[Sweep]:
    """Make the sweeps of a sub-step: over its adjoint kernel, its tangent kernel, and the Python around them."""
    return [
        sweep_of(module, ("functions.adj_*", "kernels.adjoint"), anew(module, of_adjoint or checked, "adjoint")),
        sweep_of(module, ("functions.jvp_*", "kernels.tangent"), anew(module, checked, "tangent")),
        sweep_of(module, (f"{function}.backward", f"{function}.jvp"), anew(module, checked)),
    ]


SWEEPS = [
    *sub_step(force, "ChargeForce", charge_force, charge_force_with_mass),
    *sub_step(field, "FieldForce", field_force),
    *sub_step(integrate, "Integrate", integration),
    sweep_of(
        fused_adjoint,
        tuple([f"adjoint_kernel.{name}" for name in ("kick", "adj_field", "body", "store_dense")]),
        with_adjoints,
    ),
    sweep_of(fused, ("tangent_kernel.body", "tangent_kernel.tangent"), with_tangents),
    sweep_of(
        engine, ("ChargesEngine.pull", "ChargesEngine.gradients", "ChargesEngine.push", "_reduce"), with_engine
    )._replace(errors=(*ERRORS, TypeError, AttributeError)),
]


def test_what_is_listed_as_equivalent_exists() -> None:
    assert not stale(SWEEPS)


def test_the_rules_as_they_are_pass(sweep: Sweep) -> None:
    sweep.passes_the_original()


def test_a_changed_rule_is_noticed(sweep: Sweep, mutant: Mutant) -> None:
    assert sweep.notices(mutant) != sweep.is_equivalent(mutant)
