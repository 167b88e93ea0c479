"""Every term of the adjoints and tangents of masses and springs is needed, in sub-steps and fused loops."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from simphys.autograd import Tensor, runtime, tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.autograd.proof.mutation import ERRORS, Mutant
from simphys.numerics import spring as spring_element
from simphys.rollout import rollout
from simphys.simulators.mass_spring import (
    actuate,
    engine,
    external,
    fused_adjoint,
    fused_tangent,
    integrate,
    packing,
    spring,
)
from simphys.simulators.mass_spring.model import MassSpring

from ..simulators.mass_spring.systems import NAMES, controls, leaves, system, unpacked, weights
from .sweep import Sweep, stale

EACH = 8
"""Number of mutants per rule in a sample: most compile a kernel."""

EQUIVALENT = {
    "tangent_kernel.tangent: variant.spread == 0 -> *": "who shares a loop among threads is no question on one thread",
    "Packing.tangents: a.ndim > 1 -> *": "numbers or vectors is a question of memory on a GPU only",
}

Check = Callable[[Any], None]


def check(function: Callable[..., Any], inputs: tuple[Tensor, ...]) -> None:
    gradcheck(function, inputs, mode="projected", repeats=1)


def spring_force(module: Any) -> None:
    model, params, state = system(2, nodes=4, springs=4)
    inputs = (state.position, state.velocity, params.stiffness, params.damping, params.rest_length)
    check(lambda *x: module.SpringForce.apply(model, *x), inputs)


def external_force(module: Any) -> None:
    model, params, state = system(2, nodes=4, springs=4)
    ground = (params.ground_height, params.ground_stiffness, params.ground_friction)
    inputs = (state.position, state.velocity, params.mass, params.gravity, *ground)
    check(lambda *x: module.ExternalForce.apply(model, *x), inputs)


def integration(module: Any) -> None:
    model, params, state = system(2, nodes=4, springs=4)
    force = weights(state.position.shape).requires_grad_()
    inputs = (state.position, state.velocity, force, params.mass, params.drag)
    check(lambda *x: module.Integrate.apply(model, (0.2, 0.1, 0.3), *x), inputs)


def actuation(module: Any) -> None:
    model, params, _ = system(2, nodes=4, springs=7, actuators=2)
    control = controls(model, 1)[0].detach().requires_grad_()
    check(lambda *x: module.Actuate.apply(model, *x), (params.rest_length, params.amplitude, control))


def moved(integrator: str, along: bool, *, batched: bool = False, springs: int = 4) -> None:
    """Check the derivative of the final state, or of all states, of a rollout; and of two members with own inputs."""
    model, params, state = system(2, nodes=4, springs=springs, actuators=2, dt=0.1, integrator=integrator)
    inputs = [*leaves(params, state), controls(model, 3)]
    for i, name in enumerate((*NAMES, "control")):
        if batched and name in ("velocity", "stiffness", "mass", "ground_height", "control"):
            inputs[i] = tensor(np.stack([inputs[i].data, 1.1 * inputs[i].data]), requires_grad=True)

    def run(*inputs: Tensor) -> tuple[Tensor, Tensor]:
        keep = "all" if along else "final"
        result = rollout(model, *unpacked(*inputs[:-1]), steps=3, control=inputs[-1], keep=keep)
        return (result.position, result.velocity) if along else (result.final.position, result.final.velocity)

    check(run, tuple(inputs))


def kept() -> None:
    """Check that the adjoint of a state on the way is the gradient of a rollout that starts from it."""
    model, params, state = system(2, nodes=4, springs=4)
    w = weights((4, 4, 2))
    whole = rollout(model, params, state, steps=3, keep_adjoint=True)
    (w * (whole.position + whole.velocity)).sum().backward()
    start = type(state)(*[tensor(values.data[1], requires_grad=True) for values in (whole.position, whole.velocity)])
    rest = rollout(model, params, start, steps=2)
    (w[1:] * (rest.position + rest.velocity)).sum().backward()
    for name in state.names():
        found, expected = getattr(whole.adjoint, name)[1], getattr(start, name).grad
        np.testing.assert_allclose(found, expected.data, rtol=0, atol=1e-12 * abs(expected.data).max())


def undriven() -> None:
    """Check the derivative of a final state with respect to stiffness and amplitude, without a control."""
    model, params, state = system(2, nodes=4, springs=4, actuators=2)

    def run(stiffness: Tensor, amplitude: Tensor) -> Tensor:
        new = params.replace(stiffness=stiffness, amplitude=amplitude)
        return rollout(model, new, state, steps=2).final.position

    check(run, (params.stiffness, params.amplitude))


def with_packing(module: Any) -> None:
    """Check rollouts whose parameters are packed by `module`."""
    with patch.object(engine, "Packing", module.Packing):
        moved("velocity_verlet", False, batched=True)
        moved("semi_implicit_euler", False)
        undriven()


def with_coefficients(module: Any) -> None:
    """Check a rollout with the kick coefficients of `module`."""
    with patch.object(packing, "integrate", module):
        moved("velocity_verlet", False)


def with_stages(module: Any) -> None:
    """Check rollouts with the adjoint of `module`: of the last state and of all, by gathers, and of a batch."""
    for serial, along, batched, springs in [(True, False, False, 18), (False, False, True, 4), (True, True, False, 4)]:
        with (
            patch.object(engine, "adjoint_kernel", module.adjoint_kernel),
            patch.object(runtime, "parallel", lambda work_us, serial=serial: not serial),
        ):
            moved("velocity_verlet" if along else "semi_implicit_euler", along, batched=batched, springs=springs)
            if along:
                kept()


def with_tangents(module: Any) -> None:
    with patch.object(engine, "tangent_kernel", module.tangent_kernel):
        moved("semi_implicit_euler", False, batched=True)


def anew(original: ModuleType, checked: Check, *kernels: str) -> Check:
    """Wrap `checked` such that only the named kernels of a module are recompiled."""
    compiled = vars(original)["_kernels"]
    own: dict[str, Any] = {}

    def reused(model: MassSpring) -> SimpleNamespace:
        mine = own["_kernels"](model)
        return SimpleNamespace(**{**vars(compiled(model)), **{name: getattr(mine, name) for name in kernels}})

    def check_of(module: Any) -> None:
        own["_kernels"] = module._kernels
        with patch.object(module, "_kernels", reused):
            checked(module)

    return check_of


def with_element(name: str) -> Check:
    """Check of a module with the spring element; of the nested sub-step, only the named kernel is recompiled."""
    compiled = spring._kernels

    def check_element(module: Any) -> None:
        with patch.object(spring, "functions", module.functions):
            new = spring.kernels.__wrapped__(runtime.real(), 2, False)

        def kernels(model: MassSpring) -> SimpleNamespace:
            return SimpleNamespace(**{**vars(compiled(model)), name: getattr(new, name)})

        with patch.object(spring, "_kernels", kernels):
            spring_force(spring)

    return check_element


sweep_of = partial(Sweep, equivalent=EQUIVALENT)


ELEMENT = ("functions.adj_*", "functions.jvp_*")
"""Adjoint and tangent rules of a module with element functions of its own."""


def sub_step(module: ModuleType, function: str, checked: Check, element: tuple[str, ...] = ELEMENT) -> list[Sweep]:
    """Make the sweeps of a sub-step: over its adjoint kernel, its tangent kernel, and the Python around them."""
    return [
        sweep_of(module, (*element[:1], "kernels.adjoint"), anew(module, checked, "adjoint")),
        sweep_of(module, (*element[1:], "kernels.tangent"), anew(module, checked, "tangent")),
        sweep_of(module, (f"{function}.backward", f"{function}.jvp"), anew(module, checked)),
    ]


SWEEPS = [
    sweep_of(spring_element, ("functions.adj_*",), with_element("adjoint")),
    sweep_of(spring_element, ("functions.jvp_*",), with_element("tangent")),
    *sub_step(spring, "SpringForce", spring_force, element=()),
    *sub_step(external, "ExternalForce", external_force),
    *sub_step(integrate, "Integrate", integration),
    sweep_of(actuate, ("functions.adj_*", "functions.jvp_*", "kernels.adjoint", "kernels.tangent"), actuation),
    sweep_of(actuate, ("Actuate.backward", "Actuate.jvp"), actuation),
    sweep_of(integrate, ("coefficient_kernels.adjoint", "coefficient_kernels.tangent"), with_coefficients),
    sweep_of(fused_adjoint, ("adjoint_stage.stage",), with_stages),
    sweep_of(fused_tangent, ("tangent_kernel.tangent",), with_tangents),
    sweep_of(packing, ("Packing.gradients", "Packing._adj_nodes", "Packing.tangents"), with_packing)._replace(
        errors=(*ERRORS, TypeError, KeyError)  # dictionaries have no sign
    ),
]


def test_what_is_listed_as_equivalent_exists() -> None:
    assert not stale(SWEEPS)


def test_the_rules_as_they_are_pass(sweep: Sweep) -> None:
    sweep.passes_the_original()


def test_a_changed_rule_is_noticed(sweep: Sweep, mutant: Mutant) -> None:
    assert sweep.notices(mutant) != sweep.is_equivalent(mutant)
