"""Row (l, m_a, m_b) and error of a joint: a direction in which body b is constrained, free or driven relative to a.

Each joint has a basis of a's frame, whose first vector is its axis, if it has one. A basis vector c, l = R_a c, makes a
row u = l.(v_a - v_b) + m_a.w_a - m_b.w_b (see rows.py) of each kind:

    LINE    m_a = r_a x l, m_b = r_b x l, with arms from either centre to one point. The impulse acts there on both,
            which conserves angular momentum. The point is the anchor of b, or that of a if b is the world: a
            slide may take a far from the world's anchor, and rows with long arms converge slowly. The error is l.e,
            e = (x_a + y_a) - (x_b + y_b) between the anchors, which lie at y_a, y_b from either centre, at p_a, p_b in
            either frame (the arms, joint_constraints.py). With s = 1 if b is the world, else 0,
            r_a = y_a - (1 - s) e, r_b = y_b + s e
    TURN    l = 0, m_a = m_b = R_a c, in the plane 1. The error is R_a c.E, in the plane the difference of angles
            theta_a + relative - theta_b, with E = 2 vec(q_a relative q_b*) for the sign of the quaternion that makes
            its scalar part positive
    ALIGN   the same with E = n_b x n_a, the joint's axis as seen by either body: rotation about the axis stays free

A revolute joint has all LINE rows, and in space all ALIGN rows except the one about its axis. A prismatic joint has all
LINE rows except the one along its axis, and TURN; a fixed joint has all rows. The omitted row is the free row of the
joint, which motors drive (joint_tables.py).

Adjoint of a LINE, for adjoints g of its results, with adj_ra = l x g_ma, adj_rb = l x g_mb:

    adj_l = g_l + g_ma x r_a + g_mb x r_b + g_err e      adj_e = g_err l - (1 - s) adj_ra + s adj_rb = adj_xa = -adj_xb
    adj_ya = adj_ra + adj_e     adj_yb = adj_rb - adj_e     adj_p = R^T adj_y
    adj_theta_a = l x adj_l + y_a x adj_ya               adj_theta_b = y_b x adj_yb

and of TURN and ALIGN, with g_m = g_ma + g_mb, V, W the vector and scalar part of that quaternion and adj_E = g_err l:

    adj_theta_a = l x (g_m + g_err E) +     TURN   W adj_E + V x adj_E        ALIGN   n_a x (adj_E x n_b)
    adj_theta_b =                           TURN  -W adj_E + V x adj_E        ALIGN   n_b x (n_a x adj_E)

The world has the orientation `still`, and reads as 0 otherwise. At the kink W = 0, where bodies are half a turn away
from the joint's orientation, the sign is positive.
Source: Catto 2009, Modeling and Solving Constraints (GDC); the adjoint is the transpose of the Jacobian.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.quaternion import conjugate, product, vector_part
from simphys.numerics.rotation import adj_cross, cross, matrix, moment

from ..rows import halves, join
from .joint_tables import ALIGN, LINE


@ti.func
def part_vector(part, q, k):
    """Return the k-th vector [dim] of a row's numbers (joint_tables.py): c, axis_a, axis_b."""
    dim = ti.static(2 if q.n == 1 else 3)
    return ti.Vector([part[dim * k + c] for c in ti.static(range(dim))])


@ti.func
def required_rotation(part, q):
    """Return the orientation of b's frame in a's that the joint requires."""
    return ti.Vector([part[3 * (2 if q.n == 1 else 3) + c] for c in ti.static(range(q.n))])


@ti.func
def relative_rotation(part, q_a, q_b):
    """Return the rotation from the actual frame of b to that required by the joint; its scalar part is positive."""
    Q = product(product(q_a / q_a.norm(), required_rotation(part, q_a)), conjugate(q_b / q_b.norm()))
    return ti.select(Q[0] >= 0, 1.0, -1.0) * Q


@ti.func
def misalignment(kind, part, q_a, q_b):
    """Return E."""
    E = 2 * vector_part(relative_rotation(part, q_a, q_b))
    if kind == ALIGN:
        E = (matrix(q_b) @ part_vector(part, q_b, 2)).cross(matrix(q_a) @ part_vector(part, q_a, 1))
    return E


@ti.func
def turn(kind, part, q_a, q_b):
    """Return m and the error of a rotational row."""
    if ti.static(q_a.n == 1):
        return ti.Vector([1.0]), (q_a + required_rotation(part, q_a) - q_b)[0]
    else:
        m = matrix(q_a) @ part_vector(part, q_a, 0)
        return m, m.dot(misalignment(kind, part, q_a, q_b))


@ti.func
def adj_turn_row(kind, part, q_a, q_b, g_m, g_error):
    """Return the adjoints of theta_a and theta_b of a rotational row."""
    if ti.static(q_a.n == 1):
        return ti.Vector([g_error]), ti.Vector([-g_error])
    else:
        R_a, R_b = matrix(q_a), matrix(q_b)
        m = R_a @ part_vector(part, q_a, 0)
        adj_E, Q = g_error * m, relative_rotation(part, q_a, q_b)
        across = vector_part(Q).cross(adj_E)
        adj_a, adj_b = across + Q[0] * adj_E, across - Q[0] * adj_E
        if kind == ALIGN:
            n_a, n_b = R_a @ part_vector(part, q_a, 1), R_b @ part_vector(part, q_b, 2)
            adj_a = n_a.cross(adj_E.cross(n_b))
            adj_b = n_b.cross(n_a.cross(adj_E))
        return m.cross(g_m + g_error * misalignment(kind, part, q_a, q_b)) + adj_a, adj_b


@ti.func
def line(part, arms, x, q_a, q_b):
    """Return l, y_a, y_b, e, r_a and r_b of a LINE; x is x_a - x_b, arms (p_a, p_b)."""
    R_a, s = matrix(q_a), part[part.n - 1]
    p_a, p_b = halves(arms)
    y_a, y_b = R_a @ p_a, matrix(q_b) @ p_b
    e = x + y_a - y_b
    return R_a @ part_vector(part, q_a, 0), y_a, y_b, e, y_a - (1 - s) * e, y_b + s * e


@ti.func
def row(kind, part, arms, x, q_a, q_b):
    """Return l, m_a, m_b and the error of a row; x is x_a - x_b."""
    direction, _, _, e, r_a, r_b = line(part, arms, x, q_a, q_b)
    m_a, m_b, error = moment(r_a, direction), moment(r_b, direction), direction.dot(e)
    if kind != LINE:
        m, angle = turn(kind, part, q_a, q_b)
        direction = 0.0 * x
        m_a = m
        m_b = m
        error = angle
    return direction, m_a, m_b, error


@ti.func
def adj_row(kind, part, arms, x, q_a, q_b, g_l, g_ma, g_mb, g_error):
    """Return the adjoints of x, theta_a, theta_b and arms."""
    direction, y_a, y_b, e, r_a, r_b = line(part, arms, x, q_a, q_b)
    s = part[part.n - 1]
    adj_l = g_l + cross(g_ma, r_a) + cross(g_mb, r_b) + g_error * e
    adj_ra, adj_rb = adj_cross(g_ma, direction), adj_cross(g_mb, direction)
    adj_e = g_error * direction - (1 - s) * adj_ra + s * adj_rb
    adj_ya, adj_yb = adj_ra + adj_e, adj_rb - adj_e
    adj_theta_a = moment(direction, adj_l) + moment(y_a, adj_ya)
    adj_theta_b = moment(y_b, adj_yb)
    adj_arms = join(matrix(q_a).transpose() @ adj_ya, matrix(q_b).transpose() @ adj_yb)
    if kind != LINE:
        adj_a, adj_b = adj_turn_row(kind, part, q_a, q_b, g_ma + g_mb, g_error)
        adj_e = 0.0 * x
        adj_theta_a = adj_a
        adj_theta_b = adj_b
        adj_arms = 0.0 * arms
    return adj_e, adj_theta_a, adj_theta_b, adj_arms
