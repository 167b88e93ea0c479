"""What a step passes from sub-step to sub-step: arrays, their layouts, and who fills which.

n bodies, dim, S components of a spin, R of an orientation, D = dim + S, W = dim + 2 S; J joints with NJ rows, M contact
candidates (pairs of features that may touch) with dim rows each, N = NJ + dim M rows; A motors, K springs.

| array | shape | meaning | sub-step |
| --- | --- | --- | --- |
| gap | [M] | distance of two features along the normal, negative where they overlap [m] | Meeting; geometry Contacts |
| frame | [M, 3 dim] | unit normal from b to a; arms r_a, r_b of the contact point from both centres [m] | the same |
| facing | [M, 2 R] | orientations of bodies a and b at the time of the contact | Meeting |
| time | [M] | of the contact within the step, tau [s] | the same |
| active | [M] | whether the contact counts in this step, and as what; no gradient | the same |
| first | [n] | the first impact that reaches a body, or -1; no gradient | the same, by islands.py |
| x_then, q_then | [n, dim], [n, R] | poses at that impact | Parting |
| part | [n] | of the step before it, s | the same |
| wrench | [n, D] | force [N] and torque [N m] about the centre; a sum | SpringDamper, JointForce, CompliantContact |
| twist | [n, D] | velocity and angular velocity v*, w* after the forces, before the impulses | Kick |
| row | [NJ, W] | l, m_a, m_b of the joints' rows | JointRows |
| target | [NJ] | what u has to become [m/s], [rad/s]: -correction / h times the joint's error | the same |
| row, target | [dim M, W], [dim M] | those of the contacts: normal, then one or two of friction | ContactRows |
| limit, bounce | [M], [M] | coefficient of friction, and of restitution, of the pair | the same |
| inverse_mass | [n] | 1 / mass; 0 of a fixed body [1/kg] | Mobility |
| turned | [N, 2 S] | what an impulse of 1 turns bodies a and b by, A^-1 m; 0 of a fixed body | the same |
| moment | [N, 2 S] | with which rows meet spins: m_a, m_b | the same |
| impulse | [ACTS, N] | lambda of each row, in each act of the step | Solve, by acts.py |
| twist, shift | [n, D] | v', w'; sum of t dv, t dw over all impulses, t their times: what positions lack | the same |
| state | | x' = x + h v' - shift, q' = advance(q, h w' - turn shift) | Drift |

A row is a scalar constraint on velocities,

    u = l.(v_a - v_b) + m_a.w_a - m_b.w_b,

with an impulse lambda that adds lambda l to the momentum of a and lambda m_a to its angular momentum, and takes
lambda l and lambda m_b from those of b. A point in direction l has m = moment(r, l); a row of turns has l = 0. First
come the rows of all joints in order, then those of the candidates in order.

Body WORLD = -1 stands still at the origin: its position, spin and velocity read as 0, its orientation as the identity.

Loop functions (`loops(real, dim)` of each sub-step: ti.funcs over arrays, which nested kernels and the fused loop call)
take each array that depends on the step as two arguments, the flat array `a: ti.template()` and `a0`, the place of its
first number: in fused loops most of them are parts of one. Adjoints of loops *add* to the adjoints of their inputs, and
give derivatives by an orientation as those by a small turn of the world's frame, adj_theta [n, S] (see math/rotation);
whoever has gathered them all makes adj_q of them; that of `facing` is likewise [M, 2 S]. Outputs' adjoints are read,
not cleared.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Tensor
from simphys.autograd.kernels.runtime import ti


@functools.cache
@no_type_check
def functions(real: Any, dim: int) -> SimpleNamespace:
    """Vectors in flat arrays `a` whose first number lies at `a0`; body -1 is the world."""
    spins = 1 if dim == 2 else 3
    rotations = 1 if dim == 2 else 4
    both = dim + spins
    vec, spin, rotation = ti.types.vector(dim, real), ti.types.vector(spins, real), ti.types.vector(rotations, real)

    @ti.func
    def vec_at(a: ti.template(), start) -> vec:
        """The dim numbers from `start` on."""
        r = vec(0.0)
        for c in ti.static(range(dim)):
            r[c] = a[start + c]
        return r

    @ti.func
    def spin_at(a: ti.template(), start) -> spin:
        """The S numbers from `start` on."""
        r = spin(0.0)
        for c in ti.static(range(spins)):
            r[c] = a[start + c]
        return r

    @ti.func
    def rotation_at(a: ti.template(), start) -> rotation:
        """The R numbers from `start` on."""
        r = rotation(0.0)
        for c in ti.static(range(rotations)):
            r[c] = a[start + c]
        return r

    @ti.func
    def put_vec(a: ti.template(), start, r: vec):
        for c in ti.static(range(dim)):
            a[start + c] = r[c]

    @ti.func
    def put_spin(a: ti.template(), start, r: spin):
        for c in ti.static(range(spins)):
            a[start + c] = r[c]

    @ti.func
    def put_rotation(a: ti.template(), start, r: rotation):
        for c in ti.static(range(rotations)):
            a[start + c] = r[c]

    @ti.func
    def add_vec(a: ti.template(), start, r: vec):
        for c in ti.static(range(dim)):
            a[start + c] = a[start + c] + r[c]

    @ti.func
    def add_spin(a: ti.template(), start, r: spin):
        for c in ti.static(range(spins)):
            a[start + c] = a[start + c] + r[c]

    @ti.func
    def vec_of(a: ti.template(), a0, body) -> vec:
        """Row `body` of [n, dim]; 0 of the world."""
        r = vec(0.0)
        if body >= 0:
            for c in ti.static(range(dim)):
                r[c] = a[a0 + body * dim + c]
        return r

    @ti.func
    def spin_of(a: ti.template(), a0, body) -> spin:
        """Row `body` of [n, S]; 0 of the world."""
        r = spin(0.0)
        if body >= 0:
            for c in ti.static(range(spins)):
                r[c] = a[a0 + body * spins + c]
        return r

    @ti.func
    def rotation_of(a: ti.template(), a0, body) -> rotation:
        """Row `body` of [n, R]; the identity of the world."""
        r = rotation(0.0)
        if ti.static(dim == 3):
            r[0] = 1.0
        if body >= 0:
            for c in ti.static(range(rotations)):
                r[c] = a[a0 + body * rotations + c]
        return r

    @ti.func
    def add_vec_of(a: ti.template(), a0, body, r: vec):
        """To row `body` of [n, dim]; nothing to the world."""
        if body >= 0:
            for c in ti.static(range(dim)):
                a[a0 + body * dim + c] = a[a0 + body * dim + c] + r[c]

    @ti.func
    def add_spin_of(a: ti.template(), a0, body, r: spin):
        """To row `body` of [n, S]; nothing to the world."""
        if body >= 0:
            for c in ti.static(range(spins)):
                a[a0 + body * spins + c] = a[a0 + body * spins + c] + r[c]

    @ti.func
    def linear(a: ti.template(), a0, body) -> vec:
        """The first part of row `body` of [n, D]: a velocity, a force; 0 of the world."""
        r = vec(0.0)
        if body >= 0:
            for c in ti.static(range(dim)):
                r[c] = a[a0 + body * both + c]
        return r

    @ti.func
    def angular(a: ti.template(), a0, body) -> spin:
        """The second part of row `body` of [n, D]: an angular velocity, a torque; 0 of the world."""
        r = spin(0.0)
        if body >= 0:
            for c in ti.static(range(spins)):
                r[c] = a[a0 + body * both + dim + c]
        return r

    @ti.func
    def add_twist(a: ti.template(), a0, body, v: vec, w: spin):
        """To row `body` of [n, D]; nothing to the world."""
        if body >= 0:
            for c in ti.static(range(dim)):
                a[a0 + body * both + c] = a[a0 + body * both + c] + v[c]
            for c in ti.static(range(spins)):
                a[a0 + body * both + dim + c] = a[a0 + body * both + dim + c] + w[c]

    return SimpleNamespace(
        vec=vec, spin=spin, rotation=rotation, spins=spins, rotations=rotations,
        vec_at=vec_at, spin_at=spin_at, rotation_at=rotation_at, put_vec=put_vec, put_spin=put_spin,
        put_rotation=put_rotation, add_vec=add_vec, add_spin=add_spin,
        vec_of=vec_of, spin_of=spin_of, rotation_of=rotation_of, add_vec_of=add_vec_of, add_spin_of=add_spin_of,
        linear=linear, angular=angular, add_twist=add_twist,
    )  # fmt: skip


def flat(*arrays: Any) -> list[Any]:
    """What loops take: each array in one dimension, at least one number long, as kernels need some memory."""
    given = [each.data if isinstance(each, Tensor) else each for each in arrays]
    return [each.reshape(-1) if each.size else np.zeros(1, each.dtype) for each in given]
