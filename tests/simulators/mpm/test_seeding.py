"""Even filling of bodies with particles."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.simulators.mpm.seeding import fill_ball, fill_box


@pytest.mark.parametrize("dim", [2, 3])
def test_the_particles_of_a_box_share_all_of_it_and_stand_in_the_middle_of_their_shares(dim: int) -> None:
    lower, upper = [0.1, 0.2, 0.3][:dim], [0.5, 0.43, 0.6][:dim]
    position, volume = fill_box(lower, upper, 0.1)
    assert len(position) == 4 * 2 * (3 if dim == 3 else 1)
    np.testing.assert_allclose(len(position) * volume, np.prod(np.subtract(upper, lower)))
    np.testing.assert_allclose(position.mean(axis=0), np.add(lower, upper) / 2)
    np.testing.assert_allclose(position.min(axis=0)[:2], [0.15, 0.2 + 0.23 / 4])


def test_a_box_thinner_than_the_spacing_has_one_layer() -> None:
    position, volume = fill_box([0.0, 0.0], [1.0, 0.01], 0.25)
    np.testing.assert_allclose(position[:, 1], 0.005)
    assert len(position) == 4 and volume == pytest.approx(0.0025)


@pytest.mark.parametrize(("dim", "whole"), [(2, np.pi * 0.3**2), (3, 4 / 3 * np.pi * 0.3**3)])
def test_a_ball_is_symmetric_about_its_centre_and_has_about_its_volume(dim: int, whole: float) -> None:
    centre = np.array([0.5, 0.4, 0.6][:dim])
    position, volume = fill_ball(centre.tolist(), 0.3, 0.02)
    assert np.all(np.linalg.norm(position - centre, axis=1) <= 0.3 + 1e-12)
    np.testing.assert_allclose(len(position) * volume, whole, rtol=0.02)
    assert {tuple(row) for row in np.round(position - centre, 9) + 0.0} == {
        tuple(row) for row in np.round(centre - position, 9) + 0.0
    }


def test_a_ball_smaller_than_the_spacing_has_no_particles() -> None:
    assert len(fill_ball([0.0, 0.0], 0.01, 1.0)[0]) == 0
