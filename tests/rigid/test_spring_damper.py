"""Springs with dampers between points of bodies, or of a body and the world."""

from __future__ import annotations

import pytest

from simphys.autograd.gradcheck import gradcheck
from simphys.rigid import WORLD, RigidBodies, Spring
from simphys.rigid.spring_damper import SpringDamper

from .free_bodies import bodies, leaf, state


def sprung(dim: int) -> RigidBodies:
    """Two springs between the same bodies, one to the world."""
    a, b, c, d = (0.3, 0.1, 0.2), (-0.2, 0.4, 0.1), (0.1, -0.3, -0.1), (2.0, 1.5, -1.0)
    ends = ((0, 1, a, b), (1, 0, c, a), (1, WORLD, b, d))
    return bodies(dim, 2, springs=tuple([Spring(i, j, p[:dim], q[:dim]) for i, j, p, q in ends]))


@pytest.mark.parametrize("dim", [2, 3])
def test_every_element_of_the_jacobian_is_right(dim: int) -> None:
    model = sprung(dim)
    inputs = *state(model), *[leaf(3, seed=seed, low=0.5, high=2.0) for seed in range(3)]
    gradcheck(lambda *x: SpringDamper.apply(model, *x), inputs, tolerance=1e-8)
