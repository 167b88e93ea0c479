"""Motors and damping along what joints leave free."""

from __future__ import annotations

import pytest

from simphys.autograd.gradcheck import gradcheck
from simphys.rigid import WORLD, Joint, RigidBodies
from simphys.rigid.motor import JointForce

from .free_bodies import bodies, leaf, state


def driven(dim: int) -> RigidBodies:
    """Motors on a hinge and on a slide to the world; a hinge without, and a fixed joint."""
    a, b = (0.3, 0.1, 0.2)[:dim], (-0.2, 0.4, 0.1)[:dim]
    axis = (0.6, 0.8) if dim == 2 else (2 / 3, -1 / 3, 2 / 3)
    hinge = None if dim == 2 else axis
    return bodies(
        dim,
        joints=(
            Joint("revolute", 0, 1, a, b, axis=hinge),
            Joint("fixed", 1, 2, b, a),
            Joint("prismatic", 2, WORLD, a, b, axis=axis, motor=True),
            Joint("revolute", 1, 2, b, a, axis=hinge, motor=True),
        ),
    )


@pytest.mark.parametrize("dim", [2, 3])
def test_every_element_of_the_jacobian_is_right(dim: int) -> None:
    model = driven(dim)
    inputs = *state(model), leaf(2, seed=1), leaf(2, seed=2, low=0.5), leaf(4, seed=3, low=0.5)
    gradcheck(lambda *x: JointForce.apply(model, *x), inputs, tolerance=1e-8)
