"""The sensor: channels as functions of the state, whose gain, offset, delay and camera may be unknown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys.autograd import tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.experiment import sensors
from simphys.experiment.cameras import rotation
from simphys.experiment.observe import Observations
from simphys.experiment.scene import Scene
from simphys.experiment.sensors import Angle, DelayedPlan, DelayedSample
from simphys.experiment.trajectory import compute_trajectory
from simphys.scenefile import ConfigError

from ..helpers.small_scenes import build

RANDOM = np.random.default_rng(5)
CAMERA = {"scale": 200.0, "rotation": 0.3, "origin": [320.0, 240.0]}
TIMES = np.linspace(0.03, 0.97, 40)


def orbit(tmp_path: Path, channels: list[dict[str, Any]], values: np.ndarray | None = None, **changes: Any) -> Scene:
    """A mass on a spring in the plane and one in free fall, for a second; `values` [40, C] were seen at TIMES."""
    file = tmp_path / "seen.csv"
    shown = np.zeros((40, len(channels))) if values is None else values
    np.savetxt(file, np.column_stack([TIMES, shown]), delimiter=",", comments="", fmt="%.15g")
    section = {
        "file": str(file),
        "channels": [{"column": 1 + place, "sigma": 0.01, **channel} for place, channel in enumerate(channels)],
        **changes.pop("observations", {}),
    }
    tables: dict[str, Any] = {
        "simulator": {"name": "mass_spring", "integrator": "velocity_verlet"},
        "time": {"dt": 0.01, "steps": 100},
        "geometry": {
            "position": [[1.0, 0.2], [-0.5, 0.4]],
            "anchors": [{"node": 0, "point": [0.0, 0.0], "stiffness": 30.0}],
        },
        "state": {"velocity": [[0.0, 4.0], [1.0, 1.0]]},
        "environment": {"gravity": [0.0, -1.0]},
        "observations": section,
        "unknowns": {"spring": {"parameter": "stiffness", "transform": "log"}},
    }
    return build(tables, **changes)


def at(scene: Scene, field: str, node: int) -> np.ndarray:
    """The vector of a node at TIMES [40, 2], between steps by straight lines."""
    along = getattr(scene.rollout(), field).data[:, node]
    return np.column_stack([np.interp(TIMES, np.arange(101) * 0.01, along[:, axis]) for axis in range(2)])


def see(scene: Scene) -> np.ndarray:
    return np.asarray(scene.predict(scene.rollout()).data)


SEEN: list[dict[str, Any]] = [
    {"kind": "distance", "field": "position", "node": 0, "to": 1},
    {"kind": "distance", "field": "position", "node": 0, "point": [0.5, 0.1]},
    {"kind": "distance", "field": "velocity", "node": 1},
    {"kind": "angle", "field": "position", "node": 0, "gain": 180 / np.pi, "offset": 10.0},
    {"kind": "pixel", "field": "position", "node": 0, "axis": 0},
    {"kind": "pixel", "field": "position", "node": 1, "axis": 1},
    {"field": "position", "node": 1, "axis": 1, "gain": -2.0, "offset": 0.5},
    {"kind": "difference", "field": "position", "node": 0, "to": 1, "axis": 1},
    {"kind": "sum", "field": "velocity", "node": 0, "to": 1, "gain": 0.5},
    {"kind": "difference", "field": "marker", "node": 1, "to": 0, "axis": 0},
]


def test_channels_show_what_they_say(tmp_path: Path) -> None:
    scene = orbit(tmp_path, SEEN, observations={"camera": CAMERA})
    shown, a, b = see(scene), at(scene, "position", 0), at(scene, "position", 1)
    np.testing.assert_allclose(shown[:, 0], np.linalg.norm(a - b, axis=1), rtol=1e-12)
    np.testing.assert_allclose(shown[:, 1], np.linalg.norm(a - [0.5, 0.1], axis=1), rtol=1e-12)
    np.testing.assert_allclose(shown[:, 2], np.linalg.norm(at(scene, "velocity", 1), axis=1), rtol=1e-12)
    angle = np.degrees(np.arctan2(a[:, 1], a[:, 0])) + 10
    np.testing.assert_allclose(np.cos(np.radians(shown[:, 3] - angle)), 1, rtol=1e-12)
    assert np.abs(shown[:, 3]).max() <= 180  # nearest to the measured zeros
    turn = np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])
    np.testing.assert_allclose(shown[:, 4], 200 * (a @ turn.T)[:, 0] + 320, rtol=1e-12)
    np.testing.assert_allclose(shown[:, 5], 200 * (b @ turn.T)[:, 1] + 240, rtol=1e-12)
    np.testing.assert_allclose(shown[:, 6], 0.5 - 2 * b[:, 1], rtol=1e-12)
    np.testing.assert_allclose(shown[:, 7], (a - b)[:, 1], rtol=1e-12)
    mean = (at(scene, "velocity", 0) + at(scene, "velocity", 1))[:, 0] / 2
    np.testing.assert_allclose(shown[:, 8], mean, rtol=1e-12)
    np.testing.assert_allclose(shown[:, 9], (b - a)[:, 0], rtol=1e-12)
    assert isinstance(scene.observations, Observations)
    labels = [channel.label for channel in scene.observations.channels]
    assert labels[7:9] == ["position y of node 0 - position y of node 1", "velocity x of node 0 + velocity x of node 1"]


def test_an_angle_is_compared_modulo_its_period(tmp_path: Path) -> None:
    channel = {"kind": "angle", "field": "position", "node": 0}
    once = see(orbit(tmp_path, [channel]))
    turns = 2 * np.pi * np.arange(40)[:, None]
    scene = orbit(tmp_path, [channel], once + turns + 0.01)
    np.testing.assert_allclose(see(scene), once + turns, atol=1e-12)
    assert scene.loss(scene.rollout()).item() == pytest.approx(0.5 * 40, rel=1e-9)


def test_a_late_channel_shows_the_past(tmp_path: Path) -> None:
    seen = {"field": "position", "node": 1, "axis": 0}  # moves uniformly: also before the start
    prompt, late = see(orbit(tmp_path, [seen])), see(orbit(tmp_path, [{**seen, "delay": 0.1234}]))
    np.testing.assert_allclose(late, prompt - 0.1234 * 1.0, rtol=1e-12)


def test_the_derivatives_of_every_number_of_the_sensor_are_right(tmp_path: Path) -> None:
    channels = [{**channel, "delay": 0.0213 + 0.001 * place} for place, channel in enumerate(SEEN)]
    names = ["channel_gain", "channel_offset", "channel_delay", "camera_scale", "camera_rotation", "camera_origin"]
    unknowns = {name: {"parameter": name} for name in names}
    scene = orbit(
        tmp_path, channels, observations={"camera": CAMERA}, unknowns=unknowns | {"x": {"parameter": "position"}}
    )
    objective = scene.objective()
    theta = tensor(objective.start, requires_grad=True)
    assert gradcheck(objective.residual_tensor, (theta,), mode="projected")
    residuals, jacobian = objective.residuals(objective.start), objective.jacobian(objective.start)
    np.testing.assert_allclose(jacobian.T @ residuals, objective.value_and_gradient(objective.start)[1], rtol=1e-9)
    assert (np.abs(jacobian).max(axis=0)[: 3 * len(SEEN) + 4] > 0).all()


@pytest.mark.parametrize("field", ["position", "velocity"])
def test_fits_predict_late_channels_of_any_field(field: str, tmp_path: Path) -> None:
    """A fit keeps the fields that channels see, and no others."""
    scene = orbit(tmp_path, [{"field": field, "node": 0, "axis": 1, "delay": 0.0213}])
    kept = compute_trajectory(scene, only_seen=True)
    np.testing.assert_allclose(scene.predict(kept).data, see(scene), rtol=1e-12)
    assert see(scene).std() > 0.1


def test_an_early_channel_sees_a_longer_motion(tmp_path: Path) -> None:
    """As far as it looks ahead, and no further than the whole horizon; terms about the end of a motion keep it."""
    seen = {"field": "position", "node": 0, "axis": 1}
    prompt, early = orbit(tmp_path, [seen]), orbit(tmp_path, [{**seen, "delay": -0.2}])
    assert prompt.steps == 100 and early.steps == 117
    along = orbit(tmp_path, [seen], time={"dt": 0.01, "steps": 120}).rollout().position.data[:, 0, 1]
    np.testing.assert_allclose(see(early)[:, 0], np.interp(TIMES + 0.2, 0.01 * np.arange(121), along), atol=1e-12)
    unknowns = {"spring": None, "late": {"parameter": "channel_delay", "scale": 0.1}}
    objective = orbit(tmp_path, [seen], unknowns=unknowns).objective()
    assert [objective.scene_at(np.array([delay])).steps for delay in (1.0, 0.0, -2.0)] == [100, 100, 117]
    assert gradcheck(objective.loss_tensor, (tensor(np.array([-2.05]), requires_grad=True),))
    with pytest.raises(simphys.optimize.FailedTrial, match=r"channel_delay of -1\.1 looks ahead beyond"):
        objective.residuals(np.array([-11.0]))
    ending = {"terms": [{"kind": "final_state", "nodes": [0], "target": [0.0, 0.0]}]}
    kept = orbit(tmp_path, [seen], unknowns=unknowns, loss=ending).objective()
    assert kept.scene_at(np.array([-2.0])).steps == 100


def test_what_starts_at_rest_has_rested(tmp_path: Path) -> None:
    """Before the start a channel is extrapolated by the velocity there: 0, or that of the other mass."""
    still: dict[str, Any] = {"state": {"velocity": [[0.0, 0.0], [1.0, 1.0]]}}
    channels = [{"field": "position", "node": node, "axis": 0, "delay": 0.5} for node in (0, 1)]
    scene = orbit(tmp_path, channels, **still)
    early = TIMES < 0.5
    seen = see(scene)[early]
    np.testing.assert_allclose(seen[:, 0], 1.0, atol=1e-3)
    np.testing.assert_allclose(seen[:, 1], -0.5 + (TIMES[early] - 0.5), atol=1e-9)


def test_the_moment_at_which_motions_began_is_found(tmp_path: Path) -> None:
    """Two recordings of a pendulum: it was let go before the clock began, or behind the first samples."""
    tables: dict[str, Any] = {
        "simulator": {"name": "pendulum"},
        "time": {"dt": 0.005, "steps": 900},
        "geometry": {"length": [0.6]},
        "state": {"angle": [0.8]},
    }
    angle, time, experiments = build(tables).rollout().angle.data[:, 0], np.arange(100) * 0.04, []
    for name, shift in (("early", -0.3), ("late", 0.2)):
        values = np.interp(time - shift, 0.005 * np.arange(901), angle) + 2e-3 * RANDOM.standard_normal(100)
        np.savetxt(tmp_path / name, np.column_stack([time, values]))
        experiments.append({"name": name, "observations": {"file": str(tmp_path / name)}})
    channels = [{"column": 1, "field": "angle", "node": 0, "unit": "rad", "sigma": 2e-3}]
    late = {"parameter": "channel_delay", "tied": True, "scale": 0.1, "unit": "s", "experiments": "each"}
    unknowns = {"length": {"parameter": "length", "start": 0.65}, "late": late}
    seen = {"time": {"dt": 0.005}, "observations": {"channels": channels}, "experiments": experiments}
    fit = simphys.identify(build({**tables, **seen, "unknowns": unknowns}), folder=tmp_path / "run")
    assert fit.verdict == "passed"
    for row, true in zip(fit.unknowns, [0.6, -0.3, 0.2], strict=True):
        assert abs(row.value - true) < 3.5 * row.standard_error < 0.01, row
    again = simphys.load_scene(tmp_path / "run" / "fitted.toml")
    early, prompt = again.experiments
    assert 850 <= early.steps <= 855 and prompt.steps == 792


def test_delayed_samples_and_angles_have_the_right_derivatives() -> None:
    fields = [tensor(RANDOM.normal(size=(9, *shape)), requires_grad=True) for shape in [(2, 2), (3,)]]
    plan = DelayedPlan(
        np.array([0.0, 0.11, 0.52, 0.79]), 0.1, ((0, (1, 0)), (1, (2,)), (0, (0, 1))), np.array([0, 0, 1])
    )
    delay = tensor(np.array([0.033, -0.02]), requires_grad=True)
    assert gradcheck(lambda d, a, b: DelayedSample.apply(plan, d, a, b), (delay, *fields))
    x, y = (tensor(RANDOM.normal(size=5), requires_grad=True) for _ in range(2))
    assert gradcheck(Angle.apply, (x, y))


def test_a_backward_that_forgets_the_bend_before_the_start_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    field = tensor(RANDOM.normal(size=(9, 2)), requires_grad=True)
    plan = DelayedPlan(np.array([0.0, 0.11]), 0.1, ((0, (1,)),), np.array([0]))
    delay, backward = tensor(np.array([0.033]), requires_grad=True), DelayedSample.backward

    def forget(ctx: Any, adj: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(sensors, "BEND", np.zeros(3))
            return backward(ctx, adj)

    assert gradcheck(lambda d, a: DelayedSample.apply(plan, d, a), (delay, field))
    monkeypatch.setattr(DelayedSample, "backward", staticmethod(forget))
    with pytest.raises(AssertionError):
        gradcheck(lambda d, a: DelayedSample.apply(plan, d, a), (delay, field))


def test_a_camera_in_space_turns_about_each_axis() -> None:
    angles = tensor(np.array([0.3, -0.4, 1.1]))
    turn = np.array([[each.item() for each in row] for row in rotation(angles, 3)])
    from scipy.spatial.transform import Rotation

    np.testing.assert_allclose(turn, Rotation.from_euler("xyz", [0.3, -0.4, 1.1]).as_matrix(), atol=1e-14)


def test_gain_offset_delay_and_camera_are_found(tmp_path: Path) -> None:
    pixels = [{"kind": "pixel", "field": "position", "node": node, "axis": axis} for node in (0, 1) for axis in (0, 1)]
    sensor = [{"field": "velocity", "node": 0, "axis": 1, "gain": 2.5, "offset": -1.0, "delay": 0.04, "sigma": 0.02}]
    truth = orbit(tmp_path, [*({**each, "sigma": 0.5} for each in pixels), *sensor], observations={"camera": CAMERA})
    noise = np.random.default_rng(5).normal(size=(40, 5)) * [0.5, 0.5, 0.5, 0.5, 0.02]
    wrong = [{**sensor[0], "gain": 2.0, "offset": 0.0, "delay": 0.02}]
    unknowns = {
        "spring": {"parameter": "stiffness", "start": 28.0, "transform": "log"},
        **{name: {"parameter": f"channel_{name}", "entries": [4]} for name in ("gain", "offset", "delay")},
        "scale": {"parameter": "camera_scale"},
        "rotation": {"parameter": "camera_rotation"},
        "origin": {"parameter": "camera_origin"},
    }
    scene = orbit(
        tmp_path,
        [*({**each, "sigma": 0.5} for each in pixels), *wrong],
        see(truth) + noise,
        observations={"camera": {"scale": 150.0, "rotation": 0.1, "origin": [300.0, 200.0]}},
        unknowns=unknowns,
    )
    fit = simphys.identify(scene)
    assert fit.verdict == "passed", fit.criteria
    for row, true in zip(fit.unknowns, [30.0, 2.5, -1.0, 0.04, 200.0, 0.3, 320.0, 240.0], strict=True):
        assert abs(row.value - true) < 3.5 * row.standard_error, row
    assert fit.recording.attrs("fit")["of_state"] == [False] * 5
    np.testing.assert_allclose(fit.recording["fit/predicted"], see(fit.scene), rtol=1e-12)


@pytest.mark.parametrize(
    ("channel", "camera", "message"),
    [
        ({"kind": "pixel", "field": "position", "node": 0}, None, "a pixel needs a camera"),
        ({"kind": "angle", "field": "position", "node": 7}, None, "must be the index of one of 3 nodes"),
        ({"kind": "sum", "field": "position", "node": 0}, None, "0.to: of the kind sum needs the other node"),
        ({"kind": "sum", "field": "position", "node": 0, "to": 3}, None, "0.to: must be the index of one of 3 nodes"),
        (
            {"kind": "distance", "field": "position", "node": 0, "point": [1.0]},
            None,
            "must be 2 numbers, in place of a node",
        ),
        ({"kind": "pixel", "field": "position", "node": 0}, {"rotation": [0.1, 0.2, 0.3]}, "must be an angle; found"),
    ],
)
def test_channels_that_cannot_be_are_told(channel: Any, camera: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        orbit(tmp_path, [channel], observations={} if camera is None else {"camera": camera})
    assert message in str(error.value)
