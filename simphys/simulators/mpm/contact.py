"""Contact with a rigid surface, which changes the velocity w of the material relative to it.

n is the surface's unit normal into the material, w_n = w.n. `separating` and `friction` remove a = min(w_n, 0) from
the normal velocity, so that material may leave; the others remove all of it, a = w_n. With y = w - a n:

    sticking            w' = 0
    slip, separating    w' = y
    friction            w' = k y,   k = max(1 + mu a / |y|, 0)                                     (Coulomb's law)

The normal impulse -a brakes the slip by at most mu times as much. Adjoint, for g = adj_w', t = y / |y|, h = g.t where
k > 0, else 0 (and k = 1, h = 0 without friction), and da/dw_n = 1, or 0 where material leaves:

    adj_y = k g + (1 - k) h t     adj_w = adj_y + c n            c = (mu h - n.adj_y) da/dw_n
    adj_mu = a h                  adj_n = c w - a adj_y

Conventions at the kinks: w_n = 0 counts as leaving, so w' = w has derivative 1 there. k = 0, which includes y = 0,
counts as sticking and has derivative 0. Source: Stomakhin et al. 2013, section 8 (collision with bodies).
"""

import functools
from types import SimpleNamespace
from typing import Any

from simphys.autograd.kernels.runtime import ti

TINY = 1e-30
"""Least slip [m/s] used as a divisor."""


@functools.cache
def functions(real: Any, dim: int, contact: str) -> SimpleNamespace:
    """The element functions of one of `collider.CONTACTS`, without branches, as these are slow to compile."""
    vec = ti.types.vector(dim, real)
    sticking, friction = contact == "sticking", contact == "friction"
    leaves = contact in ("separating", "friction")

    @ti.func
    def parts(w, n, mu):
        """Return a, y, k and t."""
        w_n = w.dot(n)
        a = ti.min(w_n, 0.0) if ti.static(leaves) else w_n
        y = w - a * n
        k, t = real(1.0), vec(0.0)
        if ti.static(friction):
            slip = ti.max(y.norm(), TINY)
            k, t = ti.max(1 + mu * a / slip, 0.0), y / slip
        return a, y, k, t

    @ti.func
    def velocity(w, n, mu):
        new = vec(0.0)
        if ti.static(not sticking):
            _, y, k, _ = parts(w, n, mu)
            new = k * y
        return new

    @ti.func
    def adj_velocity(w, n, mu, g):
        adj_w, adj_n, adj_mu = vec(0.0), vec(0.0), real(0.0)
        if ti.static(not sticking):
            a, _, k, t = parts(w, n, mu)
            h = ti.select(k > 0, g.dot(t), 0.0)
            adj_y = k * g + ((1 - k) * h) * t
            c = mu * h - n.dot(adj_y)
            if ti.static(leaves):
                c = ti.select(a < 0, c, 0.0)
            adj_w = adj_y + c * n
            adj_n = c * w - a * adj_y
            adj_mu = a * h
        return adj_w, adj_n, adj_mu

    @ti.func
    def jvp_velocity(w, n, mu, dw, dn, dmu):
        dnew = vec(0.0)
        if ti.static(not sticking):
            a, _, k, t = parts(w, n, mu)
            da = dw.dot(n) + w.dot(dn)
            if ti.static(leaves):
                da = ti.select(a < 0, da, 0.0)
            dy = dw - da * n - a * dn
            slowed = dmu * a + mu * da + (1 - k) * t.dot(dy)
            dnew = k * dy + ti.select(k > 0, slowed, 0.0) * t
        return dnew

    return SimpleNamespace(velocity=velocity, adj=adj_velocity, jvp=jvp_velocity)
