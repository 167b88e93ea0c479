"""Tangent of the sweeps over all rows (sweeps.py), along with their updates, where du = dJ V + J dV:

    dlambda^ = dlambda - drho (u - t) - rho (du - dt)       dV' = dV + dP Delta + P (dlambda' - dlambda)
    dlambda' = dlambda^ where free, 0 where separated;
    sliding, with b = mu lambda_n:     dlambda' = db e + b / |lambda^| (dlambda^ - e e.dlambda^)
    drho = -rho^2 dd,   dd = dJ P + J dP, for friction the mean over its rows

Friction at the cone's edge counts as sticking, as in the adjoint. The tangent follows the sweeps, converged or not, and
so does the adjoint: they are transposes.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.records import View
from simphys.autograd.kernels.runtime import ti

from . import sweeps
from .sweeps import FRICTION, NORMAL


@functools.cache
@no_type_check
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Return the tangents of `prepare` and `sweep`; their arguments are in sweeps.py."""
    f = sweeps.loops(real, dim)
    rho_, trial_, beyond = f.rho_, f.trial_, f.beyond
    spins = 1 if dim == 2 else 3
    D, W, L = dim + spins, dim + 2 * spins, sweeps.record_length(dim)

    @ti.func
    def jvp_prepare(model: ti.template(), x: ti.template(), dx: ti.template()):
        """Compute the tangents of J, P and rho of all active rows, after `prepare`."""
        for k in range(model.joint_rows + f.entry(x.order, 0) * dim):
            i, block = f.row_at(k, model.joint_rows, x.order)
            p, dd = i * L, real(0.0)
            for side in range(2):
                body, sign, r = model.row_bodies[2 * block + side], real(1.0 - 2.0 * side), i * W
                J, P, m = p + side * D, p + (2 + side) * D, (2 * i + side) * spins
                inverse, dinverse = real(0.0), real(0.0)
                if body >= 0:
                    inverse = x.inverse_mass[body]
                    dinverse = dx.inverse_mass[body]
                for e in range(dim):
                    dx.record[J + e] = sign * dx.row[r + e]
                    dx.record[P + e] = sign * (dinverse * x.row[r + e] + inverse * dx.row[r + e])
                for e in range(spins):
                    dx.record[J + dim + e] = sign * dx.moment[m + e]
                    dx.record[P + dim + e] = sign * dx.spin_change[m + e]
                dd += f.dot(dx.record, J, x.record, P) + f.dot(x.record, J, dx.record, P)
            dx.record[p + rho_] = dd
        for k in range(model.joint_rows + f.entry(x.order, 0) * dim):
            i, _ = f.row_at(k, model.joint_rows, x.order)
            p = i * L + rho_
            dd = dx.record[p]
            if ti.static(dim == 3):  # noqa: SIM102 - decided when compiling
                if k >= model.joint_rows and (k - model.joint_rows) % dim == 1:
                    # rho of both friction rows depends on both d
                    dd = 0.5 * (dd + dx.record[p + L])
                    dx.record[p + L] = dd
            dx.record[p] = -x.record[p] * x.record[p] * dd

    @ti.func
    def jvp_sweep(phase, model: ti.template(), x: ti.template(), dx: ti.template()):
        """Sweep over all groups as `sweep` does, with tangents; both `speed` are changed."""
        N = model.joint_rows + model.contacts * dim
        start = f.target_offset(phase, N)
        target, dtarget = ti.static(View(x.phase_target, start), View(dx.phase_target, start))
        impulse, dimpulse = ti.static(View(x.impulse, phase * N), View(dx.impulse, phase * N))
        for i in range(N):
            impulse[i] = 0.0
            dimpulse[i] = 0.0
        for _ in range(model.sweeps):
            for k in range(f.count_groups(phase, model.joint_rows, x.order)):
                i, size, kind, block = f.group_at(k, phase, model, x.first, x.order)
                p = i * L
                va, vb = model.row_bodies[2 * block] * D, f.slot(model.row_bodies[2 * block + 1], model.bodies) * D
                for j in range(size):
                    q = p + j * L
                    miss, dmiss, rho = -target[i + j], -dtarget[i + j], x.record[q + rho_]
                    for side in range(2):
                        J, v = q + side * D, va + side * (vb - va)
                        miss += f.dot(x.record, J, x.speed, v)
                        dmiss += f.dot(dx.record, J, x.speed, v) + f.dot(x.record, J, dx.speed, v)
                    x.record[q + trial_] = impulse[i + j] - rho * miss
                    dx.record[q + trial_] = dimpulse[i + j] - dx.record[q + rho_] * miss - rho * dmiss
                factor, slope, length, dlength, dbound = real(1.0), real(1.0), real(1.0), real(0.0), real(0.0)
                free = f.is_held(phase, kind, block, model.joint_rows, x.held)
                if kind == NORMAL and not free and x.record[p + trial_] <= 0.0:
                    factor = 0.0
                    slope = 0.0
                if kind == FRICTION and not free:
                    c = block - model.joint_rows
                    bound, found = x.limit[c] * impulse[i - 1], f.trial_length(x.record, p, size)
                    if found >= bound:
                        factor = bound / ti.max(found, 1e-30)
                    if bound <= 0.0 or found > bound * beyond:  # else it sticks, as in the adjoint
                        length = ti.max(found, 1e-30)
                        slope = factor
                        dbound = dx.limit[c] * impulse[i - 1] + x.limit[c] * dimpulse[i - 1]
                        for j in range(size):
                            q = p + j * L + trial_
                            dlength += x.record[q] * dx.record[q] / length
                for j in range(size):
                    q = p + j * L
                    trial, dtrial = x.record[q + trial_], dx.record[q + trial_]
                    after, dafter = factor * trial, slope * dtrial + (dbound - slope * dlength) / length * trial
                    change, dchange = after - impulse[i + j], dafter - dimpulse[i + j]
                    for side in range(2):
                        P, v = q + (2 + side) * D, va + side * (vb - va)
                        f.add(x.speed, v, change, x.record, P)
                        f.add(dx.speed, v, dchange, x.record, P)
                        f.add(dx.speed, v, change, dx.record, P)
                    impulse[i + j] = after
                    dimpulse[i + j] = dafter

    return SimpleNamespace(prepare=jvp_prepare, sweep=jvp_sweep)
