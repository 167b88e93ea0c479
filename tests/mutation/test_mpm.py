"""Every term of the adjoints and tangents of material points is needed: in sub-steps over particles and in laws."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ExitStack
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.numerics import isotropic, polar
from simphys.simulators.mpm import actuate, constitutive, deformation, g2p, p2g
from simphys.simulators.mpm.laws import (
    LAW_PARAMETERS,
    LAWS,
    drucker_prager,
    fixed_corotated,
    fluid,
    hencky,
    lame,
    neo_hookean,
    principal,
    snow,
    von_mises,
)

from ..simulators.mpm import substeps, test_actuate, test_deformation, test_g2p, test_p2g
from ..simulators.mpm.laws.responses import Respond, deformed, diagonals, in_principal_frame
from ..simulators.mpm.systems import system
from .suite import *  # noqa: F403 - the tests of all sweeps
from .sweep import Sweep

EACH = 1
"""Number of mutants per rule in a sample: all compile kernels."""

BOUND = "differs only for a strain on a bound, which the tests of the laws check, not these"
EQUIVALENT = {
    "*: vec(0.0) -> -vec(0.0)": "minus nothing",
    "*: principal.zero(c) -> -principal.zero(c)": "minus nothing",
    "functions.jacobian: e - e.sum() / dim -> e.sum() / dim - e": "the direction stands in n n^T alone",
    "*: size > r -> size >= r": BOUND,
    "*: t > 0 -> t >= 0": BOUND,
    "*: t?i? < 1 - c?3? -> *<=*": BOUND,
    "*: t?i? > 1 + c?4? -> *>=*": BOUND,
    "*: t?j? < 1 - c?3? -> *<=*": BOUND,
    "*: t?j? > 1 + c?4? -> *>=*": BOUND,
    "*: s?j? < STRETCH_FLOOR -> *<=*": BOUND,
}

Check = Callable[[Any], None]


def check(function: Callable[..., Any], inputs: tuple[Tensor, ...]) -> None:
    gradcheck(function, inputs, mode="projected", repeats=1)


def applied(function: str, parts: Callable[..., Any], *arguments: int, names: tuple[str, ...]) -> Check:
    """Make a check of the derivative of a chain of sub-steps, some of them of a module, at the inputs of its test."""

    def checked(module: Any) -> None:
        model, inputs = parts(2, *arguments)
        with patch.multiple(substeps, **{name: getattr(module, name) for name in names}):
            check(lambda *x: getattr(substeps, function)(model, *x), inputs)

    return checked


def anew_of(module: Any, *factories: str) -> ExitStack:
    """Clear the caches of its factories, within a context."""
    stack = ExitStack()
    for name in factories:
        stack.enter_context(patch.object(module, name, functools.cache(getattr(module, name).__wrapped__)))
    return stack


STRETCHES: dict[str, tuple[float, list[list[float]]]] = {
    "fixed_corotated": (0.5, [[1.3, 0.8]]),
    "neo_hookean": (0.5, [[1.3, 0.8]]),
    "fluid": (0.5, [[1.1, 0.9]]),
    "hencky": (0.5, [[1.3, 0.8]]),
    "von_mises": (0.5, [[1.01, 0.995], [1.3, 0.8]]),
    "drucker_prager": (0.02, [[0.94, 0.93], [1.25, 0.6], [1.2, 1.1]]),
    "snow": (0.97, [[1.002, 0.99], [1.2, 0.99], [0.8, 1.002], [0.8, 1.2]]),
}
"""Hidden variable, and principal stretches that cover each case of a law."""


def response(name: str, dim: int = 2, *, framed: bool = False) -> Check:
    """Make a check of a law's derivatives with respect to deformation, hidden variable and coefficients."""

    def checked(module: Any) -> None:
        q, stretches = STRETCHES[name]
        n = len(stretches)
        params = system(2, laws=(name,), particles=n).params
        c = LAWS[name].coefficients(*[getattr(params, field).data for field in LAWS[name].PARAMETERS])
        rows = [[*row, 0.98 * row[0]][:dim] for row in stretches]
        inputs = diagonals(rows) if framed else deformed(rows), np.full(n, q), np.stack([*c, np.ones(n)], axis=-1)
        law = in_principal_frame(module) if framed else module
        check(lambda *x: Respond.apply(law, *x), tuple([tensor(x, requires_grad=True) for x in inputs]))

    return checked


def stretched(name: str) -> Check:
    """Make a check of a law's response to principal stretches, in space: plane deviators have a single direction."""
    return response(name, 3, framed=True)


def coefficients(name: str) -> Check:
    """Make a check of the derivative of a law's coefficients."""

    def checked(module: Any) -> None:
        case = system(2, laws=(name,), particles=3)
        fields = tuple([getattr(case.params, field) for field in LAW_PARAMETERS])
        with patch.dict(LAWS, {name: module}):
            check(lambda *x: constitutive.Coefficients.apply(case.model, *x), fields)

    return checked


def within(part: str, *names: str, dims: tuple[int, ...] = (2,), framed: bool = False) -> Check:
    """Make a check of the responses of laws, with a module in place of the part of that name."""

    def checked(module: Any) -> None:
        for name in names:
            law = LAWS[name]
            with ExitStack() as stack:
                for user in (law, principal, hencky):
                    if hasattr(user, part):
                        stack.enter_context(patch.object(user, part, module))
                stack.enter_context(anew_of(law, "functions"))
                for dim in dims:
                    response(name, dim, framed=framed)(law)

    return checked


def of_lame(module: Any) -> None:
    with patch.multiple(
        neo_hookean, adj_coefficients=module.adj_coefficients, jvp_coefficients=module.jvp_coefficients
    ):
        coefficients("neo_hookean")(neo_hookean)


def respond(module: Any) -> None:
    """Check particles of three laws, and of one."""
    for laws in (("snow", "fluid"), ("fluid",)):
        model, params, state, _ = system(2, laws=laws, particles=3)
        fields = tuple([getattr(params, name) for name in LAW_PARAMETERS])

        def of(F: Tensor, q: Tensor, *fields: Tensor, model: Any = model) -> Any:
            results = module.respond(model, F, q, module.Coefficients.apply(model, *fields))
            return [x for x in results if x.size]

        check(of, (state.deformation, state.plastic, *fields))


PRINCIPAL = {hencky: "functions", von_mises: "functions", drucker_prager: "*", snow: "*"}
"""Laws for principal stretches, with the factories of their rules."""
OWN = ("von_mises", "drucker_prager", "snow")
"""Laws with coefficients of their own."""


def name_of(module: ModuleType) -> str:
    return module.__name__.rsplit(".", 1)[-1]


OF_ELEMENTS = ("adj_*", "jvp_*")

SWEEPS = [
    Sweep(deformation, OF_ELEMENTS, applied("deform", test_deformation.parts, names=("Deform",))),
    Sweep(actuate, OF_ELEMENTS, applied("actuate", test_actuate.parts, names=("FibreStress",))),
    Sweep(p2g, OF_ELEMENTS, applied("to_grid", test_p2g.parts, 4, names=("Momentum", "ParticleToGrid"))),
    Sweep(g2p, OF_ELEMENTS, applied("to_particles", test_g2p.parts, 4, names=("GridToParticle", "Move"))),
    *[
        Sweep(module, ("functions.adj", "functions.jvp"), response(name_of(module)))
        for module in (fixed_corotated, neo_hookean, fluid)
    ],
    *[
        Sweep(
            module,
            (f"{factory}.adj*", f"{factory}.jvp*", f"{factory}.jacobian"),
            stretched(name_of(module)),
            equivalent=EQUIVALENT,
        )
        for module, factory in PRINCIPAL.items()
    ],
    Sweep(
        hencky,
        ("plastic.adj*", "plastic.jvp*", "plastic.jacobian"),
        within("hencky", "von_mises", "drucker_prager", dims=(3,), framed=True),
        equivalent=EQUIVALENT,
    ),
    *[Sweep(LAWS[name], ("adj_coefficients", "jvp_coefficients"), coefficients(name)) for name in OWN],
    Sweep(lame, ("adj_coefficients", "jvp_coefficients", "_derivatives"), of_lame),
    Sweep(principal, ("functions.adj", "functions.jvp"), within("principal", "snow")),
    Sweep(
        isotropic,
        ("functions.adj", "functions.jvp", "functions.adj_left", "functions.jvp_left"),
        within("isotropic", "von_mises", "snow"),
    ),
    Sweep(constitutive, ("functions.adj", "functions.jvp"), respond),
    Sweep(constitutive, ("responses.adj_*", "responses.jvp_*"), respond),
    Sweep(constitutive, ("plastic_responses.adj_*", "plastic_responses.jvp_*"), respond),
    Sweep(constitutive, ("adj_coefficients", "jvp_coefficients"), respond),
    Sweep(polar, ("*.derivative",), within("polar", "fixed_corotated", dims=(2, 3))),
]
