"""Kick: changes of velocity by forces, torques, gravity and the gyroscopic torque."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.simulators.rigid.kick import Kick

from .free_bodies import bodies, kick_inputs


@pytest.mark.parametrize(
    ("dim", "integrator"), [(2, "semi_implicit_euler"), (3, "semi_implicit_euler"), (3, "variational")]
)
def test_every_element_of_the_jacobian_is_right(dim: int, integrator: str) -> None:
    model = bodies(dim, fixed=(1,), integrator=integrator)
    gradcheck(lambda *x: Kick.apply(model, 0.3, *x), tuple(kick_inputs(model).values()), tolerance=1e-8)


@pytest.mark.gpu
@pytest.mark.parametrize("dim", [2, 3])
def test_forces_change_velocities_and_a_fixed_body_keeps_its_own(dim: int) -> None:
    """m (v* - v) = h (m a + f), and in the frame of an unrotated body I (w* - w) = h tau."""
    model = bodies(dim, fixed=(1,), integrator="variational")
    given = kick_inputs(model)
    given["orientation"] = tensor(np.tile([0.0] if dim == 2 else [1.0, 0.0, 0.0, 0.0], (3, 1)))
    values = {name: value.data for name, value in given.items()}
    expected = 0.3 * np.hstack(
        [
            values["gravity"] + values["wrench"][:, :dim] / values["mass"][:, None],
            values["wrench"][:, dim:] / values["inertia"],
        ]
    )
    expected[1] = 0
    found = Kick.apply(model, 0.3, *given.values()).data - np.hstack([values["velocity"], values["angular_velocity"]])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_the_gyroscopic_torque_is_that_of_eulers_equations_to_first_order() -> None:
    """I dw/dt = -w x (I w) in the body frame; the explicit step differs by O(h^2)."""
    model = bodies(3)
    given = kick_inputs(model)
    given["wrench"], given["orientation"] = tensor(np.zeros((3, 6))), tensor(np.tile([1.0, 0.0, 0.0, 0.0], (3, 1)))
    w, moments = given["angular_velocity"].data, given["inertia"].data
    errors = []
    for h in (0.02, 0.01):
        explicit = w - h * np.cross(w, moments * w) / moments
        errors.append(abs(Kick.apply(model, h, *given.values()).data[:, 3:] - explicit).max())
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)
    assert errors[1] > 1e-6  # distinguishes the linearly implicit step from the explicit one
