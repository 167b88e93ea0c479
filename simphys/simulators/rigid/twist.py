"""Vectors in one: twists and wrenches [D] have a linear part of `dim` components, and an angular one of 1 or 3.

Rows [W] have a linear part and two angular ones, arms [2 dim] two halves, frames [3 dim] three thirds.
"""

from simphys.autograd.kernels.runtime import ti


@ti.func
def part(s, begin: ti.template(), n: ti.template()):
    return ti.Vector([s[begin + c] for c in ti.static(range(n))])


@ti.func
def join(a, b):
    both = ti.Vector.zero(float, a.n + b.n)
    for c in ti.static(range(a.n)):
        both[c] = a[c]
    for c in ti.static(range(b.n)):
        both[a.n + c] = b[c]
    return both


@ti.func
def linear(s):
    return part(s, 0, s.n // 3 + 1)


@ti.func
def angular(s):
    return part(s, s.n // 3 + 1, s.n - s.n // 3 - 1)


@ti.func
def halves(s):
    return part(s, 0, s.n // 2), part(s, s.n // 2, s.n // 2)


@ti.func
def thirds(s):
    return part(s, 0, s.n // 3), part(s, s.n // 3, s.n // 3), part(s, s.n - s.n // 3, s.n // 3)


@ti.func
def split_row(row):
    """Return l, m_a and m_b."""
    spins = ti.static(1 if row.n == 4 else 3)
    dim = ti.static(row.n - 2 * spins)
    return part(row, 0, dim), part(row, dim, spins), part(row, dim + spins, spins)
