"""A pivot that moves: derivatives, the exact motion, a fit, and bad input."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import simphys
from simphys.autograd import Tensor, gradcheck, tensor
from simphys.autograd.proof.gradcheck import dot_product_test
from simphys.experiment.scene import Scene, build_scene
from simphys.experiment.shown import Accumulate
from simphys.rollout import rollout
from simphys.scenefile import ConfigError, from_dict
from simphys.simulators.pendulum.chain import Chain
from simphys.simulators.pendulum.chain.shake import Shake
from simphys.simulators.pendulum.chain.shaken import ShakenMidpointRate

from . import chains

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


def shaken_inputs(links: int) -> tuple[Chain, Tensor, tuple[Tensor, ...]]:
    """The model, a guess and the inputs of a variational step on a pivot that moves."""
    model, params, state = chains.chain(links, dt=0.1)
    push = tensor(np.array([3.0, -2.0]), requires_grad=True)
    inertia = params.length, *chains.moments(model, params)
    others = (*inertia, params.gravity, params.tilt, params.damping)
    return model, state.rate.detach(), (state.angle, chains.numbers(links, 4), push, *others)


@pytest.mark.parametrize("links", [1, 3])
def test_the_derivatives_of_a_variational_step_are_right(links: int) -> None:
    model, guess, inputs = shaken_inputs(links)

    def midpoint_rate(*x: Tensor) -> Tensor:
        return ShakenMidpointRate.apply(model, guess, *x, model.dt / 2, math.nan)

    assert gradcheck(midpoint_rate, inputs, tolerance=1e-6)
    dot_product_test(midpoint_rate, inputs, tolerance=1e-12)


def test_gravity_and_an_acceleration_of_the_pivot_are_the_same() -> None:
    """A pivot that falls upwards with g and sideways with g tan(e) is gravity of g / cos(e) at the tilt -e."""
    model, guess, (x, p, _, L, s, J, *_, c) = shaken_inputs(3)
    k = model.dt / 2

    def rate(acceleration: list[float], gravity: Any, tilt: float) -> Any:
        given = x, p, tensor(acceleration), L, s, J, tensor(gravity), tensor(tilt), c
        return ShakenMidpointRate.apply(model, guess, *given, k, math.nan).data

    moved = rate([2.0, 5.0], 0.0, 0.0)
    np.testing.assert_allclose(moved, rate([0.0, 0.0], math.hypot(2.0, 5.0), -math.atan2(2.0, 5.0)), rtol=1e-12)


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


@pytest.mark.parametrize("integrator", ["rk4", "variational"])
def test_the_motion_is_exact_and_nested_steps_agree(integrator: str, tmp_path: Path) -> None:
    true = {"geometry": {"length": [LENGTH]}, "material": {"mass": MASS, "damping": DAMPING}, "state": {"angle": [0.4]}}
    control = {"kind": "recorded", "columns": [2, 3], "gain": GRAVITY}
    chosen = {"name": "pendulum", "drive": "pivot", "integrator": integrator}
    scene = scene_of(tmp_path, simulator=chosen, **true, control=control, time={"dt": 1e-3}, unknowns={})
    found = scene.rollout()
    expected = exact(1e-3 * np.arange(scene.steps + 1))
    np.testing.assert_allclose(found.angle.data[:, 0], expected, atol=2e-3)  # the recording has 100 samples a second
    assert np.ptp(expected - exact_at_rest(scene.steps)) > 0.2
    np.testing.assert_allclose(scene.rollout(mode="nested").angle.data, found.angle.data, rtol=0, atol=1e-12)


def exact_at_rest(steps: int) -> Any:
    time = 1e-3 * np.arange(steps + 1)
    return 0.4 * np.cos(np.sqrt(GRAVITY / LENGTH) * time)


def test_the_variational_integrator_is_of_second_order() -> None:
    """Three links on a pivot that is pushed by a constant acceleration, against the motion by small steps of rk4."""
    ends = {}
    for integrator, steps in (("rk4", 1600), ("variational", 100), ("variational", 200)):
        model, params, state = chains.chain(3, integrator, dt=1 / steps, damping=0.1)
        model = replace(model, moving_pivot=True)
        control = tensor(np.broadcast_to([3.0, -2.0], (steps, 2)))
        ends[integrator, steps] = rollout(model, params, state, steps=steps, control=control).final.angle.data
    exact = ends["rk4", 1600]
    errors = [abs(ends["variational", steps] - exact).max() for steps in (100, 200)]
    assert errors[1] < 1e-2 and 3.6 < errors[0] / errors[1] < 4.4


@pytest.mark.parametrize("integrator", ["rk4", "variational"])
def test_length_damping_and_the_gain_of_the_sensor_are_found(integrator: str, tmp_path: Path) -> None:
    scene = scene_of(tmp_path, simulator={"name": "pendulum", "drive": "pivot", "integrator": integrator})
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


def accelerometer(folder: Path, **changes: Any) -> Scene:
    """An accelerometer at 0.3 m on a rod, 0.02 m across it, both axes, on a pivot that moves as a file says."""
    time = np.arange(0, 301) / 100
    np.savetxt(folder / "shaken.csv", np.column_stack([time, np.zeros((301, 2)), acceleration(time)]), delimiter=",")
    common = {"field": "acceleration", "node": 0, "place": [0.3, 0.02], "unit": "m/s^2", "sigma": 0.05}
    given: dict[str, Any] = {
        "simulator": {"name": "pendulum", "drive": "pivot"},
        "time": {"dt": 5e-3},
        "geometry": {"length": [LENGTH]},
        "material": {"mass": MASS, "damping": DAMPING},
        "state": {"angle": [0.4]},
        "control": {"kind": "recorded", "columns": [3, 4], "unit": "m/s^2"},
        "observations": {
            "file": str(folder / "shaken.csv"),
            "channels": [{"column": 1 + axis, "axis": axis, **common} for axis in (0, 1)],
        },
        "unknowns": {
            "length": {"parameter": "length"},
            "gain": {"parameter": "control_gain", "tied": True},
            "delay": {"parameter": "channel_delay", "tied": True, "start": 2e-3},
        },
    }
    return build_scene(from_dict(given | changes))


def test_an_accelerometer_feels_the_motion_of_the_pivot(tmp_path: Path) -> None:
    """It shows what the second difference of its position in the room says, less gravity, along the axes of the rod."""
    scene = accelerometer(tmp_path, unknowns={}, time={"dt": 1e-3})
    shown = scene.predict(scene.rollout()).data
    step, times = 1e-4, np.arange(0, 301)[5:-5] / 100
    angle = exact(np.arange(0, 30001) * step)
    along, across = np.stack([np.sin(angle), -np.cos(angle)]), np.stack([np.cos(angle), np.sin(angle)])
    pivot = AMPLITUDE[:, None] * np.sin(RATE[:, None] * step * np.arange(30001))
    place = pivot + 0.3 * along + 0.02 * across
    at = np.round(times / step).astype(int)
    felt = (place[:, at + 1] - 2 * place[:, at] + place[:, at - 1]) / step**2 + np.array([[0.0], [GRAVITY]])
    expected = np.stack([np.sum(felt * along[:, at], axis=0), np.sum(felt * across[:, at], axis=0)], axis=1)
    np.testing.assert_allclose(shown[5:-5], expected, atol=0.03)
    assert np.ptp(expected[:, 0]) > 1.0


def test_the_derivatives_of_an_accelerometer_on_a_moving_pivot_are_right(tmp_path: Path) -> None:
    objective = accelerometer(tmp_path).objective()
    theta = tensor(objective.start * 1.01, requires_grad=True)
    assert gradcheck(lambda x: objective.residual_tensor(x) * 1e-2, (theta,), mode="projected", tolerance=1e-6)
    steps = tensor(np.random.default_rng(0).normal(size=(7, 2)), requires_grad=True)
    assert gradcheck(lambda u: Accumulate.apply(u, 0.1), (steps,), tolerance=1e-8)


def test_a_broken_adjoint_of_the_velocity_of_the_pivot_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Accumulate.backward
    monkeypatch.setattr(Accumulate, "backward", staticmethod(lambda ctx, adj: (right(ctx, adj)[0][::-1], None)))
    steps = tensor(np.random.default_rng(0).normal(size=(7, 2)), requires_grad=True)
    with pytest.raises(AssertionError):
        gradcheck(lambda u: Accumulate.apply(u, 0.1), (steps,))


@pytest.mark.parametrize("integrator", ["rk4", "variational"])
def test_without_a_control_the_pivot_rests(integrator: str) -> None:
    free, held = [Chain(1, 0.01, integrator, moving_pivot=moves) for moves in (True, False)]
    shapes = free.param_shapes()
    params = free.Params(**{name: tensor(np.full(shape, 0.5)) for name, shape in shapes.items()})
    state = free.State(tensor([0.4]), tensor([0.1]))
    one, other = [rollout(model, params, state, steps=20).angle.data for model in (free, held)]
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
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
            {"observations": {"file": "x.csv", "channels": [{"column": 1, "field": "energy"}]}},
            r"channels\.0\.field: needs the velocity of the pivot",
        ),
    ],
)
def test_what_does_not_fit_is_named(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        scene_of(tmp_path, **({"unknowns": {}} | changes))
