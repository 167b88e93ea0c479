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
| wrench | [n, D] | sum of forces [N] and torques [N m] about the centre | SpringWrench, JointWrench, ContactWrench |
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
from typing import Any

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.rotation import adj_turn, jvp_turn


def _accessors(kind: Any, size: int) -> SimpleNamespace:
    """Return functions that read, set and add vectors of this type at any place of an array."""

    @ti.func
    def read(a: ti.template(), start):
        r = kind(0.0)
        for c in ti.static(range(size)):
            r[c] = a[start + c]
        return r

    @ti.func
    def put(a: ti.template(), start, r):
        for c in ti.static(range(size)):
            a[start + c] = r[c]

    @ti.func
    def add(a: ti.template(), start, r):
        for c in ti.static(range(size)):
            a[start + c] = a[start + c] + r[c]

    return SimpleNamespace(read=read, put=put, add=add)


def _accessors_of_bodies(kind: Any, size: int, stride: int, begin: int = 0) -> SimpleNamespace:
    """Return functions that read, and add to, a part of a body's row of an array [n, stride]; 0 for the world."""

    @ti.func
    def read(a: ti.template(), body):
        r = kind(0.0)
        if body >= 0:
            for c in ti.static(range(size)):
                r[c] = a[body * stride + begin + c]
        return r

    @ti.func
    def add(a: ti.template(), body, r):
        if body >= 0:
            for c in ti.static(range(size)):
                a[body * stride + begin + c] = a[body * stride + begin + c] + r[c]

    return SimpleNamespace(read=read, add=add)


@functools.cache
def moments_of_bodies(real: Any, size: int) -> SimpleNamespace:
    """Return functions that read, and add to, the inertia of a body, which has so many numbers, and its `kind`."""
    kind = ti.types.vector(size, real)
    found = _accessors_of_bodies(kind, size, size)
    return SimpleNamespace(kind=kind, read=found.read, add=found.add)


@functools.cache
def functions(real: Any, dim: int) -> SimpleNamespace:
    """Return reads and writes of vectors in flat arrays or views `a`; body -1 is the world."""
    spins, rotations = (1, 1) if dim == 2 else (3, 4)
    both = dim + spins
    vec, spin, rotation = ti.types.vector(dim, real), ti.types.vector(spins, real), ti.types.vector(rotations, real)
    vecs, all_spins, all_rotations = _accessors(vec, dim), _accessors(spin, spins), _accessors(rotation, rotations)
    vec_of, spin_of = _accessors_of_bodies(vec, dim, dim), _accessors_of_bodies(spin, spins, spins)
    turned = _accessors_of_bodies(rotation, rotations, rotations)
    linear, angular = _accessors_of_bodies(vec, dim, both), _accessors_of_bodies(spin, spins, both, dim)

    @ti.func
    def rotation_of(a: ti.template(), body):
        """Read row `body` of [n, R]; the identity for the world."""
        r = turned.read(a, body)
        if ti.static(dim == 3):  # noqa: SIM102 - decided when compiling
            if body < 0:
                r[0] = 1.0
        return r

    @ti.func
    def turn_of(a: ti.template(), da: ti.template(), body):
        """Return the small rotation of row `body` of [n, R] due to the tangent; 0 for the world."""
        return jvp_turn(rotation_of(a, body), turned.read(da, body))

    @ti.func
    def add_twist(a: ti.template(), body, v, w):
        """Add to row `body` of [n, D]; ignore the world."""
        linear.add(a, body, v)
        angular.add(a, body, w)

    @ti.func
    def add_turn_of(a: ti.template(), q: ti.template(), body, adj_theta):
        """Add the adjoint of a small rotation of row `body` of q [n, R] to that of the row; ignore the world."""
        turned.add(a, body, adj_turn(rotation_of(q, body), adj_theta))

    return SimpleNamespace(
        vec=vec, spin=spin, rotation=rotation, spins=spins, rotations=rotations,
        vec_at=vecs.read, spin_at=all_spins.read, rotation_at=all_rotations.read, put_vec=vecs.put,
        put_spin=all_spins.put, put_rotation=all_rotations.put, add_vec=vecs.add, add_spin=all_spins.add,
        vec_of=vec_of.read, spin_of=spin_of.read, rotation_of=rotation_of, add_vec_of=vec_of.add,
        add_spin_of=spin_of.add, linear=linear.read, angular=angular.read, add_twist=add_twist,
        drotation_of=turned.read, turn_of=turn_of, add_rotation_of=turned.add, add_turn_of=add_turn_of,
    )  # fmt: skip
