"""Kick: changes of velocity by forces, torques and gravity."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.simulators.rigid.motion.kick import Kick

from ..free_bodies import bodies, kick_inputs


@pytest.mark.parametrize("dim", [2, 3])
def test_every_element_of_the_jacobian_is_right(dim: int) -> None:
    model = bodies(dim, fixed=(1,))
    gradcheck(lambda *x: Kick.apply(model, 0.3, *x), tuple(kick_inputs(model).values()), tolerance=1e-8)


@pytest.mark.gpu
@pytest.mark.parametrize("dim", [2, 3])
def test_forces_change_velocities_and_a_fixed_body_keeps_its_own(dim: int) -> None:
    """m (v* - v) = h (m a + f), and in the frame of an unrotated body I (w* - w) = h tau."""
    model = bodies(dim, fixed=(1,))
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
    before = np.hstack([values["velocity"], values["angular_velocity"]])
    found = Kick.apply(model, 0.3, *given.values()).data - before
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
