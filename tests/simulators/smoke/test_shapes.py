"""Signed distances of shapes on a grid."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.simulators.smoke.model import Smoke
from simphys.simulators.smoke.shapes import coordinates, distance, fraction_inside

MODEL = Smoke((5, 4), spacing=0.2, dt=0.1)


def test_the_distance_of_a_ball_is_exact_and_its_share_smooth() -> None:
    phi = distance(MODEL, [0.5, 0.4], 0.3)
    x, y = coordinates(MODEL)
    np.testing.assert_allclose(phi, np.hypot(x - 0.5, y - 0.4) - 0.3, atol=1e-12)
    np.testing.assert_array_equal(fraction_inside(np.array([-0.1, 0.0, 0.1]), MODEL.spacing), [1.0, 0.5, 0.0])


def test_the_distance_of_an_ellipse_is_zero_at_its_surface_with_slope_one() -> None:
    fine = Smoke((200, 200), spacing=0.01, dt=0.1)
    phi = distance(fine, [1.0, 1.0], [0.6, 0.3])
    slope = np.hypot(*np.gradient(phi, fine.spacing))
    near_surface = abs(phi) < 0.5 * fine.spacing
    assert near_surface.sum() > 100
    np.testing.assert_allclose(slope[near_surface], 1.0, atol=0.05)
    x, y = coordinates(fine)
    np.testing.assert_array_equal(phi < 0, ((x - 1) / 0.6) ** 2 + ((y - 1) / 0.3) ** 2 < 1)


@pytest.mark.parametrize("radii", [0.25, [0.2, 0.3]])
def test_it_can_be_differentiated_by_position_and_size(radii: float | list[float]) -> None:
    centre, size = tensor([0.41, 0.37], requires_grad=True), tensor(radii, requires_grad=True)

    def two(c: Tensor, r: Tensor) -> Tensor:
        joined: Tensor = np.minimum(distance(MODEL, c, r), distance(MODEL, c + 0.4, 0.1))
        return joined

    gradcheck(two, (centre, size), tolerance=1e-7)
    np.testing.assert_allclose(distance(MODEL, centre, size).data, distance(MODEL, centre.data, size.data))
