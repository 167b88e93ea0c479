"""Every term of the adjoints and tangents of masses and springs is needed: sub-steps, their loops, the fused loops."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

from simphys.autograd import Tensor, runtime
from simphys.autograd.gradcheck import gradcheck
from simphys.autograd.mutation import ERRORS, Mutant
from simphys.mass_spring import external, fused, integrate, spring
from simphys.mass_spring.model import Topology

from ..mass_spring.systems import leaves, system, unpacked, weights
from .sweep import Sweep, stale

rollout = importlib.import_module("simphys.mass_spring.rollout")  # the package's attribute is the function

EACH = 8
"""Mutants of a rule in a sample: most compile a kernel."""

EQUIVALENT = {
    "Rollout.backward: value.ndim > 1 -> *": "numbers or vectors is a question of memory on a GPU only",
}

Check = Callable[[Any], None]


def check(function: Callable[..., Any], inputs: tuple[Tensor, ...]) -> None:
    gradcheck(function, inputs, mode="projected", repeats=1)


def spring_force(module: Any) -> None:
    topology, params, state = system(2, nodes=4, springs=4)
    inputs = (state.position, state.velocity, params.stiffness, params.damping, params.rest_length)
    check(lambda *x: module.SpringForce.apply(topology, *x), inputs)


def external_force(module: Any) -> None:
    topology, params, state = system(2, nodes=4, springs=4)
    ground = (params.ground_height, params.ground_stiffness, params.ground_friction)
    inputs = (state.position, state.velocity, params.mass, params.gravity, *ground)
    check(lambda *x: module.ExternalForce.apply(topology, *x), inputs)


def integration(module: Any) -> None:
    topology, params, state = system(2, nodes=4, springs=4)
    force = weights(state.position.shape).requires_grad_()
    inputs = (state.position, state.velocity, force, params.mass, params.drag)
    check(lambda *x: module.Integrate.apply(topology, (0.2, 0.1, 0.3), *x), inputs)


def moved(integrator: str, along: bool, module: Any = rollout) -> None:
    """The derivative of the final state, or of all states, of a rollout."""
    topology, params, state = system(2, nodes=4, springs=4, dt=0.1, integrator=integrator)

    def run(*inputs: Tensor) -> tuple[Tensor, Tensor]:
        result = module.rollout(topology, *unpacked(*inputs), steps=3)
        return (result.position, result.velocity) if along else (result.final.position, result.final.velocity)

    check(run, leaves(params, state))


def rollouts(module: Any) -> None:
    for integrator in ("semi_implicit_euler", "velocity_verlet"):
        for along in (False, True):
            moved(integrator, along, module)


def with_coefficients(module: Any) -> None:
    """A rollout whose kick coefficients are those of `module`."""
    with patch.object(rollout, "integrate", module):
        moved("velocity_verlet", False)


def with_stages(module: Any) -> None:
    """Rollouts whose adjoint is that of `module`: of the last state and of all, and by gathers."""
    for serial, along in [(True, False), (False, False), (True, True)]:
        with (
            patch.object(rollout, "fused", reusing(fused, module, "adjoint_kernel")),
            patch.object(runtime, "parallel", lambda work_us, serial=serial: not serial),
        ):
            moved("semi_implicit_euler", along)


def with_tangents(module: Any) -> None:
    with patch.object(rollout, "fused", reusing(fused, module, "tangent_kernel")):
        moved("semi_implicit_euler", False)


def reusing(original: ModuleType, module: Any, *new: str) -> SimpleNamespace:
    """The original with only the `new` names of `module`, so that nothing else is compiled."""
    return SimpleNamespace(**{**vars(original), **{name: vars(module)[name] for name in new}})


def anew(original: ModuleType, checked: Check, *kernels: str) -> Check:
    """`checked` of a module in which only the named kernels are compiled anew."""
    compiled = vars(original)["_kernels"]
    own: dict[str, Any] = {}

    def reused(topology: Topology) -> SimpleNamespace:
        mine = own["_kernels"](topology)
        return SimpleNamespace(**{**vars(compiled(topology)), **{name: getattr(mine, name) for name in kernels}})

    def check_of(module: Any) -> None:
        own["_kernels"] = module._kernels
        with patch.object(module, "_kernels", reused):
            checked(module)

    return check_of


sweep_of = partial(Sweep, equivalent=EQUIVALENT)


def sub_step(module: ModuleType, function: str, checked: Check) -> list[Sweep]:
    """The sweeps of a sub-step: through its adjoint kernel, its tangent kernel, and Python around them."""
    return [
        sweep_of(module, ("functions.adj_*", "kernels.adjoint"), anew(module, checked, "adjoint")),
        sweep_of(module, ("functions.jvp_*", "kernels.tangent"), anew(module, checked, "tangent")),
        sweep_of(module, (f"{function}.backward", f"{function}.jvp"), anew(module, checked)),
    ]


SWEEPS = [
    *sub_step(spring, "SpringForce", spring_force),
    *sub_step(external, "ExternalForce", external_force),
    *sub_step(integrate, "Integrate", integration),
    sweep_of(integrate, ("coefficient_kernels.adjoint", "coefficient_kernels.tangent"), with_coefficients),
    sweep_of(fused, ("adjoint_kernel.stage",), with_stages),
    sweep_of(fused, ("tangent_kernel.tangent",), with_tangents),
    sweep_of(rollout, ("Rollout.backward", "Rollout.jvp", "_adj_coefficients", "_seeds"), rollouts)._replace(
        errors=(*ERRORS, TypeError)  # states are moved as bytes, which have no sign
    ),
]


def test_what_is_listed_as_equivalent_exists() -> None:
    assert not stale(SWEEPS)


def test_the_rules_as_they_are_pass(sweep: Sweep) -> None:
    sweep.passes_the_original()


def test_a_changed_rule_is_noticed(sweep: Sweep, mutant: Mutant) -> None:
    assert sweep.notices(mutant) != sweep.is_equivalent(mutant)
