"""Tangent of the sweeps over all rows (sweeps.py), along with their updates, where du = dJ V + J dV:

    dlambda^ = dlambda - drho (u - t) - rho (du - dt)       dV' = dV + dP Delta + P (dlambda' - dlambda)
    dlambda' = dlambda^ where free, 0 where separated;
    sliding, with b = mu lambda_n:     dlambda' = db e + b / |lambda^| (dlambda^ - e e.dlambda^)

Friction at the cone's edge counts as sticking, as in the adjoint. The tangent follows the sweeps, converged or not, and
so does the adjoint: they are transposes.
"""

from simphys.autograd.kernels.records import View
from simphys.autograd.kernels.runtime import ti

from .records import RHO, TRIAL, add_multiple, dot
from .sweeps import FRICTION, NORMAL, count_groups, group_at, is_held, target_offset, trial_length, velocities_of


@ti.func
def jvp_sweep(phase, model: ti.template(), x: ti.template(), dx: ti.template()):
    """Sweep over all groups as `sweep` does, with tangents; both `speed` are changed."""
    D, L = ti.static(x.speed.width, x.record.width)
    rho_, trial_ = ti.static(L + RHO, L + TRIAL)
    N = model.joint_rows + model.contacts * model.dim
    start = target_offset(phase, N)
    target, dtarget = ti.static(View(x.phase_target, start), View(dx.phase_target, start))
    impulse, dimpulse = ti.static(View(x.impulse, phase * N), View(dx.impulse, phase * N))
    for i in range(N):
        impulse[i] = 0.0
        dimpulse[i] = 0.0
    for _ in range(model.sweeps):
        for k in range(count_groups(phase, model.joint_rows, x.order)):
            i, size, kind, block = group_at(k, phase, model, x.first, x.order)
            p = i * L
            va, vb = velocities_of(block, model, D)
            for j in range(size):
                q = p + j * L
                miss, dmiss, rho = -target[i + j], -dtarget[i + j], x.record[q + rho_]
                for side in range(2):
                    J, v = q + side * D, va + side * (vb - va)
                    miss += dot(D, x.record, J, x.speed, v)
                    dmiss += dot(D, dx.record, J, x.speed, v) + dot(D, x.record, J, dx.speed, v)
                x.record[q + trial_] = impulse[i + j] - rho * miss
                dx.record[q + trial_] = dimpulse[i + j] - dx.record[q + rho_] * miss - rho * dmiss
            factor, slope, length, dlength, dbound = 1.0, 1.0, 1.0, 0.0, 0.0
            free = is_held(phase, kind, block, model.joint_rows, x.held)
            if kind == NORMAL and not free and x.record[p + trial_] <= 0.0:
                factor = 0.0
                slope = 0.0
            if kind == FRICTION and not free:
                c = block - model.joint_rows
                bound, found = x.limit[c] * impulse[i - 1], trial_length(x.record, p, size)
                if found >= bound:
                    factor = bound / ti.max(found, 1e-30)
                if bound <= 0.0 or found > bound * model.beyond:  # else it sticks, as in the adjoint
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
                    add_multiple(D, x.speed, v, change, x.record, P)
                    add_multiple(D, dx.speed, v, dchange, x.record, P)
                    add_multiple(D, dx.speed, v, change, dx.record, P)
                impulse[i + j] = after
                dimpulse[i + j] = dafter
