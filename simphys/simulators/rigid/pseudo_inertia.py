"""Inertia that a body of matter can have, by the log-Cholesky factor of its pseudo-inertia.

The pseudo-inertia of a body holds its mass m, its centre of mass c in its frame and its second moments there,

    P = integral of (r, 1) (r, 1)^T dm = [[S + m c c^T, m c], [m c^T, m]],      S = m A A^T

with A upper triangular, whose positive diagonal makes P positive definite: exactly the inertias of some matter. S has
the moments of inertia

    J = tr(S) 1 - S,    in the plane    J = m A^2 with the radius of gyration A

about c, of which none exceeds the sum of the two others. Unknowns are m and the diagonal of A by their logarithms, c
and the rest of A as they are. `gyration` has the numbers A_xx, A_yy, A_zz, A_xy, A_xz, A_yz [m].

Source: Rucker and Wensing 2022, Smooth parameterization of rigid-body inertia, IEEE Robotics and Automation Letters 7.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simphys.autograd import Tensor, ops
from simphys.simulator import Array, Record

from .joints.assembly import JointStart

DIAGONAL = {1: 1, 6: 3}
"""Count of numbers of a gyration that must be positive, by the count of all of them."""
MATTER = "no principal moment of matter exceeds the sum of the two others"
"""Property that all inertias in space share."""
ROUNDING = 1e-9
"""Relative tolerance of inertias of flat bodies."""


@dataclass(frozen=True)
class Gyration(Record):
    """Roots of the second moments of the matter of each body."""

    gyration: Tensor
    """Upper triangular root A of the second moments per mass [m], [n, 6]; in the plane the radius of gyration, [n, 1].

    Its numbers are A_xx, A_yy, A_zz, A_xy, A_xz, A_yz.
    """


@dataclass(frozen=True)
class StartAndGyration(JointStart, Gyration):
    """Both the start of joints and gyrations."""


def find_inertia(mass: Tensor, gyration: Tensor) -> Tensor:
    """Compute moments of inertia, [n, 1] in the plane, else full tensors (xx, yy, zz, yz, xz, xy), [n, 6] [kg m^2]."""
    if gyration.shape[1] == 1:
        return gyration * gyration * ops.reshape(mass, (-1, 1))
    a, b, c, d, e, f = [gyration[:, k] for k in range(6)]
    xx, yy, zz = a * a + d * d + e * e, b * b + f * f, c * c
    yz, xz, xy = f * c, e * c, d * b + e * f
    return ops.stack([mass * each for each in (yy + zz, xx + zz, xx + yy, -yz, -xz, -xy)], axis=1)


def find_gyration(mass: float, inertia: Array) -> Array | None:
    """Return the gyration of a body with these moments [1], [3] or full tensor [6]; None where no matter has them."""
    if len(inertia) == 1:
        return np.sqrt(inertia / mass)
    moments = second_moments(inertia) / mass
    if not np.linalg.eigvalsh(moments).min() > 1e-12 * np.trace(moments):
        return None
    flipped = np.linalg.cholesky(moments[::-1, ::-1])  # lower triangular; upper in the usual order
    A = flipped[::-1, ::-1]
    return np.array([A[0, 0], A[1, 1], A[2, 2], A[0, 1], A[0, 2], A[1, 2]])


def are_matter(inertia: Array) -> Array:
    """Tell which moments [..., 3] or full tensors [..., 6], all of them finite, may be those of matter, [...]."""
    moments = second_moments(inertia)
    least = np.linalg.eigvalsh(moments)[..., 0]
    found: Array = least >= -ROUNDING * np.trace(moments, axis1=-2, axis2=-1)
    return found


def second_moments(inertia: Array) -> Array:
    """Return S [..., 3, 3] of moments [..., 3] or full tensors [..., 6]."""
    J = as_matrix(inertia)
    found: Array = 0.5 * np.trace(J, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - J
    return found


def as_matrix(inertia: Array) -> Array:
    """Return the matrices [..., S, S] of moments [..., S] or full tensors [..., 6]."""
    if inertia.shape[-1] < 6:
        diagonal: Array = inertia[..., None] * np.eye(inertia.shape[-1])
        return diagonal
    return inertia[..., np.array([[0, 5, 4], [5, 1, 3], [4, 3, 2]])]
