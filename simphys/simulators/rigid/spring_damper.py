"""Springs with dampers between a point of body a and a point of body b or of the world.

With r_a, r_b the arms from either centre to its point, d the vector from the point of a to that of b, and z its rate,

    d = (x_b + r_b) - (x_a + r_a)      z = (v_b + w_b x r_b) - (v_a + w_a x r_a)

the force f(d, z) of `simphys.numerics.spring` acts on a, and -f on b, at their points. Its adjoints adj_d and adj_z are
those for adj_f = g_a - g_b + h_a x r_a - h_b x r_b, where (g_a, h_a), (g_b, h_b) are the adjoints of force and torque
on a and b. The arm of a gets adj_ra = f x h_a - adj_d - adj_z x w_a, b's the opposite; adj_theta = r x adj_r and
adj_w_a = -r_a x adj_z. Tangents, with dr = dtheta x r:

    dd = dx_b + dr_b - dx_a - dr_a      dz = (dv_b + dw_b x r_b + w_b x dr_b) - (dv_a + dw_a x r_a + w_a x dr_a)

and that of the moment r x f is dr x f + r x df.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation, spring
from simphys.substep import Fields, routine

from . import rows
from .arrays import SETTING


@functools.cache
@no_type_check
def loops(real: Any, dim: int) -> SimpleNamespace:
    """Return the loops over springs, bodies [2 K] with anchors [2 K dim]; see rows.py. Forces are added to `wrench`."""
    at, rotate, f = (
        rows.functions(real, dim),
        rotation.functions(real, dim),
        SimpleNamespace(force=spring.spring_force, adj=spring.adj_spring_force, jvp=spring.jvp_spring_force),
    )
    vec = at.vec

    @ti.func
    def arm(model: ti.template(), end, x: ti.template(), body) -> vec:
        return rotate.matrix(at.rotation_of(x.orientation, body)) @ at.vec_at(model.springs.anchors, end * dim)

    @ti.func
    def rate(x: ti.template(), body, r: vec) -> vec:
        return at.vec_of(x.velocity, body) + rotate.cross(at.spin_of(x.angular_velocity, body), r)

    @ti.func
    def spring_damper(model: ti.template(), x: ti.template()):
        at.clear(x.wrench, model.bodies)
        for k in range(model.springs.count):
            i, j = model.springs.bodies[2 * k], model.springs.bodies[2 * k + 1]
            r_a, r_b = (
                arm(model, 2 * k, x, i),
                arm(model, 2 * k + 1, x, j),
            )
            d = at.vec_of(x.position, j) + r_b - at.vec_of(x.position, i) - r_a
            z = rate(x, j, r_b) - rate(x, i, r_a)
            F = f.force(d, z, x.spring_stiffness[k], x.spring_damping[k], x.spring_length[k])
            at.add_twist(x.wrench, i, F, rotate.moment(r_a, F))
            at.add_twist(x.wrench, j, -F, -rotate.moment(r_b, F))

    @ti.func
    def adj_spring_damper(model: ti.template(), x: ti.template(), adj_x: ti.template()):
        for s in range(model.springs.count):
            i, j = model.springs.bodies[2 * s], model.springs.bodies[2 * s + 1]
            r_a, r_b = (
                arm(model, 2 * s, x, i),
                arm(model, 2 * s + 1, x, j),
            )
            d = at.vec_of(x.position, j) + r_b - at.vec_of(x.position, i) - r_a
            z = rate(x, j, r_b) - rate(x, i, r_a)
            k, c, L = x.spring_stiffness[s], x.spring_damping[s], x.spring_length[s]
            F = f.force(d, z, k, c, L)

            h_a, h_b = at.angular(adj_x.wrench, i), at.angular(adj_x.wrench, j)
            g = at.linear(adj_x.wrench, i) - at.linear(adj_x.wrench, j)
            g += rotate.cross(h_a, r_a) - rotate.cross(h_b, r_b)
            adj_d, adj_z, adj_k, adj_c, adj_L = f.adj(d, z, k, c, L, g)
            w_a, w_b = at.spin_of(x.angular_velocity, i), at.spin_of(x.angular_velocity, j)
            adj_ra = rotate.adj_cross(h_a, F) - adj_d - rotate.adj_cross(w_a, adj_z)
            adj_rb = -rotate.adj_cross(h_b, F) + adj_d + rotate.adj_cross(w_b, adj_z)

            at.add_vec_of(adj_x.position, i, -adj_d)
            at.add_vec_of(adj_x.position, j, adj_d)
            at.add_turn_of(adj_x.orientation, x.orientation, i, rotate.moment(r_a, adj_ra))
            at.add_turn_of(adj_x.orientation, x.orientation, j, rotate.moment(r_b, adj_rb))
            at.add_vec_of(adj_x.velocity, i, -adj_z)
            at.add_vec_of(adj_x.velocity, j, adj_z)
            at.add_spin_of(adj_x.angular_velocity, i, -rotate.moment(r_a, adj_z))
            at.add_spin_of(adj_x.angular_velocity, j, rotate.moment(r_b, adj_z))
            adj_x.spring_stiffness[s] = adj_x.spring_stiffness[s] + adj_k
            adj_x.spring_damping[s] = adj_x.spring_damping[s] + adj_c
            adj_x.spring_length[s] = adj_x.spring_length[s] + adj_L

    @ti.func
    def jvp_rate(x: ti.template(), dx: ti.template(), body, r: vec, dr: vec) -> vec:
        drate = at.vec_of(dx.velocity, body) + rotate.cross(at.spin_of(dx.angular_velocity, body), r)
        return drate + rotate.cross(at.spin_of(x.angular_velocity, body), dr)

    @ti.func
    def jvp_spring_damper(model: ti.template(), x: ti.template(), dx: ti.template()):
        at.clear(dx.wrench, model.bodies)
        for s in range(model.springs.count):
            i, j = model.springs.bodies[2 * s], model.springs.bodies[2 * s + 1]
            r_a, r_b = (
                arm(model, 2 * s, x, i),
                arm(model, 2 * s + 1, x, j),
            )
            dr_a = rotate.cross(at.turn_of(x.orientation, dx.orientation, i), r_a)
            dr_b = rotate.cross(at.turn_of(x.orientation, dx.orientation, j), r_b)
            d = at.vec_of(x.position, j) + r_b - at.vec_of(x.position, i) - r_a
            dd = at.vec_of(dx.position, j) + dr_b - at.vec_of(dx.position, i) - dr_a
            z = rate(x, j, r_b) - rate(x, i, r_a)
            dz = jvp_rate(x, dx, j, r_b, dr_b) - jvp_rate(x, dx, i, r_a, dr_a)
            k, c, L = x.spring_stiffness[s], x.spring_damping[s], x.spring_length[s]
            dk, dc, dL = dx.spring_stiffness[s], dx.spring_damping[s], dx.spring_length[s]
            F, dF = f.force(d, z, k, c, L), f.jvp(d, z, k, c, L, dd, dz, dk, dc, dL)
            at.add_twist(dx.wrench, i, dF, rotate.moment(dr_a, F) + rotate.moment(r_a, dF))
            at.add_twist(dx.wrench, j, -dF, -rotate.moment(dr_b, F) - rotate.moment(r_b, dF))

    return SimpleNamespace(forward=spring_damper, adjoint=adj_spring_damper, tangent=jvp_spring_damper)


SpringDamper = routine(
    "SpringDamper",
    loops,
    Fields(
        given=(
            *("position", "orientation", "velocity", "angular_velocity"),
            *("spring_stiffness", "spring_damping", "spring_length"),
        ),
        results=("wrench",),
    ),
    SETTING,
    of_model=("bodies", "springs"),
)
"""Wrench [n, D] of all spring-dampers of a model."""
