"""A scene is simulated over another horizon than its own; the loss exists as far as that makes sense."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.autograd.errors import InputError

from ..helpers.rounding import assert_equal_but_for_rounding
from ..helpers.small_scenes import KNOTS, SINES, driven_square, oscillator, soft_square


@pytest.mark.parametrize("steps", [1, 7, 20, 50])
def test_a_rollout_over_another_horizon_is_the_same_motion(steps: int) -> None:
    scene = soft_square()
    longest, found = soft_square(time={"steps": 50}).rollout(), scene.rollout(steps=steps)
    assert found.horizon == steps and found.steps[-1] == steps
    np.testing.assert_array_equal(found.position, longest.position[: steps + 1])
    np.testing.assert_array_equal(found.final.velocity, longest.velocity[steps])
    nested = scene.rollout(steps=steps, mode="nested")
    assert nested.horizon == steps
    assert_equal_but_for_rounding(nested.position, found.position, ulps=50 * steps)


@pytest.mark.parametrize("control", [SINES, KNOTS])
def test_a_control_goes_on_beyond_the_horizon(control: dict[str, Any]) -> None:
    scene = driven_square(control)
    found = scene.rollout(steps=30)
    np.testing.assert_array_equal(found.position[:21], scene.rollout().position)
    assert scene.controls is not None
    signal = scene.controls.signal(30).data
    if control is KNOTS:
        assert np.ptp(signal[20:], axis=0).max() == 0.0


def test_a_short_horizon_within_a_memory_limit_keeps_the_states_of_its_observations(tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt", runtime={"memory": "100kB"})
    found = scene.rollout(steps=100)
    assert scene.observations is not None
    assert found.steps[-1] <= 100 and len(found.steps) <= 2 * np.sum(scene.observations.times <= 1.0)
    expected = oscillator(tmp_path / "seen.txt").rollout().position.data[found.steps]
    np.testing.assert_array_equal(found.position, expected)


def test_a_loss_that_needs_more_than_the_trajectory_holds_is_refused(tmp_path: Path) -> None:
    seen = oscillator(tmp_path / "seen.txt")
    assert seen.loss(seen.rollout(steps=500)).item() == seen.loss(seen.rollout()).item()  # the measurement is over
    message = r"must hold the states around all times of the measurement; found 101 states, from step 0 to 100"
    for use in (seen.loss, seen.residuals, seen.predict):
        with pytest.raises(InputError, match=message):
            use(seen.rollout(steps=100))
    aimed = soft_square()
    running = soft_square(loss={"terms": [{"kind": "running_sum", "field": "position", "target": [0.0, 0.0]}]})
    for scene in (aimed, running):
        for steps in (10, 30):
            with pytest.raises(
                InputError, match=rf"need the scene's horizon of 20 steps; found a trajectory of {steps} "
            ):
                scene.loss(scene.rollout(steps=steps))
        scene.loss(scene.rollout(steps=20))


@pytest.mark.parametrize("steps", [0, -3, 2.5, True, "100"])
def test_a_horizon_is_a_number_of_steps(steps: Any) -> None:
    with pytest.raises(InputError, match=r"Scene\.rollout, steps: is a number of time steps, at least 1; found"):
        soft_square().rollout(steps=steps)


def test_a_recording_that_ends_where_the_motion_starts_is_named(tmp_path: Path) -> None:
    (tmp_path / "seen.txt").write_text("0 1.0\n")
    with pytest.raises(InputError, match=r"seen\.txt: .* have a sample after the start.*Lower observations\.every"):
        oscillator(tmp_path / "seen.txt", time={"dt": 0.01, "duration": None})
