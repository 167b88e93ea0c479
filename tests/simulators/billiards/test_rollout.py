"""Tangents of a rollout of billiards are those of its steps; its motion is right in either precision."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.rollout import rollout

from .tables import table


@pytest.mark.gpu
def test_a_motion_is_the_same_in_either_precision() -> None:
    """Two balls collide and one of them hits a cushion; the final state is known."""
    case = table([[0.2, 0.5], [0.5, 0.5]], [[0.5, 0.0], [0.0, 0.0]], restitution=1.0, corners=([0.0, 0.0], [1.0, 1.0]))
    model, params, state = case
    final = rollout(model, params, state, steps=20, keep="final").final
    # They collide after 0.4 s. Then ball 1 travels 0.8 m: 0.45 m to the cushion, from which it returns at 0.35 m/s.
    np.testing.assert_allclose(final.position.data, [[0.4, 0.5], [0.95 - 0.7 * 0.35, 0.5]], atol=2e-6)
    final.position[1, 0].backward()
    assert state.position.grad is not None
    np.testing.assert_allclose(state.position.grad.data[:, 0], [-0.7, 0.0], atol=2e-5)
