"""The constitutive response of particles to a trial deformation gradient, each particle by its own law (laws/).

    c = Coefficients(parameters of laws)         for each particle, those of its law
    F', q', tau = Respond(F, q, c)               F', q' after plastic flow; tau = P F'^T the Kirchhoff stress [Pa]

The adjoint is that of the particle's law. The adjoint of a parameter is zero for particles whose law does not use it.
"""

import functools
from collections.abc import Iterator, Mapping
from types import ModuleType, SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.simulator import Array

from .laws import LAW_PARAMETERS, LAWS
from .model import MPM


@functools.cache
@no_type_check
def functions(real: Any, dim: int, laws: tuple[str, ...]) -> SimpleNamespace:
    """The respond, adj and jvp of a particle; like those of a law, but the first argument is the index in `laws`."""
    mat = ti.types.matrix(dim, dim, real)
    of = [LAWS[name].functions(real, dim) for name in laws]
    if len(of) == 1:
        (only,) = of

        @ti.func
        def respond(law: ti.i32, F: mat, q: real, c):
            return only.respond(F, q, c)

        @ti.func
        def adj(law: ti.i32, F: mat, q: real, c, adj_F_new: mat, adj_q_new: real, adj_tau: mat):
            return only.adj(F, q, c, adj_F_new, adj_q_new, adj_tau)

        @ti.func
        def jvp(law: ti.i32, F: mat, q: real, c, dF: mat, dq: real, dc):
            return only.jvp(F, q, c, dF, dq, dc)

    else:

        @ti.func
        def respond(law: ti.i32, F: mat, q: real, c):
            F_new, q_new, tau = F, q, mat(0.0)
            for k in ti.static(range(len(of))):
                if law == k:
                    F_new, q_new, tau = of[k].respond(F, q, c)
            return F_new, q_new, tau

        @ti.func
        def adj(law: ti.i32, F: mat, q: real, c, adj_F_new: mat, adj_q_new: real, adj_tau: mat):
            adj_F, adj_q, adj_c = adj_F_new, adj_q_new, c
            for k in ti.static(range(len(of))):
                if law == k:
                    adj_F, adj_q, adj_c = of[k].adj(F, q, c, adj_F_new, adj_q_new, adj_tau)
            return adj_F, adj_q, adj_c

        @ti.func
        def jvp(law: ti.i32, F: mat, q: real, c, dF: mat, dq: real, dc):
            dF_new, dq_new, dtau = dF, dq, mat(0.0)
            for k in ti.static(range(len(of))):
                if law == k:
                    dF_new, dq_new, dtau = of[k].jvp(F, q, c, dF, dq, dc)
            return dF_new, dq_new, dtau

    return SimpleNamespace(respond=respond, adj=adj, jvp=jvp)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int, laws: tuple[str, ...], width: int, plastic: bool, parallel: bool) -> SimpleNamespace:
    """Loops over particles for the nested sub-step; without a `plastic` law, q is neither read nor written."""
    mat = ti.types.matrix(dim, dim, real)
    f = functions(real, dim, laws)
    mats, reals = ti.types.ndarray(dtype=mat, ndim=1), ti.types.ndarray(dtype=real, ndim=1)
    rows = ti.types.ndarray(dtype=ti.types.vector(width, real), ndim=1)
    ints = ti.types.ndarray(dtype=ti.i32, ndim=1)

    @ti.func
    def hidden(q: ti.template(), i) -> real:
        result = 0.0
        if ti.static(plastic):
            result = q[i]
        return result

    @kernel
    def forward(law: ints, F: mats, q: reals, c: rows, n: ti.i32, F_new: mats, q_new: reals, tau: mats):
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            k = 0 if ti.static(len(laws) == 1) else law[i]
            F_i, q_i, tau_i = f.respond(k, F[i], hidden(q, i), c[i])
            F_new[i] = F_i
            tau[i] = tau_i
            if ti.static(plastic):
                q_new[i] = q_i

    @kernel
    def adjoint(
        law: ints, F: mats, q: reals, c: rows, n: ti.i32, adj_F_new: mats, adj_q_new: reals, adj_tau: mats,
        adj_F: mats, adj_q: reals, adj_c: rows,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            k = 0 if ti.static(len(laws) == 1) else law[i]
            gF, gq, gc = f.adj(k, F[i], hidden(q, i), c[i], adj_F_new[i], hidden(adj_q_new, i), adj_tau[i])
            adj_F[i] = gF
            adj_c[i] = gc
            if ti.static(plastic):
                adj_q[i] = gq

    @kernel
    def tangent(
        law: ints, F: mats, q: reals, c: rows, dF: mats, dq: reals, dc: rows, n: ti.i32,
        dF_new: mats, dq_new: reals, dtau: mats,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            k = 0 if ti.static(len(laws) == 1) else law[i]
            dF_i, dq_i, dtau_i = f.jvp(k, F[i], hidden(q, i), c[i], dF[i], hidden(dq, i), dc[i])
            dF_new[i] = dF_i
            dtau[i] = dtau_i
            if ti.static(plastic):
                dq_new[i] = dq_i

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


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


class Coefficients(Function):
    """The laws' coefficients [n, width] from the fields LAW_PARAMETERS of Params, each [n], or [0] if no law uses it.

    Saves the fields.
    """

    @staticmethod
    def forward(ctx: Context, model: MPM, *fields: Tensor) -> Array:
        runtime.require_precision("Coefficients", *fields)
        ctx.model = model
        ctx.save_for_backward(*fields)
        return coefficients(model, _by_name(fields))

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Any, ...]:
        found = adj_coefficients(ctx.model, _by_name(ctx.saved_tensors), adj.data)
        return None, *[found[name] for name in LAW_PARAMETERS]

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Any) -> Array:
        params = _by_name(ctx.saved_tensors)
        return jvp_coefficients(ctx.model, params, dict(zip(LAW_PARAMETERS, tangents, strict=True)))


def _by_name(fields: tuple[Tensor, ...]) -> dict[str, Array]:
    return {name: field.data for name, field in zip(LAW_PARAMETERS, fields, strict=True)}


class Respond(Function):
    """F' [n, dim, dim], q' and tau [n, dim, dim] from the trial F [n, dim, dim], q and c [n, width].

    q and q' are [n], or [0] if no law of the model has a hidden variable. Saves the three inputs.
    """

    @staticmethod
    def forward(
        ctx: Context, model: MPM, deformation: Tensor, plastic: Tensor, coefficients: Tensor
    ) -> tuple[Array, Array, Array]:
        ctx.model = model
        ctx.save_for_backward(deformation, plastic, coefficients)
        F_new, tau = np.empty_like(deformation.data), np.empty_like(deformation.data)
        q_new = np.empty_like(plastic.data)
        _kernels(model).forward(
            _law_index(model), deformation, _nonempty(plastic.data), coefficients, model.particles,
            F_new, _nonempty(q_new), tau,
        )  # fmt: skip
        return F_new, q_new, tau

    @staticmethod
    def backward(ctx: Context, adj_F_new: Tensor, adj_q_new: Tensor, adj_tau: Tensor) -> tuple[Any, ...]:
        model: MPM = ctx.model
        F, q, c = ctx.saved_tensors
        adj_F, adj_q, adj_c = np.empty_like(F.data), np.empty_like(q.data), np.empty_like(c.data)
        _kernels(model).adjoint(
            _law_index(model), F, _nonempty(q.data), c, model.particles, adj_F_new, _nonempty(adj_q_new.data), adj_tau,
            adj_F, _nonempty(adj_q), adj_c,
        )  # fmt: skip
        return None, adj_F, adj_q, adj_c

    @staticmethod
    def jvp(ctx: Context, _: None, dF: Array, dq: Array, dc: Array) -> tuple[Array, Array, Array]:
        model: MPM = ctx.model
        F, q, c = ctx.saved_tensors
        dF_new, dq_new, dtau = np.empty_like(F.data), np.empty_like(q.data), np.empty_like(F.data)
        _kernels(model).tangent(
            _law_index(model), F, _nonempty(q.data), c, dF, _nonempty(dq), dc, model.particles,
            dF_new, _nonempty(dq_new), dtau,
        )  # fmt: skip
        return dF_new, dq_new, dtau


PARTICLE_US = 0.02
"""Serial cost [us] of one particle's elastic response in 2-D."""


def _kernels(model: MPM) -> SimpleNamespace:
    parallel = runtime.parallel(PARTICLE_US * model.particles)
    return kernels(runtime.real(), model.dim, model.laws, model.width, model.is_plastic, parallel)


def _law_index(model: MPM) -> Array:
    """Return the index of each particle's law; a kernel reads it only if the model has several laws."""
    if model.law is None:
        return np.zeros(model.particles, np.int32)
    return np.ascontiguousarray(model.law, np.int32)


def _nonempty(q: Array) -> Array:
    """Return the hidden variables, or a single zero if there are none, as kernels take no empty arrays."""
    return q if q.size else np.zeros(1, q.dtype)
