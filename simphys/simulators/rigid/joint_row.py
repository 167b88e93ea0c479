"""Row (l, m_a, m_b) and error of a joint: a direction in which body b is constrained, free or driven relative to a.

Each joint has a basis of a's frame, whose first vector is its axis, if it has one. A basis vector c, l = R_a c, makes a
row u = l.(v_a - v_b) + m_a.w_a - m_b.w_b (see rows.py) of each kind:

    LINE    m_a = r_a x l, m_b = r_b x l, with arms from either centre to one point. The impulse acts there on both,
            which conserves angular momentum. The point is the anchor of b, or that of a if b is the world: a
            slide may take a far from the world's anchor, and rows with long arms converge slowly. The error is l.e,
            e = (x_a + y_a) - (x_b + y_b) between the anchors, which lie at y_a, y_b from either centre. With s = 1 if
            b is the world, else 0, r_a = y_a - (1 - s) e, r_b = y_b + s e
    TURN    l = 0, m_a = m_b = R_a c, in the plane 1. The error is R_a c.E, in the plane the difference of angles
            theta_a + relative - theta_b, with E = 2 vec(q_a relative q_b*) for the sign of the quaternion that makes
            its scalar part positive
    ALIGN   the same with E = n_b x n_a, the joint's axis as seen by either body: rotation about the axis stays free

A revolute joint has all LINE rows, and in space all ALIGN rows except the one about its axis. A prismatic joint has all
LINE rows except the one along its axis, and TURN; a fixed joint has all rows. The omitted row is the free row of the
joint, which motors drive (joint_tables.py).

Adjoint of a LINE, for adjoints g of its results, with adj_ra = l x g_ma, adj_rb = l x g_mb:

    adj_l = g_l + g_ma x r_a + g_mb x r_b + g_err e      adj_e = g_err l - (1 - s) adj_ra + s adj_rb = adj_xa = -adj_xb
    adj_theta_a = l x adj_l + y_a x (adj_ra + adj_e)     adj_theta_b = y_b x (adj_rb - adj_e)

and of TURN and ALIGN, with g_m = g_ma + g_mb, V, W the vector and scalar part of that quaternion and adj_E = g_err l:

    adj_theta_a = l x (g_m + g_err E) +     TURN   W adj_E + V x adj_E        ALIGN   n_a x (adj_E x n_b)
    adj_theta_b =                           TURN  -W adj_E + V x adj_E        ALIGN   n_b x (n_a x adj_E)

Tangents, with dl = dtheta_a x l, dy = dtheta x y, de = dx_a + dy_a - dx_b - dy_b, dr_a = dy_a - (1 - s) de and
dr_b = dy_b + s de:

    LINE    dm = dr x l + r x dl      derror = dl.e + l.de
    TURN    dm = dtheta_a x m         derror = dm.E + m.dE,    dE = W (dtheta_a - dtheta_b) + (dtheta_a + dtheta_b) x V
    ALIGN   the same with             dE = (dtheta_b x n_b) x n_a + n_b x (dtheta_a x n_a)

At the kink W = 0, where bodies are half a turn away from the joint's orientation, the sign is positive.
Source: Catto 2009, Modeling and Solving Constraints (GDC); the adjoint is the transpose of the Jacobian.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti
from simphys.numerics import quaternion, rotation

from .joint_tables import ALIGN, LINE, numbers


@functools.cache
@no_type_check
def turns_in_plane(real: Any) -> SimpleNamespace:
    """Return m and error of a rotational row in the plane, and the adjoints of theta_a and theta_b."""
    one, Part, Pose = ti.types.vector(1, real), _part(real, 2), _pose(real, 2)

    @ti.func
    def turn(kind, part: Part, a: Pose, b: Pose):
        return one(1.0), a.q[0] + part.relative[0] - b.q[0]

    @ti.func
    def adj_turn(kind, part: Part, a: Pose, b: Pose, g_m: one, g_error: real):
        return one(g_error), one(-g_error)

    @ti.func
    def jvp_turn(kind, part: Part, a: Pose, b: Pose, da: one, db: one):
        return one(0.0), da[0] - db[0]

    return SimpleNamespace(turn=turn, adj=adj_turn, jvp=jvp_turn)


@functools.cache
@no_type_check
def turns_in_space(real: Any) -> SimpleNamespace:
    """Return m and error of a rotational row in space, and the adjoints of theta_a and theta_b."""
    vec, quat, f = ti.types.vector(3, real), ti.types.vector(4, real), quaternion.functions(real)
    Part, Pose = _part(real, 3), _pose(real, 3)

    @ti.func
    def relative_rotation(part: Part, a: Pose, b: Pose) -> quat:
        """Return the rotation from the actual frame of b to that required by the joint; its scalar part is positive."""
        Q = f.product(f.product(a.q / a.q.norm(), part.relative), f.conjugate(b.q / b.q.norm()))
        return ti.select(Q[0] >= 0, 1.0, -1.0) * Q

    @ti.func
    def misalignment(kind, part: Part, a: Pose, b: Pose) -> vec:
        """Return E."""
        E = 2 * f.vector_part(relative_rotation(part, a, b))
        if kind == ALIGN:
            E = (b.R @ part.axis_b).cross(a.R @ part.axis_a)
        return E

    @ti.func
    def turn(kind, part: Part, a: Pose, b: Pose):
        m = a.R @ part.c
        return m, m.dot(misalignment(kind, part, a, b))

    @ti.func
    def adj_turn(kind, part: Part, a: Pose, b: Pose, g_m: vec, g_error: real):
        m = a.R @ part.c
        adj_E = g_error * m
        Q = relative_rotation(part, a, b)
        across = f.vector_part(Q).cross(adj_E)
        adj_a, adj_b = across + Q[0] * adj_E, across - Q[0] * adj_E
        if kind == ALIGN:
            n_a, n_b = a.R @ part.axis_a, b.R @ part.axis_b
            adj_a = n_a.cross(adj_E.cross(n_b))
            adj_b = n_b.cross(n_a.cross(adj_E))
        return m.cross(g_m + g_error * misalignment(kind, part, a, b)) + adj_a, adj_b

    @ti.func
    def jvp_turn(kind, part: Part, a: Pose, b: Pose, da: vec, db: vec):
        m = a.R @ part.c
        dm, Q = da.cross(m), relative_rotation(part, a, b)
        dE = Q[0] * (da - db) + (da + db).cross(f.vector_part(Q))
        if kind == ALIGN:
            n_a, n_b = a.R @ part.axis_a, b.R @ part.axis_b
            dE = db.cross(n_b).cross(n_a) + n_b.cross(da.cross(n_a))
        return dm, dm.dot(misalignment(kind, part, a, b)) + m.dot(dE)

    return SimpleNamespace(turn=turn, adj=adj_turn, jvp=jvp_turn)


@functools.cache
@no_type_check
def functions(real: Any, dim: int) -> SimpleNamespace:
    """Return the element functions in `dim` dimensions: l, m_a, m_b and the error of a row, and their adjoint."""
    rotate = rotation.functions(real, dim)
    turns = turns_in_plane(real) if dim == 2 else turns_in_space(real)
    vec, spin, quat = (ti.types.vector(size, real) for size in (dim, rotate.spins, rotate.rotations))
    Part, Pose = _part(real, dim), _pose(real, dim)

    @ti.func
    def read(table: ti.template(), row) -> Part:
        """Read the numbers of a row."""
        at = row * ti.static(numbers(dim))
        return Part(
            c=vec([table[at + j] for j in ti.static(range(dim))]),
            anchor_a=vec([table[at + dim + j] for j in ti.static(range(dim))]),
            anchor_b=vec([table[at + 2 * dim + j] for j in ti.static(range(dim))]),
            axis_a=vec([table[at + 3 * dim + j] for j in ti.static(range(dim))]),
            axis_b=vec([table[at + 4 * dim + j] for j in ti.static(range(dim))]),
            relative=quat([table[at + 5 * dim + j] for j in ti.static(range(rotate.rotations))]),
            to_world=table[at + ti.static(numbers(dim) - 1)],
        )

    @ti.func
    def pose(x: vec, q: quat) -> Pose:
        return Pose(x=x, q=q, R=rotate.matrix(q))

    @ti.func
    def row(kind, part: Part, a: Pose, b: Pose):
        direction, m_a, m_b, error = vec(0.0), spin(0.0), spin(0.0), 0.0
        if kind == LINE:
            y_a, y_b = a.R @ part.anchor_a, b.R @ part.anchor_b
            e = a.x + y_a - b.x - y_b
            direction = a.R @ part.c
            m_a = rotate.moment(y_a - (1 - part.to_world) * e, direction)
            m_b = rotate.moment(y_b + part.to_world * e, direction)
            error = direction.dot(e)
        else:
            m, angle = turns.turn(kind, part, a, b)
            m_a = m
            m_b = m
            error = angle
        return direction, m_a, m_b, error

    @ti.func
    def adj_row(kind, part: Part, a: Pose, b: Pose, g_l: vec, g_ma: spin, g_mb: spin, g_error: real):
        """Return the adjoints of x_a (that of x_b is the opposite), theta_a and theta_b."""
        adj_x, adj_theta_a, adj_theta_b = vec(0.0), spin(0.0), spin(0.0)
        if kind == LINE:
            y_a, y_b = a.R @ part.anchor_a, b.R @ part.anchor_b
            e = a.x + y_a - b.x - y_b
            direction = a.R @ part.c
            r_a, r_b = y_a - (1 - part.to_world) * e, y_b + part.to_world * e
            adj_l = g_l + rotate.cross(g_ma, r_a) + rotate.cross(g_mb, r_b) + g_error * e
            adj_ra, adj_rb = rotate.adj_cross(g_ma, direction), rotate.adj_cross(g_mb, direction)
            adj_e = g_error * direction - (1 - part.to_world) * adj_ra + part.to_world * adj_rb
            adj_x = adj_e
            adj_theta_a = rotate.moment(direction, adj_l) + rotate.moment(y_a, adj_ra + adj_e)
            adj_theta_b = rotate.moment(y_b, adj_rb - adj_e)
        else:
            adj_a, adj_b = turns.adj(kind, part, a, b, g_ma + g_mb, g_error)
            adj_theta_a = adj_a
            adj_theta_b = adj_b
        return adj_x, adj_theta_a, adj_theta_b

    @ti.func
    def jvp_row(kind, part: Part, a: Pose, b: Pose, dx: vec, da: spin, db: spin):
        """Return the tangents of a row from those of x_a - x_b, theta_a and theta_b."""
        dl, dm_a, dm_b, derror = vec(0.0), spin(0.0), spin(0.0), real(0.0)
        if kind == LINE:
            y_a, y_b, direction = a.R @ part.anchor_a, b.R @ part.anchor_b, a.R @ part.c
            dy_a, dy_b = rotate.cross(da, y_a), rotate.cross(db, y_b)
            e, de = a.x + y_a - b.x - y_b, dx + dy_a - dy_b
            r_a, r_b = y_a - (1 - part.to_world) * e, y_b + part.to_world * e
            dr_a, dr_b = dy_a - (1 - part.to_world) * de, dy_b + part.to_world * de
            dl = rotate.cross(da, direction)
            dm_a = rotate.moment(dr_a, direction) + rotate.moment(r_a, dl)
            dm_b = rotate.moment(dr_b, direction) + rotate.moment(r_b, dl)
            derror = dl.dot(e) + direction.dot(de)
        else:
            dm, dangle = turns.jvp(kind, part, a, b, da, db)
            dm_a = dm
            dm_b = dm
            derror = dangle
        return dl, dm_a, dm_b, derror

    return SimpleNamespace(read=read, pose=pose, row=row, adj=adj_row, jvp=jvp_row)


@functools.cache
@no_type_check
def _part(real: Any, dim: int) -> Any:
    """Return the struct that describes a row: constants in the frames of the bodies."""
    vec, quat = ti.types.vector(dim, real), ti.types.vector(1 if dim == 2 else 4, real)
    return ti.types.struct(c=vec, anchor_a=vec, anchor_b=vec, axis_a=vec, axis_b=vec, relative=quat, to_world=real)


@functools.cache
@no_type_check
def _pose(real: Any, dim: int) -> Any:
    """Return the struct of a body's pose."""
    vec, quat = ti.types.vector(dim, real), ti.types.vector(1 if dim == 2 else 4, real)
    return ti.types.struct(x=vec, q=quat, R=ti.types.matrix(dim, dim, real))
