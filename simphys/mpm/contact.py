"""What contact with a rigid surface makes of the velocity w of material relative to it.

n is the surface's unit normal into the material, w_n = w.n, w_t = w - w_n n. Where material leaves, w_n >= 0,
`separating` and `friction` let it go: w' = w. Else

    sticking    w' = 0                          (leaving material, too)
    slip        w' = w_t                        (leaving material, too)
    separating  w' = w_t
    friction    w' = w_t + mu w_n t   where |w_t| > -mu w_n, t = w_t / |w_t|; 0 else       (Coulomb's law)

as the pressure that takes -w_n away brakes the slip by at most mu times as much. Adjoint, for g = adj_w', in contact:

    slip, separating   adj_t = g                                    adj_wn = 0
    friction           adj_t = g + (mu w_n / |w_t|) (g - (g.t) t)   adj_wn = mu g.t     adj_mu = w_n g.t
    adj_w = adj_t + c n     adj_n = c w - w_n adj_t     c = adj_wn - n.adj_t

Conventions at the kinks: w_n = 0 leaves, so w' = w has derivative 1 there; |w_t| = -mu w_n, with it w_t = 0, sticks,
and has derivative 0. Source: Stomakhin et al. 2013, section 8 (collision with bodies).
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from ..autograd.runtime import ti


@functools.cache
@no_type_check
def functions(real: Any, dim: int, contact: str) -> SimpleNamespace:
    """The element functions of one of `collider.CONTACTS`."""
    vec = ti.types.vector(dim, real)
    sticking, friction = contact == "sticking", contact == "friction"
    leaves = contact in ("separating", "friction")

    @ti.func
    def touches(w_n: real):
        return w_n < 0 if ti.static(leaves) else True

    @ti.func
    def velocity(w: vec, n: vec, mu: real) -> vec:
        new, w_n = w, w.dot(n)
        if ti.static(sticking):
            new = vec(0.0)
        elif touches(w_n):
            new = w - w_n * n
            if ti.static(friction):
                slip = new.norm()
                new = (1 + mu * w_n / slip) * new if slip > -mu * w_n else vec(0.0)
        return new

    @ti.func
    def adj_velocity(w: vec, n: vec, mu: real, g: vec):
        adj_w, adj_n, adj_mu, w_n = g, vec(0.0), real(0.0), w.dot(n)
        if ti.static(sticking):
            adj_w = vec(0.0)
        elif touches(w_n):
            adj_t, adj_wn = g, real(0.0)
            if ti.static(friction):
                w_t = w - w_n * n
                slip = w_t.norm()
                adj_t = vec(0.0)
                if slip > -mu * w_n:
                    t = w_t / slip
                    along = g.dot(t)
                    adj_t = g + (mu * w_n / slip) * (g - along * t)
                    adj_wn = mu * along
                    adj_mu = w_n * along
            c = adj_wn - n.dot(adj_t)
            adj_w = adj_t + c * n
            adj_n = c * w - w_n * adj_t
        return adj_w, adj_n, adj_mu

    @ti.func
    def jvp_velocity(w: vec, n: vec, mu: real, dw: vec, dn: vec, dmu: real) -> vec:
        dnew, w_n = dw, w.dot(n)
        if ti.static(sticking):
            dnew = vec(0.0)
        elif touches(w_n):
            dw_n = dw.dot(n) + w.dot(dn)
            dw_t = dw - dw_n * n - w_n * dn
            dnew = dw_t
            if ti.static(friction):
                w_t = w - w_n * n
                slip = w_t.norm()
                dnew = vec(0.0)
                if slip > -mu * w_n:
                    t = w_t / slip
                    dnew = dw_t + (dmu * w_n + mu * dw_n) * t + (mu * w_n / slip) * (dw_t - t.dot(dw_t) * t)
        return dnew

    return SimpleNamespace(velocity=velocity, adj=adj_velocity, jvp=jvp_velocity)
