"""Dry friction of a joint, smooth where its rate changes sign.

    t = -(2 / pi) F atan(u / w)                                            [N m] or [N]

u rate of the joint [rad/s] or [m/s], F dry friction, w transition rate. It is Coulomb's, -F sign(u), except for rates
within some w: a joint at rest is damped by 2 F / (pi w), and creeps under a load below F rather than sticks. Adjoint,
for y = adj_t and q = (2 / pi) F / (w^2 + u^2) y:

    adj_F = t y / F     adj_w = u q     adj_u = -w q

Source of the smooth sign: Andersson, Soderberg, Bjorklund, Friction models for sliding dry, boundary and mixed
lubricated contacts, Tribology International 40 (2007), section 2.
"""

import numpy as np

from simphys.autograd.kernels.runtime import ti

from .element import element

PER_RIGHT_ANGLE = 2 / np.pi


@element
def rub(F, w, u):
    return -PER_RIGHT_ANGLE * F * ti.atan2(u, w)


@rub.adjoint
def adj_rub(F, w, u, y):
    q = PER_RIGHT_ANGLE * F / (w * w + u * u) * y
    return -PER_RIGHT_ANGLE * ti.atan2(u, w) * y, u * q, -w * q
