"""Explicit diffusion of momentum by viscosity:

    u' = u + k A u,     k = dt nu / dx^2                (A u)_i = sum over neighbours j of (u_j - u_i)

nu viscosity [m^2/s]. A neighbour beyond a side is a ghost; with w the velocity of the side, boundary_velocity:

    closed          u_j = 2 w - u_i, so that the mean is the wall's velocity; with slip u_j = u_i
    inflow          u_j = 2 w - u_i
    open            u_j = u_i
    periodic        the entry at the opposite side

A normal component at its face on a closed or inflow side is given and does not change (M = 0 there, else 1). On a
collocated grid its ghost beyond a wall is u_j = -u_i, with or without slip. So u' = u + k M (A u + 2 c w), where c is 1
for ghosts that depend on w, else 0, and A is symmetric. Adjoint, with g = adj_u':

    adj_u = g + k A M g         adj_nu = dt/dx^2 sum_i g_i M (A u + 2 c w)_i         adj_w = 2 k c^T M g

Stable for k <= 1 / (2 dim), see stability.py. Source: the ghosts are those of Harlow and Welch 1965.
"""

import functools
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels import device
from simphys.autograd.kernels.runtime import ti
from simphys.substep import Chain, Entries, KernelCall, Launch, Target, launched

from .entries import FIXED, GIVEN, LENGTH, OWN, SIGNS, Form, Work, functions, work_of
from .model import Smoke
from .sides import add_sides

Out = Mapping[str, Target]


# fmt: off
def rate_function(form: Form) -> Any:
    """Return the function of the change of an entry by its neighbours."""
    real, dim, _, on_gpu, _ = form
    f = functions(dim, on_gpu)

    @ti.func
    def rate(table: ti.template(), u: ti.template(), begin, w: ti.template(), begin_w, component, at, given):
        """Compute (A u + 2 c w)_i; without what is given, (A M u)_i."""
        here, total = u[begin + f.place(table, component, at)], real(0.0)
        if given == 0 and not f.is_free(table, component, at):
            here = real(0.0)
        for d in ti.static(range(3 - dim, 3)):
            n = table[OWN + 3 * component + d]
            for step in ti.static((-1, 1)):
                side = 2 * (3 * component + d) + ti.static((step + 1) // 2)
                sign, there, next_value = table[SIGNS + side], at, real(0.0)
                there[d] = at[d] + step
                if sign == 0:
                    there[d] = there[d] % n
                if there[d] < 0 or there[d] >= n:
                    next_value = sign * here
                    if given == 1 and table[GIVEN + side] >= 0:
                        next_value += 2 * w[begin_w + table[GIVEN + side]]
                elif given == 1 or f.is_free(table, component, there):
                    next_value = u[begin + f.place(table, component, there)]
                total += next_value - here
        return total

    return rate


@functools.cache
def loops(form: Form) -> SimpleNamespace:
    """Loops over entries."""
    real, dim, _, on_gpu, alone = form
    f, rate = functions(dim, on_gpu), rate_function(form)
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @no_type_check
    @kernel
    def add_rates(
        rounds: ti.i32, table: integers, c: real, u: reals, w: reals, nu: reals, target: reals,
        begin_u: ti.i32, begin_w: ti.i32, begin_nu: ti.i32, begin: ti.i32,
    ):
        """Add k M (A u + 2 c w)."""
        ti.loop_config(serialize=alone)
        for r in range(rounds):
            component, at, line, own = f.begin(table, r)
            for x in range(at[2], f.last(table, at)):
                at[2], to = x, begin + line + x
                if x < own and f.is_free(table, component, at):
                    change = rate(table, u, begin_u, w, begin_w, component, at, 1)
                    target[to] = target[to] + c * nu[begin_nu] * change

    @no_type_check
    @kernel
    def adj_velocity(
        rounds: ti.i32, table: integers, c: real, adds: ti.i32, g: reals, nu: reals, target: reals,
        begin_g: ti.i32, begin_nu: ti.i32, begin: ti.i32,
    ):
        ti.loop_config(serialize=alone)
        for r in range(rounds):
            component, at, line, own = f.begin(table, r)
            for x in range(at[2], f.last(table, at)):
                at[2], e = x, line + x
                total = ti.select(adds == 1, target[begin + e], 0.0) + g[begin_g + e]
                if x < own:
                    total += c * nu[begin_nu] * rate(table, g, begin_g, g, begin_g, component, at, 0)
                target[begin + e] = total

    @no_type_check
    @kernel
    def multiply(
        rounds: ti.i32, table: integers, g: reals, u: reals, w: reals, terms: reals,
        begin_g: ti.i32, begin_u: ti.i32, begin_w: ti.i32,
    ):
        """Compute the product of g and M (A u + 2 c w) at each entry."""
        ti.loop_config(serialize=alone)
        for r in range(rounds):
            component, at, line, own = f.begin(table, r)
            for x in range(at[2], f.last(table, at)):
                at[2], term = x, real(0.0)
                if x < own and f.is_free(table, component, at):
                    term = g[begin_g + line + x] * rate(table, u, begin_u, w, begin_w, component, at, 1)
                terms[line + x] = term

    return SimpleNamespace(add_rates=add_rates, adj_velocity=adj_velocity, multiply=multiply)
# fmt: on


def _add_rates(work: Work, velocity: Entries, boundary: Entries, viscosity: Entries, target: Target) -> Launch:
    taken = velocity, boundary, viscosity, target.entries
    given = work.rounds, work.table, _per_viscosity(work.model), *[each.numbers for each in taken]
    return KernelCall(loops(work.form).add_rates, *given, moving=[(each, 0) for each in taken])


def diffuse(model: Smoke, velocity: Entries, viscosity: Entries, boundary_velocity: Entries, out: Out) -> Launch:
    """Diffuse a velocity [dim, *faces] [m/s], with viscosity [] and boundary_velocity [2 dim, dim]."""
    work, target = work_of(model), out["diffused_velocity"]
    return Chain(work.copy(velocity, target), _add_rates(work, velocity, boundary_velocity, viscosity, target))


def adj_diffuse(
    model: Smoke,
    velocity: Entries,
    viscosity: Entries,
    boundary_velocity: Entries,
    adj_diffused_velocity: Entries,
    out: Out,
) -> Launch:
    work, g, c = work_of(model), adj_diffused_velocity, _per_viscosity(model)

    def adj_velocity(target: Target) -> Launch:
        to = target.entries
        given = work.rounds, work.table, c, int(target.adds), g.numbers, viscosity.numbers, to.numbers
        return KernelCall(loops(work.form).adj_velocity, *given, moving=[(g, 0), (viscosity, 0), (to, 0)])

    def adj_viscosity(target: Target) -> Launch:
        terms, taken = work.get("terms", work.entries), (g, velocity, boundary_velocity)
        given = work.rounds, work.table, *[each.numbers for each in taken], terms
        products = KernelCall(loops(work.form).multiply, *given, moving=[(each, 0) for each in taken])
        return Chain(products, work.add_up(terms, 1, c, target))

    def adj_boundary(target: Target) -> Launch:
        return add_sides(work, g, _dependent(model), viscosity, 2 * c, target, masked=True)

    makes = {"velocity": adj_velocity, "viscosity": adj_viscosity, "boundary_velocity": adj_boundary}
    return Chain(*[makes[name](target) for name, target in out.items()])


def jvp_diffuse(
    model: Smoke,
    velocity: Entries,
    viscosity: Entries,
    boundary_velocity: Entries,
    dvelocity: Entries,
    dviscosity: Entries,
    dboundary_velocity: Entries,
    out: Out,
) -> Launch:
    work, target = work_of(model), out["diffused_velocity"]
    return Chain(
        work.copy(dvelocity, target),
        _add_rates(work, dvelocity, dboundary_velocity, viscosity, target),
        _add_rates(work, velocity, boundary_velocity, dviscosity, target),
    )


def _per_viscosity(model: Smoke) -> float:
    """Return k / nu [s/m^2]."""
    return float(model.dt / model.spacing**2)


@runtime.cached(maxsize=4)
def _dependent(model: Smoke) -> Any:
    """Make an array [2 dim, dim] with 1 where the ghosts of a component beyond a side depend on boundary_velocity."""
    table, first = device.to_host(work_of(model).table, (LENGTH,)), 3 - model.dim
    given = table[GIVEN:FIXED].reshape(3, 3, 2)[first:, first:] >= 0
    weights = np.moveaxis(given, 0, 2).reshape(2 * model.dim * model.dim)
    return device.to_device(weights.astype(runtime.real_dtype()))


Diffuse = launched(
    diffuse,
    adjoint=adj_diffuse,
    tangent=jvp_diffuse,
    results={"diffused_velocity": "velocity"},
    name="Diffuse",
    is_cheap=True,
    idle={"viscosity": "velocity"},
)
"""Velocity [dim, *faces] after a step with viscosity [] and boundary_velocity [2 dim, dim]."""
