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
    def jvp_prepare(
        system: ti.template(), rows: ti.template(), solver: ti.template(), drows: ti.template(), dsolver: ti.template()
    ):  # fmt: skip
        """Compute the tangents of J, P and rho of all active rows, after `prepare`."""
        for k in range(system.NJ + solver.order[0] * dim):
            i, block = f.row_at(k, system.NJ, solver.order)
            p, dd = i * L, real(0.0)
            for side in range(2):
                body, sign, r = system.bodies[2 * block + side], real(1.0 - 2.0 * side), i * W
                J, P, m = p + side * D, p + (2 + side) * D, (2 * i + side) * spins
                inverse, dinverse = real(0.0), real(0.0)
                if body >= 0:
                    inverse = rows.inverse_mass[body]
                    dinverse = drows.inverse_mass[body]
                for e in range(dim):
                    dsolver.record[J + e] = sign * drows.row[r + e]
                    dsolver.record[P + e] = sign * (dinverse * rows.row[r + e] + inverse * drows.row[r + e])
                for e in range(spins):
                    dsolver.record[J + dim + e] = sign * drows.moment[m + e]
                    dsolver.record[P + dim + e] = sign * drows.spin_change[m + e]
                dd += f.dot(dsolver.record, J, solver.record, P) + f.dot(solver.record, J, dsolver.record, P)
            dsolver.record[p + rho_] = dd
        for k in range(system.NJ + solver.order[0] * dim):
            i, _ = f.row_at(k, system.NJ, solver.order)
            p = i * L + rho_
            dd = dsolver.record[p]
            if ti.static(dim == 3):  # noqa: SIM102 - decided when compiling
                if k >= system.NJ and (k - system.NJ) % dim == 1:  # rho of both friction rows depends on both d
                    dd = 0.5 * (dd + dsolver.record[p + L])
                    dsolver.record[p + L] = dd
            dsolver.record[p] = -solver.record[p] * solver.record[p] * dd

    @ti.func
    def jvp_sweep(
        phase,
        system: ti.template(),
        rows: ti.template(),
        contacts: ti.template(),
        solver: ti.template(),
        drows: ti.template(),
        dsolver: ti.template(),
    ):
        """Sweep over all groups as `sweep` does, with tangents; both `speed` are changed."""
        N = system.NJ + system.M * dim
        start = f.target_offset(phase, N)
        target, dtarget = ti.static(View(solver.phase_target, start), View(dsolver.phase_target, start))
        impulse, dimpulse = ti.static(View(solver.impulse, phase * N), View(dsolver.impulse, phase * N))
        for i in range(N):
            impulse[i] = 0.0
            dimpulse[i] = 0.0
        for _ in range(system.sweeps):
            for k in range(f.count_groups(phase, system.NJ, solver.order)):
                i, size, kind, block = f.group_at(k, phase, system, contacts.first, solver.order)
                p = i * L
                va, vb = system.bodies[2 * block] * D, f.slot(system.bodies[2 * block + 1], system.n) * D
                for j in range(size):
                    q = p + j * L
                    miss, dmiss, rho = -target[i + j], -dtarget[i + j], solver.record[q + rho_]
                    for side in range(2):
                        J, v = q + side * D, va + side * (vb - va)
                        miss += f.dot(solver.record, J, solver.speed, v)
                        dmiss += f.dot(dsolver.record, J, solver.speed, v) + f.dot(solver.record, J, dsolver.speed, v)
                    solver.record[q + trial_] = impulse[i + j] - rho * miss
                    dsolver.record[q + trial_] = dimpulse[i + j] - dsolver.record[q + rho_] * miss - rho * dmiss
                factor, slope, length, dlength, dbound = real(1.0), real(1.0), real(1.0), real(0.0), real(0.0)
                free = f.is_held(phase, kind, block, system.NJ, solver.held)
                if kind == NORMAL and not free and solver.record[p + trial_] <= 0.0:
                    factor = 0.0
                    slope = 0.0
                if kind == FRICTION and not free:
                    c = block - system.NJ
                    bound, found = rows.limit[c] * impulse[i - 1], f.trial_length(solver.record, p, size)
                    if found >= bound:
                        factor = bound / ti.max(found, 1e-30)
                    if bound <= 0.0 or found > bound * beyond:  # else it sticks, as in the adjoint
                        length = ti.max(found, 1e-30)
                        slope = factor
                        dbound = drows.limit[c] * impulse[i - 1] + rows.limit[c] * dimpulse[i - 1]
                        for j in range(size):
                            q = p + j * L + trial_
                            dlength += solver.record[q] * dsolver.record[q] / length
                for j in range(size):
                    q = p + j * L
                    trial, dtrial = solver.record[q + trial_], dsolver.record[q + trial_]
                    after, dafter = factor * trial, slope * dtrial + (dbound - slope * dlength) / length * trial
                    change, dchange = after - impulse[i + j], dafter - dimpulse[i + j]
                    for side in range(2):
                        P, v = q + (2 + side) * D, va + side * (vb - va)
                        f.add(solver.speed, v, change, solver.record, P)
                        f.add(dsolver.speed, v, dchange, solver.record, P)
                        f.add(dsolver.speed, v, change, dsolver.record, P)
                    impulse[i + j] = after
                    dimpulse[i + j] = dafter

    return SimpleNamespace(prepare=jvp_prepare, sweep=jvp_sweep)
