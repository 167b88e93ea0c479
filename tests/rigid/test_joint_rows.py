"""The rows of constraints that joints hold."""

from __future__ import annotations

import pytest

from simphys.autograd.gradcheck import gradcheck
from simphys.rigid import WORLD, Joint, RigidBodies
from simphys.rigid.joint_rows import JointRows

from .free_bodies import bodies, leaf


def chain(dim: int) -> RigidBodies:
    """A joint of each kind, the last one to the world; frames and axes are turned."""
    if dim == 2:
        return bodies(
            2,
            joints=(
                Joint("revolute", 0, 1, (0.3, 0.1), (-0.2, 0.4)),
                Joint("prismatic", 2, 1, (0.1, 0.2), (0.3, -0.1), axis=(0.6, 0.8), relative=(0.4,)),
                Joint("fixed", 2, WORLD, (0.2, -0.3), (0.5, 0.1), relative=(-0.7,)),
            ),
        )
    axis, relative = (2 / 3, -1 / 3, 2 / 3), (0.8, 0.4, -0.2, 0.4)
    return bodies(
        3,
        joints=(
            Joint("revolute", 0, 1, (0.3, 0.1, 0.2), (-0.2, 0.4, 0.1), axis=axis, relative=relative),
            Joint("prismatic", 2, 1, (0.1, 0.2, -0.1), (0.3, -0.1, 0.2), axis=axis, relative=relative),
            Joint("fixed", 2, WORLD, (0.2, -0.3, 0.1), (0.5, 0.1, 0.4), relative=relative),
        ),
    )


@pytest.mark.parametrize("dim", [2, 3])
def test_every_element_of_the_jacobian_is_right(dim: int) -> None:
    model = chain(dim)
    inputs = leaf(3, dim, seed=1), leaf(3, model.rotations, seed=2)
    gradcheck(lambda *x: JointRows.apply(model, *x), inputs, tolerance=1e-8)
