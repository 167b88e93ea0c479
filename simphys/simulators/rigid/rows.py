"""Arrays that a step passes between sub-steps: their shapes, their meaning, and the sub-step that computes each.

n bodies, dim, S components of a spin, R of an orientation, D = dim + S, W = dim + 2 S; J joints with NJ rows, M contact
candidates (pairs of features that may touch) with dim rows each, N = NJ + dim M rows; A motors, K springs.

| array | shape | meaning | sub-step |
| --- | --- | --- | --- |
| gap | [M] | distance of two features along the normal, negative for an overlap [m] | TimeOfImpact; Contacts |
| frame | [M, 3 dim] | unit normal from b to a; arms r_a, r_b of the contact point from both centres [m] | the same |
| attitude | [M, 2 R] | orientations of bodies a and b at the time of the contact | TimeOfImpact |
| time | [M] | time of the contact within the step, tau [s] | the same |
| active | [M] | state of the contact in this step: inactive, at rest or impact; no gradient | the same |
| first | [n] | first impact that reaches a body, or -1; no gradient | the same, by islands.py |
| x_impact, q_impact | [n, dim], [n, R] | poses at that impact | SplitStep |
| fraction | [n] | fraction of the step before it, s | the same |
| wrench | [n, D] | sum of forces [N] and torques [N m] about the centre | SpringDamper, JointForce, CompliantContact |
| twist | [n, D] | velocity and angular velocity v*, w* after the forces, before the impulses | Kick |
| joint_row | [NJ, W] | l, m_a, m_b of the joint rows | JointRows |
| joint_target | [NJ] | required value of u [m/s], [rad/s]: -correction / h times the joint's error | the same |
| contact_row, contact_target | [dim M, W], [dim M] | the same of contacts: normal, then friction | ContactRows |
| limit, bounce | [M], [M] | coefficients of friction and of restitution of the pair | the same |
| inverse_mass | [n] | 1 / mass; 0 for a fixed body [1/kg] | Mobility |
| spin_change | [N, 2 S] | change of the spins of both bodies by an impulse of 1, A^-1 m; 0 if fixed | the same |
| moment | [N, 2 S] | coefficients of the spins in the row: m_a, m_b | the same |
| impulse | [PHASES, N] | lambda of each row, in each phase of the step | Solve, by phases.py |
| new, shift | [n, D] | v', w'; correction of the pose, sum of t dv, t dw over all impulses at times t | the same |
| state | | x' = x + h v' - shift, q' = advance(q, h w' - turn shift) | Drift; FreeDrift before the forces |

A row is a scalar constraint on velocities,

    u = l.(v_a - v_b) + m_a.w_a - m_b.w_b,

whose impulse lambda adds lambda l to the momentum of a and lambda m_a to its angular momentum, and subtracts lambda l
and lambda m_b from those of b. A point in direction l has m = moment(r, l); a rotational row has l = 0. The rows of all
joints come first, in order, then those of the candidates, in order.

Body WORLD = -1 is at rest at the origin: its position, spin and velocity read as 0, its orientation as the identity.

Loop functions (`loops(real, dim)` of each sub-step) are the forward, adjoint and tangent functions of routines. Their
arrays `x`, `adj_x` and `dx` go by the names in arrays.py, and so do the constants of `model`. Derivatives by an
orientation are often those by a small rotation in the world frame, adj_theta (see numerics/rotation.py), which
`add_turn_of` converts.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Tensor
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation as rotation_


@functools.cache
@no_type_check
def functions(real: Any, dim: int) -> SimpleNamespace:
    """Return reads and writes of vectors in flat arrays or views `a`; body -1 is the world."""
    spins = 1 if dim == 2 else 3
    rotations = 1 if dim == 2 else 4
    both = dim + spins
    turn, adj_turn = rotation_.functions(real, dim).jvp_turn, rotation_.functions(real, dim).adj_turn
    vec, spin, rotation = ti.types.vector(dim, real), ti.types.vector(spins, real), ti.types.vector(rotations, real)

    @ti.func
    def vec_at(a: ti.template(), start) -> vec:
        """Read dim elements from `start` on."""
        r = vec(0.0)
        for c in ti.static(range(dim)):
            r[c] = a[start + c]
        return r

    @ti.func
    def spin_at(a: ti.template(), start) -> spin:
        """Read S elements from `start` on."""
        r = spin(0.0)
        for c in ti.static(range(spins)):
            r[c] = a[start + c]
        return r

    @ti.func
    def rotation_at(a: ti.template(), start) -> rotation:
        """Read R elements from `start` on."""
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
    def vec_of(a: ti.template(), body) -> vec:
        """Read row `body` of [n, dim]; 0 for the world."""
        r = vec(0.0)
        if body >= 0:
            for c in ti.static(range(dim)):
                r[c] = a[body * dim + c]
        return r

    @ti.func
    def spin_of(a: ti.template(), body) -> spin:
        """Read row `body` of [n, S]; 0 for the world."""
        r = spin(0.0)
        if body >= 0:
            for c in ti.static(range(spins)):
                r[c] = a[body * spins + c]
        return r

    @ti.func
    def rotation_of(a: ti.template(), body) -> rotation:
        """Read row `body` of [n, R]; the identity for the world."""
        r = rotation(0.0)
        if ti.static(dim == 3):
            r[0] = 1.0
        if body >= 0:
            for c in ti.static(range(rotations)):
                r[c] = a[body * rotations + c]
        return r

    @ti.func
    def drotation_of(da: ti.template(), body) -> rotation:
        """Read the tangent of row `body` of [n, R]; 0 for the world."""
        r = rotation(0.0)
        if body >= 0:
            for c in ti.static(range(rotations)):
                r[c] = da[body * rotations + c]
        return r

    @ti.func
    def turn_of(a: ti.template(), da: ti.template(), body) -> spin:
        """Return the small rotation of row `body` of [n, R] due to the tangent; 0 for the world."""
        return turn(rotation_of(a, body), drotation_of(da, body))

    @ti.func
    def add_vec_of(a: ti.template(), body, r: vec):
        """Add to row `body` of [n, dim]; ignore the world."""
        if body >= 0:
            for c in ti.static(range(dim)):
                a[body * dim + c] = a[body * dim + c] + r[c]

    @ti.func
    def add_spin_of(a: ti.template(), body, r: spin):
        """Add to row `body` of [n, S]; ignore the world."""
        if body >= 0:
            for c in ti.static(range(spins)):
                a[body * spins + c] = a[body * spins + c] + r[c]

    @ti.func
    def linear(a: ti.template(), body) -> vec:
        """Read the linear part of row `body` of [n, D]: a velocity, a force; 0 for the world."""
        r = vec(0.0)
        if body >= 0:
            for c in ti.static(range(dim)):
                r[c] = a[body * both + c]
        return r

    @ti.func
    def angular(a: ti.template(), body) -> spin:
        """Read the angular part of row `body` of [n, D]: an angular velocity, a torque; 0 for the world."""
        r = spin(0.0)
        if body >= 0:
            for c in ti.static(range(spins)):
                r[c] = a[body * both + dim + c]
        return r

    @ti.func
    def add_twist(a: ti.template(), body, v: vec, w: spin):
        """Add to row `body` of [n, D]; ignore the world."""
        if body >= 0:
            for c in ti.static(range(dim)):
                a[body * both + c] = a[body * both + c] + v[c]
            for c in ti.static(range(spins)):
                a[body * both + dim + c] = a[body * both + dim + c] + w[c]

    @ti.func
    def add_rotation_of(a: ti.template(), body, r: rotation):
        """Add to row `body` of [n, R]; ignore the world."""
        if body >= 0:
            for c in ti.static(range(rotations)):
                a[body * rotations + c] = a[body * rotations + c] + r[c]

    @ti.func
    def add_turn_of(a: ti.template(), q: ti.template(), body, adj_theta: spin):
        """Add the adjoint of a small rotation of row `body` of q [n, R] to that of the row; ignore the world."""
        if body >= 0:
            add_rotation_of(a, body, adj_turn(rotation_of(q, body), adj_theta))

    @ti.func
    def clear(a: ti.template(), n):
        """Set n rows of [n, D] to 0."""
        for e in range(n * both):
            a[e] = 0.0

    return SimpleNamespace(
        vec=vec, spin=spin, rotation=rotation, spins=spins, rotations=rotations,
        vec_at=vec_at, spin_at=spin_at, rotation_at=rotation_at, put_vec=put_vec, put_spin=put_spin,
        put_rotation=put_rotation, add_vec=add_vec, add_spin=add_spin,
        vec_of=vec_of, spin_of=spin_of, rotation_of=rotation_of, add_vec_of=add_vec_of, add_spin_of=add_spin_of,
        linear=linear, angular=angular, add_twist=add_twist, drotation_of=drotation_of, turn_of=turn_of,
        add_rotation_of=add_rotation_of, add_turn_of=add_turn_of, clear=clear,
    )  # fmt: skip


def flatten(*arrays: Any) -> list[Any]:
    """Flatten arrays for the loops, each with at least one element, as kernels need some memory."""
    given = [each.data if isinstance(each, Tensor) else each for each in arrays]
    return [each.reshape(-1) if each.size else np.zeros(1, each.dtype) for each in given]
