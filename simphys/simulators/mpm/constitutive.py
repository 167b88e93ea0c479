"""The constitutive response of particles to a trial deformation gradient, each particle by its own law (laws/).

    c = Coefficients(parameters of laws)         for each particle, those of its law
    F', q', tau = Respond(F, q, c)               F', q' after plastic flow; tau = P F'^T the Kirchhoff stress [Pa]

The adjoint is that of the particle's law. The adjoint of a parameter is zero for particles whose law does not use it.
"""

import functools
import inspect
from collections.abc import Iterator, Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.simulator import Array
from simphys.substep import operation, per_element

from .laws import LAW_PARAMETERS, LAWS
from .model import MPM


@functools.cache
def functions(real: Any, dim: int, laws: tuple[str, ...]) -> SimpleNamespace:
    """The respond, adj and jvp of a particle; like those of a law, but the first argument is the index in `laws`."""
    mat = ti.types.matrix(dim, dim, real)
    of = [LAWS[name].functions(real, dim) for name in laws]
    if len(of) == 1:
        (only,) = of

        @ti.func
        def respond(law, F, q, c):
            return only.respond(F, q, c)

        @ti.func
        def adj(law, F, q, c, adj_F_new, adj_q_new, adj_tau):
            return only.adj(F, q, c, adj_F_new, adj_q_new, adj_tau)

        @ti.func
        def jvp(law, F, q, c, dF, dq, dc):
            return only.jvp(F, q, c, dF, dq, dc)

    else:

        @ti.func
        def respond(law, F, q, c):
            F_new, q_new, tau = F, q, mat(0.0)
            for k in ti.static(range(len(of))):
                if law == k:
                    F_new, q_new, tau = of[k].respond(F, q, c)
            return F_new, q_new, tau

        @ti.func
        def adj(law, F, q, c, adj_F_new, adj_q_new, adj_tau):
            adj_F, adj_q, adj_c = adj_F_new, adj_q_new, c
            for k in ti.static(range(len(of))):
                if law == k:
                    adj_F, adj_q, adj_c = of[k].adj(F, q, c, adj_F_new, adj_q_new, adj_tau)
            return adj_F, adj_q, adj_c

        @ti.func
        def jvp(law, F, q, c, dF, dq, dc):
            dF_new, dq_new, dtau = dF, dq, mat(0.0)
            for k in ti.static(range(len(of))):
                if law == k:
                    dF_new, dq_new, dtau = of[k].jvp(F, q, c, dF, dq, dc)
            return dF_new, dq_new, dtau

    return SimpleNamespace(respond=respond, adj=adj, jvp=jvp)


def coefficients(model: MPM, params: Mapping[str, Array]) -> Array:
    """Compute the coefficients of each particle's law [n, model.width]; row i begins with those of its own law."""
    result = np.zeros((model.particles, model.width), runtime.real_dtype())
    for law, indices in _particles_by_law(model):
        for k, values in enumerate(law.coefficients(*_select(law, params, indices))):
            result[indices, k] = values
    return result


def adj_coefficients(model: MPM, params: Mapping[str, Array], adj: Array) -> dict[str, Array]:
    """Compute the adjoints of the fields LAW_PARAMETERS from those of the coefficients, `adj` [n, model.width]."""
    result = {name: np.zeros(params[name].shape, adj.dtype) for name in LAW_PARAMETERS}
    for law, indices in _particles_by_law(model):
        columns = tuple([adj[indices, k] for k in range(len(law.COEFFICIENTS))])
        found = law.adj_coefficients(_select(law, params, indices), columns)
        for name, values in zip(law.PARAMETERS, found, strict=True):
            result[name][indices] = values
    return result


def jvp_coefficients(model: MPM, params: Mapping[str, Array], tangents: Mapping[str, Array]) -> Array:
    """Compute the tangents of the coefficients [n, model.width] from those of the fields LAW_PARAMETERS."""
    result = np.zeros((model.particles, model.width), runtime.real_dtype())
    for law, indices in _particles_by_law(model):
        found = law.jvp_coefficients(_select(law, params, indices), _select(law, tangents, indices))
        for k, values in enumerate(found):
            result[indices, k] = values
    return result


def _particles_by_law(model: MPM) -> Iterator[tuple[ModuleType, Any]]:
    """Yield each law with the indices of its particles."""
    if model.law is None:
        yield LAWS[model.laws[0]], slice(None)
    else:
        for k, name in enumerate(model.laws):
            yield LAWS[name], np.flatnonzero(model.law == k)


def _select(law: ModuleType, params: Mapping[str, Array], indices: Any) -> tuple[Array, ...]:
    return tuple([params[name][indices] for name in law.PARAMETERS])


def _by_name(function: Any, *names: str) -> Any:
    """Make a function that takes the arrays of these names one by one, in place of all of them by name."""

    def call(model: MPM, **arrays: Array) -> Any:
        return function(model, arrays)

    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("model", *names)]
    vars(call)["__signature__"] = inspect.Signature(parameters)
    return call


def _pull(model: MPM, arrays: Mapping[str, Array]) -> tuple[Array, ...]:
    return tuple(adj_coefficients(model, arrays, arrays["adj_coefficients"]).values())


def _push(model: MPM, arrays: Mapping[str, Array]) -> Array:
    return jvp_coefficients(model, arrays, {name: arrays[f"d{name}"] for name in LAW_PARAMETERS})


Coefficients = operation(
    _by_name(coefficients, *LAW_PARAMETERS),
    adjoint=_by_name(_pull, *LAW_PARAMETERS, "adj_coefficients"),
    tangent=_by_name(_push, *LAW_PARAMETERS, *[f"d{name}" for name in LAW_PARAMETERS]),
    results={"coefficients": lambda model: (model.particles, model.width)},
    name="Coefficients",
)
"""The laws' coefficients [n, width] from the fields LAW_PARAMETERS of Params, each [n], or [0] if no law uses it."""


@functools.cache
def responses(laws: tuple[str, ...]) -> Any:
    """Declare the response F' and tau of particles whose `laws` have no hidden variable."""

    @element
    def respond(F, c, law):
        F_new, _, tau = ti.static(functions(runtime.real(), F.n, laws).respond)(int(law), F, 0.0, c)
        return F_new, tau

    @respond.adjoint
    def adj_respond(F, c, law, adj_F, adj_tau):
        adj = ti.static(functions(runtime.real(), F.n, laws).adj)
        adj_trial, _, adj_c = adj(int(law), F, 0.0, c, adj_F, 0.0, adj_tau)
        return adj_trial, adj_c

    @respond.tangent
    def jvp_respond(F, c, law, dF, dc):
        dF_new, _, dtau = ti.static(functions(runtime.real(), F.n, laws).jvp)(int(law), F, 0.0, c, dF, 0.0, dc)
        return dF_new, dtau

    return per_element(
        respond,
        over="particles",
        own={"F": "trial_deformation", "c": "coefficients"},
        constant={"law": "law"},
        results={"deformation": "F", "stress": "F"},
    )


@functools.cache
def plastic_responses(laws: tuple[str, ...]) -> Any:
    """Declare the response F', q' and tau of particles, some of whose `laws` have a hidden variable."""

    @element
    def respond(F, q, c, law):
        F_new, q_new, tau = ti.static(functions(runtime.real(), F.n, laws).respond)(int(law), F, q, c)
        return F_new, q_new, tau

    @respond.adjoint
    def adj_respond(F, q, c, law, adj_F, adj_q, adj_tau):
        adj = ti.static(functions(runtime.real(), F.n, laws).adj)
        adj_trial, adj_hidden, adj_c = adj(int(law), F, q, c, adj_F, adj_q, adj_tau)
        return adj_trial, adj_hidden, adj_c

    @respond.tangent
    def jvp_respond(F, q, c, law, dF, dq, dc):
        dF_new, dq_new, dtau = ti.static(functions(runtime.real(), F.n, laws).jvp)(int(law), F, q, c, dF, dq, dc)
        return dF_new, dq_new, dtau

    return per_element(
        respond,
        over="particles",
        own={"F": "trial_deformation", "q": "plastic", "c": "coefficients"},
        constant={"law": "law"},
        results={"deformation": "F", "plastic": "q", "stress": "F"},
    )


def respond(model: MPM, deformation: Any, plastic: Any, coefficients: Any) -> tuple[Any, Any, Any]:
    """Compute F' [n, dim, dim], q' and tau [n, dim, dim] from the trial F [n, dim, dim], q and c [n, width].

    q and q' are [n], or [0] if no law of the model has a hidden variable.
    """
    law = 0.0 if model.law is None or len(model.laws) == 1 else model.law_numbers
    if model.is_plastic:
        found: tuple[Any, Any, Any] = plastic_responses(model.laws).apply(
            model, deformation, plastic, coefficients, law
        )
        return found
    new, stress = responses(model.laws).apply(model, deformation, coefficients, law)
    return new, plastic, stress
