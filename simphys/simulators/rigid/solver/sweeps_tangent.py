"""Tangent of the sweeps over all rows (sweeps.py), along with their updates, where du = dJ V + J dV:

    dlambda^ = dlambda - drho (u - t) - rho (du - dt)       dV' = dV + dP Delta + P (dlambda' - dlambda)
    dlambda' = dlambda^ where free, 0 where separated;
    sliding, with b = mu lambda_n:     dlambda' = db e + b / |lambda^| (dlambda^ - e e.dlambda^)

Friction at the cone's edge counts as sticking, as in the adjoint. The tangent follows the sweeps, converged or not, and
so does the adjoint: they are transposes.
"""

from simphys.autograd.kernels.records import View
from simphys.autograd.kernels.runtime import ti

from .records import RHO, TRIAL, add_row, row_velocity, velocities_of
from .sweeps import FRICTION, NORMAL, count_groups, group_at, is_held, target_offset, trial_length


@ti.func
def jvp_sweep(phase, model: ti.template(), x: ti.template(), dx: ti.template()):
    """Sweep over all groups as `sweep` does, with tangents; both `speed` are changed."""
    L, N = ti.static(x.record.width), model.joint_rows + model.contacts * model.dim
    start = target_offset(phase, N)
    target, dtarget = ti.static(View(x.phase_target, start), View(dx.phase_target, start))
    impulse, dimpulse = ti.static(View(x.impulse, phase * N), View(dx.impulse, phase * N))
    for i in range(N):
        impulse[i] = 0.0
        dimpulse[i] = 0.0
    for _ in range(model.sweeps):
        for k in range(count_groups(phase, model.joint_rows, x.order)):
            i, size, kind, block = group_at(k, phase, model, x.first, x.order)
            va, vb = velocities_of(block, model)
            for r in range(i, i + size):
                miss, rho = row_velocity(r, x.jacobian, x.speed, va, vb) - target[r], x.record[r * L + RHO]
                dmiss = row_velocity(r, dx.jacobian, x.speed, va, vb) - dtarget[r]
                dmiss += row_velocity(r, x.jacobian, dx.speed, va, vb)
                x.record[r * L + TRIAL] = impulse[r] - rho * miss
                dx.record[r * L + TRIAL] = dimpulse[r] - dx.record[r * L + RHO] * miss - rho * dmiss
            factor, slope, length, dlength, dbound = 1.0, 1.0, 1.0, 0.0, 0.0
            free = is_held(phase, kind, block, model.joint_rows, x.held)
            if kind == NORMAL and not free and x.record[i * L + TRIAL] <= 0.0:
                factor = 0.0
                slope = 0.0
            if kind == FRICTION and not free:
                c = block - model.joint_rows
                bound, found = x.limit[c] * impulse[i - 1], trial_length(x.record, i, size)
                if found >= bound:
                    factor = bound / ti.max(found, 1e-30)
                if bound <= 0.0 or found > bound * model.beyond:  # else it sticks, as in the adjoint
                    length = ti.max(found, 1e-30)
                    slope = factor
                    dbound = dx.limit[c] * impulse[i - 1] + x.limit[c] * dimpulse[i - 1]
                    for r in range(i, i + size):
                        dlength += x.record[r * L + TRIAL] * dx.record[r * L + TRIAL] / length
            for r in range(i, i + size):
                trial, dtrial = x.record[r * L + TRIAL], dx.record[r * L + TRIAL]
                after, dafter = factor * trial, slope * dtrial + (dbound - slope * dlength) / length * trial
                change = after - impulse[r]
                add_row(r, change, x.response, x.speed, va, vb)
                add_row(r, dafter - dimpulse[r], x.response, dx.speed, va, vb)
                add_row(r, change, dx.response, dx.speed, va, vb)
                impulse[r] = after
                dimpulse[r] = dafter
