"""Order and records of the rows of a solve (sweeps.py): J, P = M^-1 J^T and rho of each active row.

    order [M + COUNTS]: three counts (active candidates; those at rest; those at rest that no impact reaches), then the
    active candidates in the order of the solve. record [N, RECORD]: for each row J and P of both bodies with their
    signs, rho, and temporary values.

Rows of inactive candidates are never read. Tangents: dd = dJ P + J dP and drho = -rho^2 dd, for friction the mean over
its rows, which share one rho.
"""

from simphys.autograd.kernels.runtime import ti

from ..contacts import islands
from ..contacts.islands import IMPACT, REST


def record_length(dim: int) -> int:
    """Return how many numbers the record of a row has."""
    return 4 * (3 if dim == 2 else 6) + 5


COUNTS = 3
"""Number of counts at the beginning of `order`."""
RHO, TRIAL, MISS, CHANGE, G = range(-5, 0)
"""Places of the numbers of a record behind J and P, from its end."""


@ti.func
def slot(body, n):
    """Return the index of the velocity of a body, or of the world."""
    return body if body >= 0 else n


@ti.func
def is_reached(block, bodies: ti.template(), first: ti.template()):
    """Return True if an impact of the step reaches a row of this block."""
    return islands.block_impact(block, bodies, first) >= 0


@ti.func
def entry(order: ti.template(), k):
    """Return an entry of `order`, which is an array of numbers, as an integer."""
    return ti.cast(order[k], ti.i32)


@ti.func
def sort_contacts(model: ti.template(), x: ti.template()):
    count = 0
    for kind in range(COUNTS):  # at rest and not reached, at rest and reached, impacts
        for c in range(model.contacts):
            state = x.active[c]
            belongs = state == IMPACT
            if kind < COUNTS - 1:
                belongs = state == REST and is_reached(model.joint_rows + c, model.row_bodies, x.first) == (kind == 1)
            if belongs:
                x.order[COUNTS + count] = c
                count += 1
        x.order[COUNTS - 1 - kind] = count


@ti.func
def dot(n: ti.template(), x: ti.template(), x0, y: ti.template(), y0):
    """Multiply two vectors of n numbers, at any places of arrays."""
    total = 0.0
    for e in range(n):
        total += x[x0 + e] * y[y0 + e]
    return total


@ti.func
def add_multiple(n: ti.template(), x: ti.template(), x0, factor, y: ti.template(), y0):
    """Compute x += factor y of such vectors."""
    for e in range(n):
        x[x0 + e] = x[x0 + e] + factor * y[y0 + e]


@ti.func
def row_at(k, model: ti.template(), order: ti.template()):
    """Return the number of the k-th active row, and that of its block."""
    i, block = k, k
    if k >= model.joint_rows:
        c = entry(order, COUNTS + (k - model.joint_rows) // model.dim)
        i, block = model.joint_rows + c * model.dim + (k - model.joint_rows) % model.dim, model.joint_rows + c
    return i, block


@ti.func
def put_directions(i, block, model: ti.template(), x: ti.template(), moved: ti.template()):
    """Write J and P of row i: those of x, or their tangents, where `moved` is dx and masses stand still."""
    dim, D, L = ti.static(model.dim, model.freedoms, x.record.width)
    spins, W = ti.static(D - dim, x.row.width)
    for side in range(2):
        body, sign, r = model.row_bodies[2 * block + side], 1.0 - 2.0 * side, i * W
        J, P, m = i * L + side * D, i * L + (2 + side) * D, (2 * i + side) * spins
        inverse = 0.0
        if body >= 0:
            inverse = x.inverse_mass[body]
        for e in range(dim):
            moved.record[J + e] = sign * moved.row[r + e]
            moved.record[P + e] = sign * inverse * moved.row[r + e]
        for e in range(spins):
            moved.record[J + dim + e] = sign * moved.moment[m + e]
            moved.record[P + dim + e] = sign * moved.spin_change[m + e]


@ti.func
def prepare(model: ti.template(), x: ti.template()):
    """Compute J, P and rho of all active rows."""
    dim, D, L = ti.static(model.dim, model.freedoms, x.record.width)
    rho_ = ti.static(L + RHO)
    for k in range(model.joint_rows + entry(x.order, 0) * dim):
        i, block = row_at(k, model, x.order)
        put_directions(i, block, model, x, x)
        p, d = i * L, 0.0
        for side in range(2):
            d += dot(D, x.record, p + side * D, x.record, p + (2 + side) * D)
        x.record[p + rho_] = 1.0 / d
    if ti.static(dim == 3):
        for k in range(entry(x.order, 0)):
            p = (model.joint_rows + entry(x.order, COUNTS + k) * dim + 1) * L + rho_
            rho = 2.0 / (1.0 / x.record[p] + 1.0 / x.record[p + L])
            x.record[p] = rho
            x.record[p + L] = rho


@ti.func
def adj_prepare(model: ti.template(), x: ti.template(), adj_x: ti.template()):
    dim, D, L = ti.static(model.dim, model.freedoms, x.record.width)
    spins, W, rho_ = ti.static(D - dim, x.row.width, L + RHO)
    for k in range(model.joint_rows + entry(x.order, 0) * dim):
        i, block = row_at(k, model, x.order)
        p = i * L
        adj_rho, rho = adj_x.record[p + rho_], x.record[p + rho_]
        if ti.static(dim == 3):  # noqa: SIM102 - decided when compiling
            if k >= model.joint_rows and (k - model.joint_rows) % dim > 0:
                other = 3 - 2 * ((k - model.joint_rows) % dim)  # rho of both friction rows depends on both d
                adj_rho = 0.5 * (adj_rho + adj_x.record[p + other * L + rho_])
        adj_d = -rho * rho * adj_rho
        for side in range(2):
            body, sign = model.row_bodies[2 * block + side], 1.0 - 2.0 * side
            r, g = i * W, (2 * i + side) * spins
            J, P = side * D, (2 + side) * D
            add_multiple(D, adj_x.record, p + J, adj_d, x.record, p + P)
            add_multiple(D, adj_x.record, p + P, adj_d, x.record, p + J)
            inverse = 0.0
            if body >= 0:
                inverse = x.inverse_mass[body]
                projection = 0.0
                for e in range(dim):
                    projection += sign * x.row[r + e] * adj_x.record[p + P + e]
                adj_x.inverse_mass[body] = adj_x.inverse_mass[body] + projection
            for e in range(dim):
                change = sign * (adj_x.record[p + J + e] + inverse * adj_x.record[p + P + e])
                adj_x.row[r + e] = adj_x.row[r + e] + change
            for e in range(spins):
                k_e = g + e
                adj_x.moment[k_e] = adj_x.moment[k_e] + sign * adj_x.record[p + J + dim + e]
                adj_x.spin_change[k_e] = adj_x.spin_change[k_e] + sign * adj_x.record[p + P + dim + e]


@ti.func
def jvp_prepare(model: ti.template(), x: ti.template(), dx: ti.template()):
    """Compute the tangents of J, P and rho of all active rows, after `prepare`."""
    dim, D, L = ti.static(model.dim, model.freedoms, x.record.width)
    W, rho_ = ti.static(x.row.width, L + RHO)
    for k in range(model.joint_rows + entry(x.order, 0) * dim):
        i, block = row_at(k, model, x.order)
        put_directions(i, block, model, x, dx)
        p, dd = i * L, 0.0
        for side in range(2):
            body, J, P = model.row_bodies[2 * block + side], p + side * D, p + (2 + side) * D
            if body >= 0:
                add_multiple(dim, dx.record, P, (1.0 - 2.0 * side) * dx.inverse_mass[body], x.row, i * W)
            dd += dot(D, dx.record, J, x.record, P) + dot(D, x.record, J, dx.record, P)
        dx.record[p + rho_] = dd
    for k in range(model.joint_rows + entry(x.order, 0) * dim):
        i, _ = row_at(k, model, x.order)
        p = i * L + rho_
        dd = dx.record[p]
        if ti.static(dim == 3):  # noqa: SIM102 - decided when compiling
            if k >= model.joint_rows and (k - model.joint_rows) % dim == 1:
                # rho of both friction rows depends on both d
                dd = 0.5 * (dd + dx.record[p + L])
                dx.record[p + L] = dd
        dx.record[p] = -x.record[p] * x.record[p] * dd
