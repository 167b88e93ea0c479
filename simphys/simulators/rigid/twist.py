"""Twists and wrenches [D]: a linear part of `dim` components, and an angular one of 1 in the plane or 3 in space.

Rows [W] have a linear part and two angular ones."""

from simphys.autograd.kernels.runtime import ti


@ti.func
def linear(s):
    return ti.Vector([s[c] for c in ti.static(range(s.n // 3 + 1))])


@ti.func
def angular(s):
    return ti.Vector([s[c] for c in ti.static(range(s.n // 3 + 1, s.n))])


@ti.func
def join(v, w):
    if ti.static(v.n == 2):
        return ti.Vector([v[0], v[1], w[0]])
    else:
        return ti.Vector([v[0], v[1], v[2], w[0], w[1], w[2]])


@ti.func
def join_row(direction, m_a, m_b):
    if ti.static(direction.n == 2):
        return ti.Vector([direction[0], direction[1], m_a[0], m_b[0]])
    else:
        l = direction  # noqa: E741 - its symbol
        return ti.Vector([l[0], l[1], l[2], m_a[0], m_a[1], m_a[2], m_b[0], m_b[1], m_b[2]])


@ti.func
def split_row(row):
    """Return l, m_a and m_b."""
    if ti.static(row.n == 4):
        return ti.Vector([row[0], row[1]]), ti.Vector([row[2]]), ti.Vector([row[3]])
    else:
        parts = [ti.Vector([row[3 * k + c] for c in ti.static(range(3))]) for k in ti.static(range(3))]
        return parts[0], parts[1], parts[2]
