"""A pivot that moves: derivatives, the exact motion, a fit, and bad input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import simphys
from simphys.autograd import gradcheck, tensor
from simphys.autograd.errors import InputError
from simphys.autograd.proof.gradcheck import dot_product_test
from simphys.experiment.scene import Scene, build_scene
from simphys.rollout import rollout
from simphys.scenefile import ConfigError, from_dict
from simphys.simulators.pendulum.chain import Chain
from simphys.simulators.pendulum.chain.shake import Shake

LENGTH, GRAVITY, DAMPING, MASS = 0.45, 9.81, 0.012, 0.3
AMPLITUDE, RATE = np.array([0.05, 0.02]), np.array([7.0, 9.0])
"""The pivot is at AMPLITUDE sin(RATE t) [m], across and up."""


def acceleration(time: Any) -> Any:
    return -AMPLITUDE * RATE**2 * np.sin(RATE * np.asarray(time)[..., None])


def exact(time: Any) -> Any:
    """Angles of a point mass on a rod whose pivot moves, in the frame of the room."""

    def slope(t: float, y: Any) -> Any:
        across, up = acceleration(t)
        turn = -(GRAVITY + up) * np.sin(y[0]) - across * np.cos(y[0])
        return [y[1], turn / LENGTH - DAMPING / (MASS * LENGTH**2) * y[1]]

    return solve_ivp(slope, (0, time[-1]), [0.4, 0.0], "DOP853", time, rtol=1e-11, atol=1e-12).y[0]


def test_the_derivatives_of_shaking_are_right() -> None:
    model, random = Chain(3, 0.01, moving_pivot=True), np.random.default_rng(0)
    inputs = tuple([tensor(random.normal(size=size), requires_grad=True) for size in (3, 3, 2)])
    assert gradcheck(lambda *x: Shake.apply(model, *x), inputs, tolerance=1e-8)
    dot_product_test(lambda *x: Shake.apply(model, *x), inputs, tolerance=1e-12)


def tables(folder: Path, **changes: Any) -> dict[str, Any]:
    """A pendulum on a hand, whose acceleration and whose angle were recorded."""
    time = np.arange(0, 301) / 100
    random = np.random.default_rng(2)
    angle = exact(time) + 2e-3 * random.standard_normal(301)
    np.savetxt(folder / "hand.csv", np.column_stack([time, angle, acceleration(time) / GRAVITY]), delimiter=",")
    channel = {"column": 1, "field": "angle", "node": 0, "unit": "rad", "sigma": 2e-3}
    return {
        "simulator": {"name": "pendulum", "drive": "pivot"},
        "time": {"dt": 5e-3},
        "geometry": {"length": [0.5]},
        "material": {"mass": MASS, "damping": 0.02},
        "state": {"angle": [0.3]},
        "control": {"kind": "recorded", "columns": [2, 3], "gain": 9.0, "unit": "m/s^2"},
        "observations": {"file": str(folder / "hand.csv"), "channels": [channel]},
        "unknowns": {
            "length": {"parameter": "length", "transform": "log", "unit": "m"},
            "damping": {"parameter": "damping", "bounds": [0, np.inf]},
            "angle": {"parameter": "angle", "unit": "rad"},
            "gain": {"parameter": "control_gain", "tied": True},
        },
        **changes,
    }


def scene_of(folder: Path, **changes: Any) -> Scene:
    return build_scene(from_dict(tables(folder, **changes)))


def test_the_motion_is_exact_and_nested_steps_agree(tmp_path: Path) -> None:
    true = {"geometry": {"length": [LENGTH]}, "material": {"mass": MASS, "damping": DAMPING}, "state": {"angle": [0.4]}}
    control = {"kind": "recorded", "columns": [2, 3], "gain": GRAVITY}
    scene = scene_of(tmp_path, **true, control=control, time={"dt": 1e-3}, unknowns={})
    found = scene.rollout()
    expected = exact(1e-3 * np.arange(scene.steps + 1))
    np.testing.assert_allclose(found.angle.data[:, 0], expected, atol=2e-3)  # the recording has 100 samples a second
    assert np.ptp(expected - exact_at_rest(scene.steps)) > 0.2
    np.testing.assert_allclose(scene.rollout(mode="nested").angle.data, found.angle.data, rtol=0, atol=1e-12)


def exact_at_rest(steps: int) -> Any:
    time = 1e-3 * np.arange(steps + 1)
    return 0.4 * np.cos(np.sqrt(GRAVITY / LENGTH) * time)


def test_length_damping_and_the_gain_of_the_sensor_are_found(tmp_path: Path) -> None:
    scene = scene_of(tmp_path)
    objective = scene.objective()
    assert gradcheck(objective.loss_tensor, (tensor(objective.start + 0.02, requires_grad=True),), mode="projected")
    fit = simphys.identify(scene)
    assert fit.verdict == "passed"
    for row, true in zip(fit.unknowns, [LENGTH, DAMPING, 0.4, GRAVITY], strict=True):
        assert abs(row.value - true) < 3 * row.standard_error < 0.05 * true, row


def test_a_broken_adjoint_of_shaking_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Chain(1, 0.01, moving_pivot=True)
    x, s, A = [tensor(np.array(each), requires_grad=True) for each in ([0.4], [0.3], [1.0, -2.0])]
    right = Shake.backward

    def broken(ctx: Any, adj: Any) -> Any:
        found = list(right(ctx, adj))
        found[-1] = -found[-1]
        return tuple(found)

    monkeypatch.setattr(Shake, "backward", staticmethod(broken))
    with pytest.raises(AssertionError):
        gradcheck(lambda *given: Shake.apply(model, *given), (x, s, A))


def test_without_a_control_the_pivot_rests() -> None:
    free, held = [Chain(1, 0.01, moving_pivot=moves) for moves in (True, False)]
    shapes = free.param_shapes()
    params = free.Params(**{name: tensor(np.full(shape, 0.5)) for name, shape in shapes.items()})
    state = free.State(tensor([0.4]), tensor([0.1]))
    one, other = [rollout(model, params, state, steps=20).angle.data for model in (free, held)]
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"simulator": {"name": "pendulum", "drive": "pivot", "integrator": "variational"}},
            r"simulator\.drive: a pivot",
        ),
        (
            {
                "simulator": {"name": "pendulum", "drive": "pivot", "kind": "spherical"},
                "geometry": {"length": 0.5},
                "state": {"direction": [0.0, 0.0, -1.0]},
            },
            r"simulator\.drive: belongs to a chain",
        ),
        ({"control": {"kind": "recorded", "columns": [2]}}, r"control\.columns"),
        (
            {"observations": {"file": "x.csv", "channels": [{"column": 1, "field": "acceleration", "node": 0}]}},
            r"channels\.0\.field: an accelerometer feels the motion of the pivot",
        ),
        (
            {"observations": {"file": "x.csv", "channels": [{"column": 1, "field": "energy"}]}},
            r"channels\.0\.field: an energy that is known of the bodies",
        ),
    ],
)
def test_what_does_not_fit_is_named(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        scene_of(tmp_path, **({"unknowns": {}} | changes))


def test_scripts_move_a_pivot_under_rk4() -> None:
    with pytest.raises(InputError, match="rk4 where the pivot moves"):
        Chain(1, 0.01, "variational", moving_pivot=True)
