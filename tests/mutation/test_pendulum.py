"""Every term of the adjoints and tangents of pendulums is needed: in sub-steps, fused loops and engines."""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable, Mapping
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

from simphys.autograd import Tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.autograd.proof.mutation import ERRORS, Mutant
from simphys.rollout import rollout
from simphys.simulators.pendulum import chain, spherical

from ..simulators.pendulum import chains, sphericals
from .sweep import Sweep, stale, use_engine


def part(package: ModuleType, name: str) -> Any:
    return importlib.import_module(f"{package.__name__}.{name}")


terms, loads, acceleration, momentum, midpoint = (
    part(chain, name) for name in ("terms", "loads", "acceleration", "momentum", "midpoint")
)
on_sphere = {name: part(spherical, name) for name in ("acceleration", "sphere", "drift", "damp")}

EACH = 1
"""Number of mutants per rule in a sample: most compile a kernel."""

EQUIVALENT = {
    "functions.adj_accelerate: adj_mu* = 0.0 -> nothing": "0 at first; where steps follow, nested = fused holds it",
}

PLACES = {
    *("par", "at", "at_u", "at_d", "at_A", "at_K", "at_t", "here", "row", "rows", "adj_rows"),
    *("first", "driven", "spread"),
    *"ijqnbTr",
    "ii",
}
"""Names that array indices are computed from."""


class Inside(Sweep):
    """Leave out mutants that change array indices: they would write out of bounds; nested = fused notices them."""

    def mutants(self) -> list[Mutant]:
        return [each for each in super().mutants() if not set(re.findall(r"[A-Za-z_]\w*", each.before)) <= PLACES]


Check = Callable[[Any], None]


def check(function: Callable[..., Any], *inputs: Tensor) -> None:
    gradcheck(function, inputs, mode="projected", repeats=1)


# --- sub-steps of a chain: only the named kernels are recompiled

MADE: Mapping[str, Any] = {name: part(chain, name).kernels for name in ("acceleration", "momentum", "midpoint")}
"""Factories of the original kernels."""


def of_chain(module: Any, name: str, new: tuple[str, ...]) -> None:
    """Take the Functions of a copy of one of the modules above, with the original kernels except for the `new` ones."""
    model, params, state = chains.chain(3, dt=0.4)
    made = module.kernels

    def kernels(real: Any) -> SimpleNamespace:
        mine = vars(made(real))
        return SimpleNamespace(**{**vars(MADE[name](real)), **{each: mine[each] for each in new}})

    with patch.object(module, "kernels", kernels):
        if name == "acceleration":
            inputs = (*state.tensors(), chains.numbers(3), *params.tensors())
            check(lambda *x: module.Acceleration.apply(model, *x), *inputs)
        elif name == "momentum":
            for function in (module.Momentum, module.Rate):
                check(lambda *x, f=function: f.apply(model, *x), *state.tensors(), params.length, params.mass)
        else:
            given = state.angle, chains.numbers(3, 4), chains.numbers(3), *params.tensors()
            check(lambda *x: module.MidpointRate.apply(model, state.rate.detach(), *x), *given)


def each_of(*wanted: tuple[str, tuple[str, ...]]) -> Check:
    """Make a check of the sub-steps of a copy of the whole package."""

    def checked(package: ModuleType) -> None:
        for name, new in wanted:
            of_chain(part(package, name), name, new)

    return checked


def one(name: str, *new: str) -> Check:
    return lambda module: of_chain(module, name, new)


BACK, ALONG = ("adjoint",), ("tangent",)
sweep_of = functools.partial(Inside, equivalent=EQUIVALENT)
of_package = functools.partial(sweep_of, package=chain)

OF_CHAIN = [
    of_package(terms, ("functions.adj_*",), each_of(("midpoint", BACK), ("momentum", BACK))),
    of_package(terms, ("functions.jvp_*",), each_of(("acceleration", ALONG), ("momentum", ALONG))),
    of_package(loads, ("functions.adj_*",), each_of(("acceleration", BACK), ("midpoint", BACK))),
    of_package(loads, ("functions.jvp_*",), each_of(("acceleration", ALONG), ("midpoint", ALONG))),
    sweep_of(acceleration, ("functions.adj_*", "kernels.adjoint"), one("acceleration", *BACK)),
    sweep_of(acceleration, ("functions.jvp_*", "kernels.tangent"), one("acceleration", *ALONG)),
    sweep_of(acceleration, ("*.backward", "*.jvp"), one("acceleration")),
    sweep_of(momentum, ("functions.adj_*", "kernels.adj*"), one("momentum", "adjoint", "adj_inverse")),
    sweep_of(
        momentum, ("functions.jvp_*", "kernels.tangent", "kernels.jvp*"), one("momentum", "tangent", "jvp_inverse")
    ),
    sweep_of(momentum, ("*.backward", "*.jvp"), one("momentum")),
    sweep_of(midpoint, ("functions.adj_*", "functions.rate_jacobian", "kernels.adjoint"), one("midpoint", *BACK)),
    sweep_of(midpoint, ("functions.jvp_*", "kernels.tangent"), one("midpoint", *ALONG)),
    sweep_of(midpoint, ("*.backward", "*.jvp"), one("midpoint")),
]


# --- sub-steps of the spherical pendulum


def of_sphere(name: str, *new: str) -> Check:
    made = on_sphere[name].kernels
    v = sphericals.vector
    params = sphericals.spherical()[1].tensors()

    def checked(module: Any) -> None:
        own = module.kernels

        def kernels(real: Any) -> SimpleNamespace:
            mine = vars(own(real))
            return SimpleNamespace(**{**vars(made(real)), **{each: mine[each] for each in new}})

        with patch.object(module, "kernels", kernels):
            if name == "acceleration":
                check(module.Acceleration.apply, v(1), v(2), v(3), *params)
            elif name == "sphere":
                check(module.ProjectToSphere.apply, v(1), v(2))
            elif name == "drift":
                check(lambda d, w: module.Drift.apply(d, w, 0.3), v(1), v(2))
            else:
                check(lambda *x: module.Damp.apply(0.3, *x), v(1), *params[:3])

    return checked


OF_SPHERE = [
    sweep
    for name, module in on_sphere.items()
    for sweep in (
        sweep_of(module, ("functions.adj_*", "functions.jvp_*", "kernels.*t"), of_sphere(name, *BACK, *ALONG)),
        sweep_of(module, ("*.backward", "*.jvp"), of_sphere(name)),
    )
]


# --- the fused loops and the engines


def moved(kind: str, integrator: str, *, along: bool) -> None:
    """Check the derivative of all or the last states of two members, each with its own torques."""
    of: Any = chains if kind == "chain" else sphericals
    options: dict[str, Any] = {"dt": 0.1, "batch": 2}
    model, *given = of.chain(2, integrator, **options) if kind == "chain" else of.spherical(integrator, **options)
    torque = of.torques(3, 2, 2) if kind == "chain" else of.torques(3, 2)

    def run(torque: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
        params, state = of.unpacked(*inputs)
        result = rollout(model, params, state, steps=3, control=torque, keep="all" if along else "final")
        return tuple(result.states.tensors() if along else result.final.tensors())

    check(run, torque, *of.leaves(*given))


def adjoint_of(package: ModuleType, integrator: str) -> Check:
    """Make a check of rollouts that use the adjoint kernels of a copy."""

    def checked(module: Any) -> None:
        with patch.object(part(package, "engine"), "fused_adjoint", module):
            for along in (True, False):
                moved(package.__name__.rsplit(".", 1)[-1], integrator, along=along)

    return checked


def with_engine(package: ModuleType, name: str) -> Check:
    def checked(module: Any) -> None:
        model: Any = {chain: chain.Chain, spherical: spherical.Spherical}[package]
        with use_engine(model, vars(module)[name]):
            for integrator in ("rk4", "variational"):
                moved(package.__name__.rsplit(".", 1)[-1], integrator, along=True)

    return checked


def loops(package: ModuleType, engine: str, runge_kutta: tuple[str, ...], variational: str) -> list[Sweep]:
    """Make the sweeps of the tangent loops, which only call swept functions, see ELSEWHERE in test_functions.py."""
    adjoint = part(package, "fused_adjoint")
    return [
        sweep_of(adjoint, runge_kutta, adjoint_of(package, "rk4")),
        sweep_of(adjoint, (variational,), adjoint_of(package, "variational")),
        sweep_of(part(package, "engine"), (f"{engine}.pull", f"{engine}.push"), with_engine(package, engine))._replace(
            errors=(*ERRORS, TypeError, AttributeError)
        ),
    ]


SWEEPS = [
    *OF_CHAIN,
    *OF_SPHERE,
    *loops(chain, "ChainEngine", ("functions.adj_runge_kutta",), "functions.adj_variational"),
    *loops(
        spherical,
        "SphericalEngine",
        ("kernels.adj_params", "kernels.adj_state", "kernels.adj_rk4"),
        "kernels.adj_variational",
    ),
]


def test_what_is_listed_as_equivalent_exists() -> None:
    assert not stale(SWEEPS)


def test_the_rules_as_they_are_pass(sweep: Sweep) -> None:
    sweep.passes_the_original()


def test_a_changed_rule_is_noticed(sweep: Sweep, mutant: Mutant) -> None:
    assert sweep.notices(mutant) != sweep.is_equivalent(mutant)
