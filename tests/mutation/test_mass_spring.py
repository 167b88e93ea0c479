"""Every term of the adjoints and tangents of masses and springs is needed.

Sub-steps and fused loops are made of the same element functions, so that a check of the sub-step is one of both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simphys.autograd import Tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.numerics import spring as spring_element
from simphys.simulators.mass_spring import actuate, air, external, integrate
from simphys.substep import edges

from ..simulators.mass_spring.systems import controls, system, weights
from .suite import *  # noqa: F403 - the tests of all sweeps
from .sweep import Sweep

EACH = 8
"""Number of mutants per rule in a sample: most compile a kernel."""


def check(function: Callable[..., Any], inputs: tuple[Tensor, ...]) -> None:
    gradcheck(function, inputs, mode="projected", repeats=1)
    dot_product_test(function, inputs, tolerance=1e-9)


def springs(module: Any) -> None:
    model, params, state = system(2, nodes=4, springs=4)
    force = edges(
        module.spring_force,
        over="springs",
        between={"d": "position", "u": "velocity"},
        own={"k": "stiffness", "c": "damping", "L": "rest_length"},
        onto="force",
    )
    inputs = (state.position, state.velocity, params.stiffness, params.damping, params.rest_length)
    check(lambda *x: force.apply(model, *x), inputs)


def weight_and_ground(module: Any) -> None:
    model, params, state = system(2, nodes=4, springs=4)
    ground = (params.ground_height, params.ground_stiffness, params.ground_friction)
    check(lambda *x: module.Weight.apply(model, *x), (params.mass, params.gravity))
    check(lambda *x: module.GroundForce.apply(model, *x), (state.position, state.velocity, *ground))
    check(lambda *x: module.NormalForce.apply(model, *x), (state.position, *ground[:2]))
    check(lambda *x: module.Rub.apply(model, *x, 0.1), (state.position, state.velocity, params.mass, *ground))


def resistance(module: Any) -> None:
    model, params, state = system(2, nodes=4, springs=4, air=True)
    check(lambda *x: module.Resist.apply(model, *x, 0.1), (state.velocity, params.mass, params.air_drag))


def integration(module: Any) -> None:
    model, params, state = system(2, nodes=4, springs=4)
    force = weights(state.position.shape).requires_grad_()
    check(lambda *x: module.KickFactors.apply(model, *x, 0.2, 0.1, model.free), (params.drag, params.mass))
    check(lambda *x: module.Kick.apply(model, *x), (state.velocity, force, params.drag, params.mass))
    check(lambda *x: module.Damp.apply(model, *x), (state.velocity, params.drag))
    check(lambda *x: module.Predict.apply(model, *x), (state.velocity, force))


def actuation(module: Any) -> None:
    model, params, _ = system(2, nodes=4, springs=7, actuators=2)
    control = controls(model, 1)[0].detach().requires_grad_()
    check(lambda *x: module.Actuate.apply(model, *x), (params.rest_length, params.amplitude, control))


RULES = ("adj_*", "jvp_*")
SWEEPS = [
    Sweep(spring_element, RULES, springs),
    Sweep(external, RULES, weight_and_ground),
    Sweep(
        air, RULES, resistance, equivalent={"adj_resist: speed > 0 -> speed >= 0": "at rest: mass_spring/test_air.py"}
    ),
    Sweep(integrate, RULES, integration),
    Sweep(actuate, RULES, actuation),
]
