"""An obstacle at rest in the fluid, by implicit volume penalization.

    u' = r u,    r = 1 - chi(phi) / (1 + ETA)                F_a = V/dt sum_i (u - u')_a,i

phi signed distance at a face, the mean of its cells (faces.py) [m]; V volume of a cell; F force on the obstacle divided
by density [m^(dim+1)/s^2]. chi is the fraction of obstacle at a point, 1 inside and 0 outside. It falls over LAYER
cells around the surface:

    chi = t^2 (3 - 2 t),    t = clamp(1/2 - phi/(LAYER dx), 0, 1)

r is an implicit step of du/dt = -a u, r = 1 / (1 + a dt), with the damping a = chi / ((1 + ETA - chi) dt). Inside,
a = 1 / (ETA dt), so that a step leaves ETA / (1 + ETA) = 1 % of the velocity. The growth of a near chi = 1 (Borrvall
and Petersson 2003, with q = ETA) matters for shape optimization. A linear a = chi / (ETA dt) would stop the fluid at
every face that the layer touches. The force would then be a staircase, with a jump wherever the surface reaches further
faces.

chi has a continuous derivative, 0 at both ends of the layer, and shapes get their gradient through it. Adjoint, with
g = adj_u', f = adj_F, and the total adjoint h_a = g_a - V/dt f_a of u':

    adj_u = r h + V/dt f                adj_phi = sum_a m_a^T (u_a h_a dr/dphi),    dr/dphi = -chi'(phi) / (1 + ETA)

The subsequent projection ignores the obstacle and accelerates the fluid inside by the pressure gradient again. The
velocity that remains there is therefore proportional to dt.

Source: Angot, Bruneau and Fabrie 1999, equation 1.3; Borrvall and Petersson 2003.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.simulator import Array

from .faces import add_mean, adj_mean, layout, work_us
from .model import Smoke

ETA = 0.01
"""Relaxation time of the fluid well inside, in time steps."""
LAYER = 1.0
"""Width of the layer around the surface over which chi falls from 1 to 0, in cells."""


@functools.cache
@no_type_check
def functions(real: Any) -> SimpleNamespace:
    """The element functions; `width` is the width of the layer [m]."""

    @ti.func
    def damping_factor(phi: real, width: real) -> real:
        """Return r."""
        t = ti.min(ti.max(real(0.5) - phi / width, real(0.0)), real(1.0))
        return 1 - t * t * (3 - 2 * t) / real(1 + ETA)

    @ti.func
    def jvp_damping_factor(phi: real, width: real) -> real:
        """Return dr/dphi."""
        t = ti.min(ti.max(real(0.5) - phi / width, real(0.0)), real(1.0))
        return 6 * t * (1 - t) / (width * real(1 + ETA))

    return SimpleNamespace(damping_factor=damping_factor, jvp_damping_factor=jvp_damping_factor)


@functools.cache
@no_type_check
def kernels(real: Any, parallel: bool) -> SimpleNamespace:
    """Loops over the entries of a velocity, in rows; `rate` is V/dt. Sums over a row have a fixed order."""
    f = functions(real)
    reals = ti.types.ndarray(dtype=real, ndim=1)

    @kernel
    def forward(u: reals, phi: reals, width: real, rows: ti.i32, length: ti.i32, out: reals, momentum_loss: reals):
        ti.loop_config(serialize=not parallel)
        for row in range(rows):
            total = real(0.0)
            for k in range(length):
                at = row * length + k
                left = f.damping_factor(phi[at], width) * u[at]
                total += u[at] - left
                out[at] = left
            momentum_loss[row] = total

    @kernel
    def adjoint(
        u: reals, phi: reals, width: real, rate: real, rows: ti.i32, length: ti.i32, per: ti.i32, g: reals,
        adj_force: reals, adj_u: reals, adj_phi: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for row in range(rows):
            lost = rate * adj_force[row // per]
            for k in range(length):
                at = row * length + k
                h = g[at] - lost
                adj_u[at] = f.damping_factor(phi[at], width) * h + lost
                adj_phi[at] = f.jvp_damping_factor(phi[at], width) * u[at] * h

    @kernel
    def tangent(
        u: reals, phi: reals, width: real, du: reals, dphi: reals, rows: ti.i32, length: ti.i32,
        dout: reals, dmomentum_loss: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=not parallel)
        for row in range(rows):
            total = real(0.0)
            for k in range(length):
                at = row * length + k
                left = (
                    f.damping_factor(phi[at], width) * du[at] + f.jvp_damping_factor(phi[at], width) * dphi[at] * u[at]
                )
                total += du[at] - left
                dout[at] = left
            dmomentum_loss[row] = total

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


def forward(model: Smoke, velocity: Array, obstacle: Array, out: Array | None = None) -> tuple[Array, Array]:
    """Damp a velocity [dim, *faces] [m/s] by an obstacle with signed distance [*cells]; return the force [dim], too.

    `out` may be the velocity.
    """
    out = np.empty_like(velocity) if out is None else out
    rows, length, _ = _rows(model)
    momentum_loss = np.empty(rows, velocity.dtype)
    phi = _at_faces(model, obstacle)
    _kernels(model).forward(velocity.reshape(-1), phi, _width(model), rows, length, out.reshape(-1), momentum_loss)
    return out, _force(model, momentum_loss)


def pull(model: Smoke, velocity: Array, obstacle: Array, adj: Array, adj_force: Array) -> tuple[Array, Array]:
    """Return adj_velocity and adj_obstacle."""
    rows, length, per = _rows(model)
    adj_u, adj_phi = np.empty_like(adj), np.empty_like(adj)
    _kernels(model).adjoint(
        velocity.reshape(-1), _at_faces(model, obstacle), _width(model), _rate(model), rows, length, per,
        adj.reshape(-1), adj_force, adj_u.reshape(-1), adj_phi.reshape(-1),
    )  # fmt: skip
    return adj_u, adj_mean(model, adj_phi, np.ones(model.dim, adj.dtype), sides=1.0)


def push(model: Smoke, velocity: Array, obstacle: Array, dvelocity: Array, dobstacle: Array) -> tuple[Array, Array]:
    """Return the tangents of velocity and force."""
    rows, length, _ = _rows(model)
    dout, dmomentum_loss = np.empty_like(dvelocity), np.empty(rows, dvelocity.dtype)
    _kernels(model).tangent(
        velocity.reshape(-1), _at_faces(model, obstacle), _width(model), dvelocity.reshape(-1),
        _at_faces(model, dobstacle), rows, length, dout.reshape(-1), dmomentum_loss,
    )  # fmt: skip
    return dout, _force(model, dmomentum_loss)


class Obstruct(Function):
    """Damped velocity [dim, *faces] and force [dim] of an obstacle with signed distance [*cells]. Saves both inputs."""

    @staticmethod
    def forward(ctx: Context, model: Smoke, velocity: Tensor, obstacle: Tensor) -> tuple[Array, Array]:
        ctx.model = model
        ctx.save_for_backward(velocity, obstacle)
        return forward(model, velocity.data, obstacle.data)

    @staticmethod
    def backward(ctx: Context, adj: Tensor, adj_force: Tensor) -> tuple[Any, ...]:
        velocity, obstacle = ctx.saved_tensors
        return None, *pull(ctx.model, velocity.data, obstacle.data, adj.data, adj_force.data)

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Any) -> tuple[Array, Array]:
        saved = [each.data for each in ctx.saved_tensors]
        return push(ctx.model, *saved, *tangents)


def _at_faces(model: Smoke, obstacle: Array) -> Array:
    """Compute phi at all entries of a velocity, flattened; 0 beyond a component's own faces, as the velocity is."""
    base = np.zeros((model.dim, *model.faces), obstacle.dtype)
    return add_mean(model, base, obstacle, np.ones(model.dim, obstacle.dtype), sides=1.0, out=base).reshape(-1)


def _force(model: Smoke, momentum_loss: Array) -> Array:
    force: Array = _rate(model) * momentum_loss.reshape(model.dim, -1).sum(axis=1)
    return force.astype(momentum_loss.dtype)


def _rate(model: Smoke) -> float:
    """Return V/dt."""
    return float(model.spacing**model.dim / model.dt)


def _width(model: Smoke) -> float:
    return LAYER * model.spacing


def _rows(model: Smoke) -> tuple[int, int, int]:
    """Return the number of rows of a velocity, their length, and the number of rows of a component."""
    length = model.faces[-1]
    per = int(np.prod(model.faces)) // length
    return model.dim * per, length, per


def _kernels(model: Smoke) -> SimpleNamespace:
    return kernels(runtime.real(), runtime.parallel(work_us(layout(model))))
