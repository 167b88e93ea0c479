"""Order and records of the rows of a solve (sweeps.py), and products of rows with velocities.

    order [M + COUNTS]: three counts (active candidates; those at rest; those at rest that no impact reaches), then the
    active candidates in the order of the solve. record [N, NUMBERS]: for each row rho, and temporary values.

Rows of inactive candidates are never read.
"""

from simphys.autograd.kernels.runtime import ti

from ..contacts import islands
from ..contacts.islands import IMPACT, REST

COUNTS = 3
"""Number of counts at the beginning of `order`."""
NUMBERS = 5
"""Number of numbers of a record."""
RHO, TRIAL, MISS, CHANGE, G = range(NUMBERS)
"""Places of the numbers of a record."""


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
def velocities_of(block, model: ti.template()):
    """Return where the velocities of both bodies of a block are."""
    a, b = model.row_bodies[2 * block], slot(model.row_bodies[2 * block + 1], model.bodies)
    return a * model.freedoms, b * model.freedoms


@ti.func
def row_velocity(i, jacobian: ti.template(), speed: ti.template(), va, vb):
    """Return J V of row i; va and vb are the places of both bodies in `speed`."""
    D = ti.static(speed.width)
    return dot(D, jacobian, 2 * i * D, speed, va) + dot(D, jacobian, (2 * i + 1) * D, speed, vb)


@ti.func
def add_row(i, factor, row: ti.template(), speed: ti.template(), va, vb):
    """Add a multiple of row i, which is one of J or P, to the velocities of both bodies."""
    D = ti.static(speed.width)
    add_multiple(D, speed, va, factor, row, 2 * i * D)
    add_multiple(D, speed, vb, factor, row, (2 * i + 1) * D)


@ti.func
def add_velocities(i, factor, row: ti.template(), speed: ti.template(), va, vb):
    """Add a multiple of the velocities of both bodies to row i."""
    D = ti.static(speed.width)
    add_multiple(D, row, 2 * i * D, factor, speed, va)
    add_multiple(D, row, (2 * i + 1) * D, factor, speed, vb)


@ti.func
def row_at(k, model: ti.template(), order: ti.template()):
    """Return the number of the k-th active row, and that of its block."""
    i, block = k, k
    if k >= model.joint_rows:
        c = entry(order, COUNTS + (k - model.joint_rows) // model.dim)
        i, block = model.joint_rows + c * model.dim + (k - model.joint_rows) % model.dim, model.joint_rows + c
    return i, block


@ti.func
def prepare(model: ti.template(), x: ti.template()):
    """Compute rho of all active rows."""
    dim, D, L = ti.static(model.dim, model.freedoms, x.record.width)
    for k in range(model.joint_rows + entry(x.order, 0) * dim):
        i, _ = row_at(k, model, x.order)
        a, b = 2 * i * D, (2 * i + 1) * D
        x.record[i * L + RHO] = 1.0 / (dot(D, x.jacobian, a, x.response, a) + dot(D, x.jacobian, b, x.response, b))
    if ti.static(dim == 3):
        for k in range(entry(x.order, 0)):
            p = (model.joint_rows + entry(x.order, COUNTS + k) * dim + 1) * L + RHO
            rho = 2.0 / (1.0 / x.record[p] + 1.0 / x.record[p + L])
            x.record[p] = rho
            x.record[p + L] = rho


@ti.func
def adj_prepare(model: ti.template(), x: ti.template(), adj_x: ti.template()):
    dim, L, width = ti.static(model.dim, x.record.width, x.jacobian.width)
    for k in range(model.joint_rows + entry(x.order, 0) * dim):
        i, _ = row_at(k, model, x.order)
        p = i * L + RHO
        adj_rho, rho = adj_x.record[p], x.record[p]
        if ti.static(dim == 3):  # noqa: SIM102 - decided when compiling
            if k >= model.joint_rows and (k - model.joint_rows) % dim > 0:
                other = 3 - 2 * ((k - model.joint_rows) % dim)  # rho of both friction rows depends on both d
                adj_rho = 0.5 * (adj_rho + adj_x.record[p + other * L])
        adj_d = -rho * rho * adj_rho
        add_multiple(width, adj_x.jacobian, i * width, adj_d, x.response, i * width)
        add_multiple(width, adj_x.response, i * width, adj_d, x.jacobian, i * width)
