"""Springs with dampers between a point of body a and a point of body b or of the world.

With r_a, r_b the arms from either centre of mass to its point, r = R (p - c) for the point p and the centre c in the
frame of the body, d the vector from the point of a to that of b, and z its rate,

    d = (x_b + r_b) - (x_a + r_a)      z = (v_b + w_b x r_b) - (v_a + w_a x r_a)

the force f(d, z) of `simphys.numerics.spring` acts on a, and -f on b, at their points. Its adjoints adj_d and adj_z are
those for adj_f = g_a - g_b + h_a x r_a - h_b x r_b, where (g_a, h_a), (g_b, h_b) are the adjoints of force and torque
on a and b. The arm of a gets adj_ra = f x h_a - adj_d - adj_z x w_a, b's the opposite; adj_theta = r x adj_r and
adj_w_a = -r_a x adj_z, adj_p = R^T adj_r = -adj_c.

The world has the orientation `still`, and reads as 0 otherwise.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.numerics.rotation import adj_cross, adj_turn, cross, matrix, moment
from simphys.numerics.spring import adj_spring_force, spring_force
from simphys.substep import collect, per_element

from ..rows import angular, join, linear


@ti.func
def stretch(x_a, x_b, q_a, q_b, v_a, v_b, w_a, w_b, p_a, p_b):
    """Return r_a, r_b, d and z."""
    r_a, r_b = matrix(q_a) @ p_a, matrix(q_b) @ p_b
    return r_a, r_b, x_b + r_b - x_a - r_a, v_b + cross(w_b, r_b) - v_a - cross(w_a, r_a)


@element
def spring_damper(x_a, x_b, q_a, q_b, v_a, v_b, w_a, w_b, k, c, L, p_a, p_b, c_a, c_b, still):
    r_a, r_b, d, z = stretch(x_a, x_b, q_a, q_b + still, v_a, v_b, w_a, w_b, p_a - c_a, p_b - c_b)
    F = spring_force(d, z, k, c, L)
    return join(F, moment(r_a, F)), join(-F, -moment(r_b, F))


@spring_damper.adjoint
def adj_spring_damper(
    x_a, x_b, q_a, q_b, v_a, v_b, w_a, w_b, k, c, L, p_a, p_b, c_a, c_b, still, adj_wrench_a, adj_wrench_b
):
    r_a, r_b, d, z = stretch(x_a, x_b, q_a, q_b + still, v_a, v_b, w_a, w_b, p_a - c_a, p_b - c_b)
    F = spring_force(d, z, k, c, L)
    h_a, h_b = angular(adj_wrench_a), angular(adj_wrench_b)
    g = linear(adj_wrench_a) - linear(adj_wrench_b) + cross(h_a, r_a) - cross(h_b, r_b)
    adj_d, adj_z, adj_k, adj_c, adj_L = adj_spring_force(d, z, k, c, L, g)
    adj_ra = adj_cross(h_a, F) - adj_d - adj_cross(w_a, adj_z)
    adj_rb = adj_d + adj_cross(w_b, adj_z) - adj_cross(h_b, F)
    adj_qa, adj_qb = adj_turn(q_a, moment(r_a, adj_ra)), adj_turn(q_b, moment(r_b, adj_rb))
    adj_wa, adj_wb = -moment(r_a, adj_z), moment(r_b, adj_z)
    adj_pa, adj_pb = matrix(q_a).transpose() @ adj_ra, matrix(q_b + still).transpose() @ adj_rb
    return (
        -adj_d, adj_d, adj_qa, adj_qb, -adj_z, adj_z, adj_wa, adj_wb,
        adj_k, adj_c, adj_L, adj_pa, adj_pb, -adj_pa, -adj_pb,
    )  # fmt: skip


SpringDamper = per_element(
    spring_damper,
    over="springs",
    gathered={
        **{"x_a": ("position", "spring_ends.a"), "x_b": ("position", "spring_ends.b")},
        **{"q_a": ("orientation", "spring_ends.a"), "q_b": ("orientation", "spring_ends.b")},
        **{"v_a": ("velocity", "spring_ends.a"), "v_b": ("velocity", "spring_ends.b")},
        **{"w_a": ("angular_velocity", "spring_ends.a"), "w_b": ("angular_velocity", "spring_ends.b")},
        **{"c_a": ("centre_of_mass", "spring_ends.a"), "c_b": ("centre_of_mass", "spring_ends.b")},
    },
    own={
        **{"k": "spring_stiffness", "c": "spring_damping", "L": "spring_length"},
        **{"p_a": "spring_anchor_a", "p_b": "spring_anchor_b"},
    },
    of_model={"still": "spring_ends.still"},
    results={"spring_wrench_a": "model.freedoms", "spring_wrench_b": "model.freedoms"},
)
"""Wrenches [K, D] of all spring-dampers on their bodies a and b."""

SpringWrench = collect(
    "spring_wrench",
    parts={"spring_wrench_a": "spring_ends.a", "spring_wrench_b": "spring_ends.b"},
    over="springs",
    onto="bodies",
)
"""Sum [n, D] of these wrenches on each body."""
