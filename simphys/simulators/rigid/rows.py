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
| contact_row, contact_target | [M, dim W], [M, dim] | the same of contacts: normal, then friction | ContactRows |
| limit, bounce | [M], [M] | coefficients of friction and of restitution of the pair | the same |
| jacobian | [N, 2 D] | J, coefficients of both bodies' velocities in the row: (l, m_a), (-l, -m_b) | Mobility |
| response | [N, 2 D] | P, changes of both bodies' velocities by an impulse of 1; 0 if fixed | the same |
| impulse | [PHASES, N] | lambda of each row, in each phase of the step | Solve, by phases.py |
| new, shift | [n, D] | v', w'; correction of the pose, sum of t dv, t dw over all impulses at times t | the same |
| state | | x' = x + h v' - shift, q' = advance(q, h w' - turn shift) | Drift; FreeDrift before the forces |

A row is a scalar constraint on velocities,

    u = l.(v_a - v_b) + m_a.w_a - m_b.w_b,

whose impulse lambda adds lambda l to the momentum of a and lambda m_a to its angular momentum, and subtracts lambda l
and lambda m_b from those of b. A point in direction l has m = moment(r, l); a rotational row has l = 0. The rows of all
joints come first, in order, then those of the candidates, in order.

Body WORLD = -1 is at rest at the origin: its position, spin and velocity read as 0, its orientation as the identity.

Functions of routines take their arrays `x`, `adj_x` and `dx`, and the constants of `model`, by the names in arrays.py.
Twists and wrenches [D] have a linear part of `dim` components, and an angular one of 1 or 3. Rows [W] have a linear
part and two angular ones, arms [2 dim] two halves, frames [3 dim] three thirds.
Derivatives by an orientation are often those by a small rotation in the world frame, adj_theta (see
numerics/rotation.py), which `add_turn_of` converts.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.rotation import adj_turn, jvp_turn


@ti.func
def read(a: ti.template(), start, n: ti.template()):
    """Return n numbers of an array, from any place on."""
    return ti.Vector([a[start + c] for c in ti.static(range(n))])


@ti.func
def put(a: ti.template(), start, r):
    for c in ti.static(range(r.n)):
        a[start + c] = r[c]


@ti.func
def add(a: ti.template(), start, r):
    for c in ti.static(range(r.n)):
        a[start + c] = a[start + c] + r[c]


@ti.func
def row_of(a: ti.template(), body):
    """Return the row of a body; 0 for the world."""
    r = ti.Vector.zero(float, a.width)
    if body >= 0:
        for c in ti.static(range(a.width)):
            r[c] = a[body * a.width + c]
    return r


@ti.func
def add_to_row(a: ti.template(), body, r):
    """Add to the row of a body; ignore the world."""
    if body >= 0:
        add(a, body * a.width, r)


@ti.func
def orientation_of(q: ti.template(), body):
    """Return the row of a body of q [n, R]; the identity for the world."""
    r = row_of(q, body)
    if ti.static(q.width == 4):  # noqa: SIM102 - decided when compiling
        if body < 0:
            r[0] = 1.0
    return r


@ti.func
def turn_of(q: ti.template(), dq: ti.template(), body):
    """Return the small rotation of a body due to the tangent of q; 0 for the world."""
    return jvp_turn(orientation_of(q, body), row_of(dq, body))


@ti.func
def add_turn_of(adj_q: ti.template(), q: ti.template(), body, adj_theta):
    """Add the adjoint of a small rotation of a body to that of its row of q; ignore the world."""
    add_to_row(adj_q, body, adj_turn(orientation_of(q, body), adj_theta))


@ti.func
def half_of(a: ti.template(), k, second):
    """Return the first or the second half of row k."""
    n = ti.static(a.width // 2)
    return read(a, (2 * k + second) * n, n)


@ti.func
def frame_of(a: ti.template(), c):
    """Return n, r_a and r_b of candidate c, or their adjoints or tangents."""
    n = ti.static(a.width // 3)
    at = 3 * n * c
    return read(a, at, n), read(a, at + n, n), read(a, at + 2 * n, n)


@ti.func
def put_frame(a: ti.template(), c, n, r_a, r_b):
    at = c * a.width
    put(a, at, n)
    put(a, at + n.n, r_a)
    put(a, at + 2 * n.n, r_b)


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
