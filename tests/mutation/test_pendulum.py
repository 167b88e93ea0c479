"""Every term of the adjoints and tangents of pendulums is needed."""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

from simphys.autograd import Tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.autograd.proof.mutation import ERRORS
from simphys.numerics import dry_friction
from simphys.simulators.pendulum import chain, spherical
from simphys.substep import per_element

from ..simulators.pendulum import chains, sphericals
from .suite import *  # noqa: F403 - the tests of all sweeps
from .sweep import Sweep


def part(package: ModuleType, name: str) -> Any:
    return importlib.import_module(f"{package.__name__}.{name}")


terms, loads, pairs, moments, acceleration, momentum, midpoint, friction, shake, shaken = (
    part(chain, name)
    for name in (
        *("terms", "loads", "pairs", "moments", "acceleration", "momentum"),
        *("midpoint", "friction", "shake", "shaken"),
    )
)

EACH = 2
"""Number of mutants per rule in a sample: most compile a kernel."""
ALSO = (*ERRORS, TypeError, AttributeError)
"""Errors of mutants: of the compiler too."""

EQUIVALENT = {
    "adj_weigh: 0 * x -> x": "the loop sets every element",
    "adj_turn_joints: 0 * v -> v": "the loop sets every element",
    "adj_multiply: 0 * x -> x": "the loop sets every element before it adds to it",
    "find_brake_jacobian: K @ v -> v @ K": "the matrix is symmetric",
    "find_brake_jacobian: v?i? - take_previous(v, i) -> take_previous(v, i) - v?i?": "the slope of friction is even",
    "find_rate_jacobian: y?i? - e -> e - y?i?": "the slope of a weight is even",
    "adj_slow_down: 0 * v -> v": "the loop sets every element",
    "adj_midpoint_rate: 0 * guess -> 0": "zeros too",
    "adj_midpoint_rate: 0 * guess -> -(0 * guess)": "zeros too",
    "adj_shaken_midpoint_rate: 0 * guess -> 0": "zeros too",
    "adj_shaken_midpoint_rate: 0 * v -> v": "no adjoint depends on the torque of a motor",
    "adj_shaken_midpoint_rate: 0 * guess -> -(0 * guess)": "zeros too",
}

Check = Callable[[Any], None]


def check(function: Callable[..., Any], *inputs: Tensor) -> None:
    gradcheck(function, inputs, mode="projected", repeats=1)


# --- sub-steps of a chain


def with_acceleration(module: Any) -> None:
    model, params, state = chains.chain(3, dt=0.4)
    inertia = params.length, *chains.moments(model, params)
    inputs = (*state.tensors(), chains.numbers(3), *inertia, params.gravity, params.tilt)
    check(functools.partial(module.Acceleration.apply, model), *inputs)


def with_loads(module: Any) -> None:
    model, params, state = chains.chain(3, dt=0.4)
    check(functools.partial(module.TurnJoints.apply, model), state.rate, chains.numbers(3), params.damping)


def with_moments(module: Any) -> None:
    model, params, _ = chains.chain(3)
    inputs = params.length, params.mass, params.centre, params.inertia
    check(functools.partial(module.Moments.apply, model), *inputs)


def with_momentum(module: Any) -> None:
    model, params, state = chains.chain(3, dt=0.4)
    for function in (module.Momentum, module.Rate):
        check(functools.partial(function.apply, model), *state.tensors(), params.length, *chains.moments(model, params))


def with_midpoint(module: Any) -> None:
    model, params, state = chains.chain(3, dt=0.4)
    inertia = params.length, *chains.moments(model, params)
    given = state.rate, state.angle, chains.numbers(3, 4), chains.numbers(3), *inertia, params.gravity, params.tilt

    def added(guess: Tensor, *x: Tensor) -> Any:  # the rate alone does not depend on the guess, but for its rounding
        return module.MidpointRate.apply(model, guess, *x, 0.2, math.nan) + guess

    check(added, *given, params.damping)


def with_shaken_midpoint(module: Any) -> None:
    model, params, state = chains.chain(3, dt=0.4)
    inertia = params.length, *chains.moments(model, params)
    given = state.rate, state.angle, chains.numbers(3, 4), chains.numbers(2), *inertia, params.gravity, params.tilt

    def added(guess: Tensor, *x: Tensor) -> Any:
        return module.ShakenMidpointRate.apply(model, guess, *x, 0.2, math.nan) + guess

    check(added, *given, params.damping)


def with_friction(module: Any) -> None:
    model, params, state = chains.chain(3, friction=True)
    rubbing = chains.friction_of(params)
    check(functools.partial(module.SlowDown.apply, model), state.rate, *rubbing)
    given = state.angle, chains.numbers(3), params.length, *chains.moments(model, params), *rubbing
    check(lambda *x: module.BrakedRate.apply(model, *x, 0.02, math.nan), *given)


def with_shaking(module: Any) -> None:
    model, _, state = chains.chain(3)
    check(functools.partial(module.Shake.apply, model), state.angle, chains.numbers(3), chains.numbers(2))


def with_dry_friction(module: Any) -> None:
    model, params, state = chains.chain(3, friction=True)
    own = {"F": "dry_friction", "w": "transition_rate", "u": "rate"}
    rubbed = per_element(module.rub, over="joints", own=own, results={"torque": "u"})
    check(functools.partial(rubbed.apply, model), params.dry_friction, params.transition_rate, state.rate)


CHECKS = {
    "acceleration": with_acceleration,
    "loads": with_loads,
    "momentum": with_momentum,
    "midpoint": with_midpoint,
}


def each_of(*names: str) -> Check:
    """Make a check of sub-steps of a copy of the whole package."""

    def checked(package: ModuleType) -> None:
        for name in names:
            CHECKS[name](part(package, name))

    return checked


RULES = ("adj_*", "jvp_*")
sweep_of = functools.partial(Sweep, errors=ALSO, equivalent=EQUIVALENT)
of_package = functools.partial(sweep_of, package=chain)

OF_CHAIN = [
    of_package(terms, RULES, each_of("acceleration", "loads")),
    of_package(loads, RULES, each_of("acceleration", "loads")),
    of_package(pairs, RULES, each_of("acceleration", "momentum")),
    sweep_of(moments, RULES, with_moments),
    sweep_of(acceleration, RULES, with_acceleration),
    sweep_of(momentum, RULES, with_momentum),
    sweep_of(midpoint, (*RULES, "find_rate_jacobian"), with_midpoint),
    sweep_of(friction, (*RULES, "find_brake_jacobian"), with_friction),
    sweep_of(dry_friction, RULES, with_dry_friction),
    sweep_of(shake, RULES, with_shaking),
    sweep_of(shaken, (*RULES, "find_shaken_jacobian"), with_shaken_midpoint),
]


# --- sub-steps of the spherical pendulum


def of_sphere(name: str) -> Check:
    model, params, _ = sphericals.spherical()
    v = sphericals.vector

    def checked(module: Any) -> None:
        if name == "acceleration":
            check(functools.partial(module.Acceleration.apply, model), v(1), v(2), v(3), *params.tensors())
        elif name == "sphere":
            check(functools.partial(module.ProjectToSphere.apply, model), v(1), v(2))
        elif name == "turn":
            check(functools.partial(module.Turn.apply, model), v(1), v(2))
        elif name == "drift":
            check(lambda d, w: module.Drift.apply(model, d, w, 0.3), v(1), v(2))
        else:
            check(lambda *x: module.Damp.apply(model, *x, 0.3), v(1), *params.tensors()[:3])

    return checked


ON_SPHERE = ("acceleration", "sphere", "turn", "drift", "damp")
SWEEPS = [*OF_CHAIN, *[sweep_of(part(spherical, name), RULES, of_sphere(name)) for name in ON_SPHERE]]
