"""Shaking: the load on the links by the acceleration of the pivot, the first joint.

In the frame of a pivot with the acceleration A = (A_x, A_y) [m/s^2], x across and y against the direction of the angle
0, every mass has the additional weight -m A:

    f_i = -s_i (A_x cos x_i + A_y sin x_i)                                  [N m]

s first moment of each link and of all beyond it (moments.py) [kg m], x angle. Adjoint, for y = adj_f:

    adj_x_i = s_i (A_x sin x_i - A_y cos x_i) y_i     adj_s_i = -(A_x cos x_i + A_y sin x_i) y_i
    adj_A = -sum_i s_i (cos x_i, sin x_i) y_i

Source: d'Alembert; Landau and Lifshitz, Mechanics, section 5, problem 3.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.numerics.forward_mode import tangent_of
from simphys.substep import per_element


@element
def shake(x, s, A):
    return -s * (A[0] * ti.cos(x) + A[1] * ti.sin(x))


@shake.adjoint
def adj_shake(x, s, A, y):
    cosine, sine = ti.cos(x), ti.sin(x)
    adj_A = -ti.Vector([(s * cosine).dot(y), (s * sine).dot(y)])
    return s * (A[0] * sine - A[1] * cosine) * y, -(A[0] * cosine + A[1] * sine) * y, adj_A


jvp_shake = tangent_of(shake, "x", "s", "A")


Shake = per_element(shake, own={"x": "angle", "s": "first_moment", "A": "acceleration"}, results={"shaking": "x"})
"""Load [n] [N m] on links at these angles [n], by the acceleration [2] [m/s^2] of the pivot."""
