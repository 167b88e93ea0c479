"""Multiple shooting: right derivatives, gaps that close, and the truth behind many Lyapunov times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simphys
from simphys.autograd.errors import InputError
from simphys.experiment.shooting import Shooting, close_gaps

from ..helpers.small_scenes import build
from .test_several import tables

SCENES = Path(__file__).resolve().parents[2] / "scenes"
INVERTED = (
    *("geometry.length=[0.14, 0.1]", "time.dt=0.0025", "unknowns.damping.scale=1e-4"),
    *("observations.channels.0.sigma=1e-3", "observations.channels.1.sigma=1e-3"),
)
"""A double pendulum of short bars, released upside down, seen to 1 mrad: 16 Lyapunov times in 5 s."""
BAR, FRICTION = [0.62, 5e-4], [2e-4, 1e-4]
"""Mass and inertia of the second bar [kg], [kg m^2], and the damping of the joints [N m s]."""


def double(file: Path, bar: list[float], damping: list[float], angle: list[float], rate: list[float]) -> simphys.Scene:
    mass, inertia = bar
    material = [f"material.mass=[1.0, {mass}]", f"material.inertia=[1.6e-3, {inertia}]", f"material.damping={damping}"]
    values = [*material, f"state.angle={angle}"]
    given = [f"observations.file={file}", *INVERTED, *values, f"state.rate={rate}"]
    return simphys.load_scene(SCENES / "pendulum" / "double.toml", [*given, "optimizer.horizon=shooting"])


def inverted(folder: Path, end: float, seed: int) -> simphys.Scene:
    """A recording of a motion whose values are BAR and FRICTION, and 3, -3 at rest, and starts 30 % off."""
    times, file, random = 0.01 * np.arange(1, round(end / 0.01) + 1), folder / "seen.txt", np.random.default_rng(seed)
    columns = np.column_stack([0 * times, times, 0 * times, 0 * times])
    np.savetxt(file, columns)
    true = double(file, BAR, FRICTION, [3.0, -3.0], [0.0, 0.0])
    columns[:, 2:] = true.predict(true.rollout()).data + 1e-3 * random.standard_normal((len(times), 2))
    np.savetxt(file, columns)
    wrong = (np.array([*BAR, *FRICTION]) * (1 + 0.3 * random.choice([-1, 1], 4))).tolist()
    angle = np.array([3.0, -3.0]) + 0.1 * random.choice([-1, 1], 2)
    return double(file, wrong[:2], wrong[2:], angle.tolist(), [0.3, -0.3])


def test_the_jacobian_of_segments_and_gaps_is_right(tmp_path: Path) -> None:
    shooting = Shooting(inverted(tmp_path, 0.4, 0).objective())
    x = np.concatenate([shooting.objective.start, shooting.guess_starts().reshape(-1)])
    shooting.weight = 3.0
    assert shooting.count > 5 and x.size == 8 + 4 * (shooting.count - 1)
    found, residuals = shooting.jacobian(x), shooting.residuals(x)
    assert found.shape == (residuals.size, x.size)
    for place in (0, 1, 3, 5, 8, 14, x.size - 1):
        step = np.zeros(x.size)
        step[place] = 1e-6
        expected = (shooting.residuals(x + step) - shooting.residuals(x - step)) / 2e-6
        rounding = max(1e-6 * np.abs(expected).max(), 1e-5)  # of residuals of some 100, over a difference of 2e-6
        np.testing.assert_allclose(found[:, place], expected, rtol=1e-5, atol=rounding)


def test_starts_of_segments_are_guessed_from_what_is_seen_and_from_its_change(tmp_path: Path) -> None:
    scene = inverted(tmp_path, 1.0, 0)
    true = double(tmp_path / "seen.txt", BAR, FRICTION, [3.0, -3.0], [0.0, 0.0])
    states = true.rollout().states.arrays()
    shooting = Shooting(scene.objective())
    guess = shooting.guess_starts() * shooting.scale
    for place, name in enumerate(["angle", "rate"]):
        found = guess[:, 2 * place : 2 * place + 2]
        expected = states[name][shooting.firsts[1:]]
        np.testing.assert_allclose(found, expected, atol=[0.01, 0.1][place] * np.abs(expected).max())


def test_segments_without_gaps_are_the_whole_motion(tmp_path: Path) -> None:
    scene = inverted(tmp_path, 0.4, 0)
    objective = scene.objective()
    shooting = Shooting(objective)
    shooting.guess_starts()  # sets the scales
    motion, seams = scene.rollout(), shooting.firsts[1:]
    starts = np.concatenate([motion.states.arrays()[name][seams] for name in shooting.names], axis=1) / shooting.scale
    shooting.weight = 1.0
    found = shooting.residuals(np.concatenate([objective.start, starts.reshape(-1)]))
    whole = objective.residuals(objective.start)
    np.testing.assert_allclose(found[: whole.size], whole, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(found[whole.size :], 0, atol=1e-10)


def test_the_truth_is_found_behind_16_lyapunov_times(tmp_path: Path) -> None:
    fit = simphys.identify(inverted(tmp_path, 5.0, 0))
    assert fit.result.success and fit.rmse["all channels"] == pytest.approx(1e-3, rel=0.1)
    true = [*BAR, *FRICTION, 3.0, -3.0, 0.0, 0.0]
    for row, value in zip(fit.unknowns, true, strict=True):
        assert abs(row.value - value) < 4 * row.standard_error, row
    assert fit.unknowns[0].start == pytest.approx(0.62 * 1.3) or fit.unknowns[0].start == pytest.approx(0.62 * 0.7)


def test_scenes_without_segments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="shooting needs one recording by channels; found several experiments"):
        close_gaps(build(tables(tmp_path)).objective())


def test_a_driven_motion_is_cut_with_its_control() -> None:
    scene = simphys.load_scene(SCENES / "pendulum" / "motor.toml", ["time.duration=1.0", "time.dt=0.01"])
    shooting = Shooting(scene.objective())
    shooting.guess_starts()
    motion = scene.rollout()
    starts = np.concatenate([motion.states.arrays()[n][shooting.firsts[1:]] for n in shooting.names], axis=1)
    shooting.weight = 1.0
    found = shooting.residuals(np.concatenate([shooting.objective.start, (starts / shooting.scale).reshape(-1)]))
    np.testing.assert_allclose(found[-starts.size :], 0, atol=1e-10)
