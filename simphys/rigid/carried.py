"""Moments of impacts in space, carried from the time of the impact to where velocities are kept.

A free body keeps its angular momentum L = A w, A = R diag(J) R^T, and A turns with it: at the time of an impact, when
it is A_t, its spin is A_t^-1 A w. So the spin w of a variational step, kept where forces act, meets a row of moment m
with the speed, and changes by an impulse of 1 by,

    m.(A_t^-1 A w) = m~.w,   m~ = A A_t^-1 m              A^-1 m = A^-1 A_t A^-1 m~

Rows hold m~ (contact_rows.py); the second is what they turn bodies by (mobility.py). Without it derivatives by the time
of the impact would miss the gyroscopic torque on what the impact adds, and be wrong however short the step is, as those
of steps of semi-implicit Euler are, which have the torque of their start. In the plane, and for equal moments, m~ = m.

Adjoint: that of A m and of A^-1 m, by m, by small turns of both orientations, and by J, see inertia.py.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from ..autograd.runtime import ti
from ..math import rotation
from . import inertia


@functools.cache
@no_type_check
def functions(real: Any) -> SimpleNamespace:
    """The element functions of a body in space, with matrices R where forces act and T at the time of the impact."""
    f, vec = inertia.functions(real, 3), ti.types.vector(3, real)
    mat = ti.types.matrix(3, 3, real)
    rotate = rotation.functions(real, 3)

    @ti.func
    def carried(R: mat, T: mat, J: vec, m: vec) -> vec:
        return f.apply(R, J, f.apply(T, 1 / J, m))

    @ti.func
    def adj_carried(R: mat, T: mat, J: vec, m: vec, g: vec):
        """By the turns of R and T, J and m."""
        by_J, by_spin, by_R = f.adj(R, J, f.apply(T, 1 / J, m), g)
        by_inverse, by_m, by_T = f.adj(T, 1 / J, m, by_spin)
        return by_R, by_T, by_J - by_inverse / (J * J), by_m

    @ti.func
    def turned(R: mat, T: mat, J: vec, m: vec) -> vec:
        return f.apply(R, 1 / J, f.apply(T, J, f.apply(R, 1 / J, m)))

    @ti.func
    def adj_turned(R: mat, T: mat, J: vec, m: vec, g: vec):
        """By the turns of R and T, J and m."""
        spin = f.apply(R, 1 / J, m)
        by_first, by_L, by_R = f.adj(R, 1 / J, f.apply(T, J, spin), g)
        by_J, by_spin, by_T = f.adj(T, J, spin, by_L)
        by_second, by_m, again_by_R = f.adj(R, 1 / J, m, by_spin)
        return by_R + again_by_R, by_T, by_J - (by_first + by_second) / (J * J), by_m

    return SimpleNamespace(
        carried=carried, adj_carried=adj_carried, turned=turned, adj_turned=adj_turned, matrix=rotate.matrix
    )
