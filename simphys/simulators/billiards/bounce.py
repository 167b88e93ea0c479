"""Bounce of a ball off a cushion, without friction: the normal velocity is reversed.

    v_k' = -c v_k                                                           [m/s]

k the axis across the cushion, c restitution [1]; the other component stays. Adjoint, for g = adj_v':

    adj_v_k = -c g_k        adj_c = -v_k g_k

Source: Newton's law of restitution.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element


@element
def bounce(v, c, side):
    return ti.Vector([ti.select(side < 2, -c, 1) * v[0], ti.select(side < 2, 1, -c) * v[1]])


@bounce.adjoint
def adj_bounce(v, c, side, adj_v):
    gv = ti.Vector([ti.select(side < 2, -c, 1) * adj_v[0], ti.select(side < 2, 1, -c) * adj_v[1]])
    return gv, -ti.select(side < 2, v[0] * adj_v[0], v[1] * adj_v[1])
