"""Motion of rigid colliders: centre and rotation advance by velocity and angular velocity over a time step.

    c' = c + dt v     q' = q + dt omega (angle, in the plane)     q' = e(dt omega) q / |q| (quaternion, in space)

c centre [m], v velocity [m/s], omega angular velocity in the world's frame [rad/s]. A constant omega turns the body by
exactly |omega| dt a step, and q' is a unit quaternion. Adjoint:

    adj_c = adj_c'     adj_v = dt adj_c'     adj_q, adj_omega: see rotation.py and quaternion.py, with phi = dt omega

Source: Sola 2017, Quaternion kinematics for the error-state Kalman filter, section 4.6.
"""

from simphys.numerics import rotation
from simphys.numerics.element import element
from simphys.substep import per_element


@element
def move_collider(c, q, v, omega, h):
    return c + h * v, rotation.advance(q, h * omega)


@move_collider.adjoint
def adj_move_collider(c, q, v, omega, h, adj_c, adj_q):
    adj_rotation, adj_phi = rotation.adj_advance(q, h * omega, adj_q)
    return adj_c, adj_rotation, h * adj_c, h * adj_phi


MoveColliders = per_element(
    move_collider,
    over="colliders",
    own={"c": "position", "q": "rotation", "v": "velocity", "omega": "spin"},
    constant={"h": "dt"},
    results={"position": "c", "rotation": "q"},
)
"""Position [K, dim] and rotation [K, rotations] after a step with velocity [K, dim] and spin [K, spins]."""
