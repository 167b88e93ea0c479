"""A motor that is too weak to lift the pendulum swings it up."""

from __future__ import annotations

import numpy as np

from simphys import optimize

from .recordings import load


def test_the_pendulum_ends_on_its_head_and_still() -> None:
    scene = load("swing_up")
    adj_rows = scene.params.mass.data * scene.params.gravity.data * scene.params.length.data
    objective = scene.objective()
    section = scene.config.optimizer
    result = optimize.minimize(objective, method=section.method, iterations=section.iterations)
    assert result.success and result.iterations < section.iterations / 2  # with room for another processor's rounding
    found = objective.scene_at(result.theta)
    torque = found.control()
    assert torque is not None and np.abs(torque.data).max() < 0.25 * adj_rows
    motion = found.rollout()
    assert abs(motion.final.angle.data[0] - np.pi) < 0.01 and abs(motion.final.rate.data[0]) < 0.02
    turns = np.flatnonzero(np.diff(np.sign(motion.rate.data[1:, 0])))
    assert turns.size >= 2  # back and forth before it gets there
