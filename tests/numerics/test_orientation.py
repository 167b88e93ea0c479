"""Rotation matrices of orientations, on the host."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from simphys.numerics.orientation import matrices


def test_angles_turn_in_the_plane() -> None:
    found = matrices(np.array([[0.3], [-2.0]]))
    assert found.shape == (2, 2, 2)
    np.testing.assert_allclose(found[1] @ [1.0, 0.0], [np.cos(2.0), -np.sin(2.0)], rtol=1e-14)


def test_quaternions_of_any_length_turn_in_space() -> None:
    turns = Rotation.random(6, random_state=0)
    found = matrices(3.0 * np.roll(turns.as_quat(), 1, axis=1).reshape(2, 3, 4))
    np.testing.assert_allclose(found, turns.as_matrix().reshape(2, 3, 3, 3), atol=1e-14)
    about_z = matrices(np.array([np.cos(0.25), 0.0, 0.0, np.sin(0.25)]))
    np.testing.assert_allclose(about_z[:2, :2], matrices(np.array([0.5])), rtol=1e-14)
