"""The inverse masses and inertias that impulses meet."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.autograd.gradcheck import gradcheck
from simphys.rigid import RigidBodies
from simphys.rigid.mobility import Mobility

from .free_bodies import bodies, kick_inputs


@pytest.mark.parametrize("dim", [2, 3])
def test_every_element_of_the_jacobian_is_right(dim: int) -> None:
    model = bodies(dim, fixed=(1,))
    given = kick_inputs(model)
    inputs = given["orientation"], given["mass"], given["inertia"]
    gradcheck(lambda *x: Mobility.apply(model, *x), inputs, tolerance=1e-8)


def test_a_body_turns_by_the_moment_of_the_axis_that_it_is_pushed_about() -> None:
    """A quarter turn about z brings the body's first axis to the world's second."""
    model = RigidBodies(3, 0.1, ((), ()), fixed=(1,))
    quarter = np.array([np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)])
    mass, inertia = tensor([4.0, 1.0]), tensor([[2.0, 5.0, 10.0]] * 2)
    inverse_mass, inverse_inertia = Mobility.apply(model, tensor([quarter, quarter]), mass, inertia)
    np.testing.assert_allclose(inverse_mass.data, [0.25, 0.0])
    expected = [np.diag([1 / 5, 1 / 2, 1 / 10]), np.zeros((3, 3))]
    np.testing.assert_allclose(inverse_inertia.data.reshape(2, 3, 3), expected, atol=1e-15)
