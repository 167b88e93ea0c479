"""Places on bodies and links before cameras, and accelerometers mounted there."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from simphys.autograd import Tensor, ops, tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.experiment.scene import Scene
from simphys.scenefile import ConfigError
from simphys.simulators.rigid.markers import RigidMarkers, turn

from ..helpers.rounding import assert_equal_but_for_rounding
from ..helpers.small_scenes import build, merged

DT, STEPS = 0.01, 40
TIMES = np.linspace(0.0123, 0.3851, 12)
ROWS = (("position", 0, 3), ("orientation", 3, 4), ("velocity", 7, 3), ("angular_velocity", 10, 3))
"""Rows of a body's state in space."""
FINE = 0.001
"""Time step of comparisons with closed forms [s]."""

DOUBLE: dict[str, Any] = {
    "simulator": {"name": "pendulum"},
    "geometry": {"length": [0.5, 0.4]},
    "environment": {"gravity": 9.81, "tilt": 0.1},
    "state": {"angle": [0.7, 1.9], "rate": [1.0, -3.0]},
    "material": {"mass": [1.0, 0.5]},
}
SINGLE: dict[str, Any] = {
    "simulator": {"name": "pendulum"},
    "geometry": {"length": [0.5]},
    "environment": {"gravity": 9.81, "tilt": 0.1},
    "state": {"angle": [1.3]},
    "material": {"mass": 1.0},
}
SPHERICAL: dict[str, Any] = {
    "simulator": {"name": "pendulum", "kind": "spherical"},
    "geometry": {"length": 0.5},
    "state": {"direction": [0.6, 0.0, -0.8], "rate": [0.4, 2.0, 0.3]},
    "material": {"mass": 1.0},
}
BODY: dict[str, Any] = {"mass": 1.0}
"""A body without shapes, which has no contacts."""
PLANAR: dict[str, Any] = {
    "simulator": {"name": "rigid"},
    "environment": {"gravity": [0.0, -9.81]},
    "bodies": [
        {**BODY, "position": [0.1, 0.2], "velocity": [1.0, 0.5], "angular_velocity": 3.0, "inertia": 0.01},
        {**BODY, "position": [2.0, 0.2], "orientation": 0.4, "inertia": 0.01},
    ],
}
SPATIAL: dict[str, Any] = {
    "simulator": {"name": "rigid"},
    "environment": {"gravity": [0.0, 0.0, -9.81]},
    "bodies": [
        {**BODY, "position": [0.1, 0.2, 0.3], "velocity": [1.0, 0.5, 0.0], "angular_velocity": [0.0, 0.0, 5.0]},
        {**BODY, "position": [2.0, 0.2, 0.3], "orientation": [0.8, 0.0, 0.6, 0.0]},
    ],
}
for _body in SPATIAL["bodies"]:
    _body["inertia"] = [0.01, 0.02, 0.03]


def film(tmp_path: Path, tables: dict[str, Any], channels: list[dict[str, Any]], dt: float = DT, **more: Any) -> Scene:
    """The scene of a motion of 0.4 s that channels see at TIMES; they measured zeros."""
    file = tmp_path / "seen.csv"
    np.savetxt(file, np.column_stack([TIMES, np.zeros((12, len(channels)))]), delimiter=",", comments="")
    columns = [{"column": 1 + place, "sigma": 0.1, **channel} for place, channel in enumerate(channels)]
    section = {"file": str(file), "channels": columns, **more.pop("observations", {})}
    base = {"time": {"dt": dt, "steps": round(STEPS * DT / dt)}, "observations": section, "unknowns": {}}
    return build(merged(tables, {**base, **more}))


def see(scene: Scene) -> np.ndarray:
    return np.asarray(scene.predict(scene.rollout()).data)


def each_axis(dim: int, **channel: Any) -> list[dict[str, Any]]:
    return [{"node": 0, "axis": axis, **channel} for axis in range(dim)]


def along_time(scene: Scene, field: str) -> np.ndarray:
    """A field of the state at TIMES, by straight lines."""
    values = getattr(scene.rollout(), field).data
    flat = values.reshape(len(values), -1)
    times = np.arange(len(values)) * scene.dt
    found = np.column_stack([np.interp(TIMES, times, column) for column in flat.T])
    return found.reshape(len(TIMES), *values.shape[1:])


def test_a_marker_on_the_second_link_of_a_chain_is_where_geometry_puts_it(tmp_path: Path) -> None:
    channels = each_axis(2, field="marker", place=[0.3, 0.05])
    scene = film(tmp_path, DOUBLE, [{**each, "node": 1} for each in channels] + each_axis(2, field="marker"))
    a, b = along_time(scene, "angle").T
    expected = [
        0.5 * np.sin(a) + 0.3 * np.sin(b) + 0.05 * np.cos(b),
        -0.5 * np.cos(a) - 0.3 * np.cos(b) + 0.05 * np.sin(b),
        0.5 * np.sin(a),
        -0.5 * np.cos(a),
    ]
    assert_equal_but_for_rounding(see(scene), np.array(expected).T, ulps=100)


def test_a_marker_on_a_body_turns_with_it(tmp_path: Path) -> None:
    scene = film(tmp_path, PLANAR, each_axis(2, field="marker", place=[0.2, -0.1]))
    x, q = along_time(scene, "position")[:, 0], along_time(scene, "orientation")[:, 0, 0]
    arm = np.column_stack([0.2 * np.cos(q) + 0.1 * np.sin(q), 0.2 * np.sin(q) - 0.1 * np.cos(q)])
    assert_equal_but_for_rounding(see(scene), x + arm, ulps=100)
    scene = film(tmp_path, SPATIAL, each_axis(3, field="marker", place=[0.2, -0.1, 0.3]))
    x, q = along_time(scene, "position")[:, 0], along_time(scene, "orientation")[:, 0]
    arms = Rotation.from_quat(q[:, [1, 2, 3, 0]]).apply([0.2, -0.1, 0.3])
    assert_equal_but_for_rounding(see(scene), x + arms, ulps=100)


@pytest.mark.parametrize("tables", [DOUBLE, SPHERICAL, PLANAR, SPATIAL], ids=["chain", "spherical", "planar", "space"])
def test_velocities_of_places_are_those_of_their_positions(tables: dict[str, Any], tmp_path: Path) -> None:
    scene = film(tmp_path, tables, [{"column": 1, "node": 0, "field": "marker"}], dt=FINE)
    markers = scene.model.describe_markers()
    size = markers.place_sizes[-1]
    states, node = scene.rollout().states, markers.nodes - 1 if "angle" in scene.state.names() else 0

    def values(moving: bool, row: int) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for field, index in markers.needs(node, moving=moving):
            found.setdefault(field, []).append(tensor(getattr(states, field).data[(row, *index)]))
        return found

    place = (0.3, -0.1, 0.2)[:size]
    for at in (None, place):
        before, after = (markers.position(scene.params, node, at, values(False, row)) for row in (19, 21))
        change = [(b.item() - a.item()) / (2 * FINE) for a, b in zip(before, after, strict=True)]
        found = [each.item() for each in markers.velocity(scene.params, node, at, values(True, 20))]
        np.testing.assert_allclose(found, change, atol=2e-4)


def test_an_accelerometer_on_a_pendulum_feels_the_rod_alone(tmp_path: Path) -> None:
    """Along the rod it measures -(l w^2 + g cos(angle)) at the bob, across it nothing."""
    scene = film(tmp_path, SINGLE, each_axis(2, field="acceleration"), dt=FINE)
    angle, rate = along_time(scene, "angle")[:, 0], along_time(scene, "rate")[:, 0]
    along = -(0.5 * rate**2 + 9.81 * np.cos(angle - 0.1))
    np.testing.assert_allclose(see(scene), np.column_stack([along, np.zeros_like(along)]), atol=2e-4)


def test_an_accelerometer_on_a_body_in_free_fall_feels_its_spin_alone(tmp_path: Path) -> None:
    """The body turns about a principal axis: a place r measures -w^2 r in the plane, along axes that turn with it."""
    scene = film(tmp_path, SPATIAL, each_axis(3, field="acceleration", place=[0.2, -0.1, 0.3]), dt=FINE)
    np.testing.assert_allclose(see(scene), np.tile([-25 * 0.2, 25 * 0.1, 0.0], (12, 1)), atol=2e-4)
    scene = film(tmp_path, PLANAR, each_axis(2, field="acceleration", place=[0.2, -0.1]), dt=FINE)
    np.testing.assert_allclose(see(scene), np.tile([-9 * 0.2, 9 * 0.1], (12, 1)), atol=2e-4)
    centre = film(tmp_path, PLANAR, [{"node": 0, "field": "acceleration", "kind": "distance"}], dt=FINE)
    np.testing.assert_allclose(see(centre), 0, atol=1e-9)


def test_an_accelerometer_on_a_node_at_rest_measures_its_weight_upwards(tmp_path: Path) -> None:
    tables = {
        "simulator": {"name": "mass_spring"},
        "geometry": {
            "position": [[0.0, -0.981]],
            "anchors": [{"node": 0, "point": [0.0, 0.0], "stiffness": 10.0}],
        },
        "environment": {"gravity": [0.0, -9.81]},
    }
    scene = film(tmp_path, tables, each_axis(2, field="acceleration"))
    np.testing.assert_allclose(see(scene), np.tile([0.0, 9.81], (12, 1)), atol=1e-9)


def pinhole(**changes: Any) -> dict[str, Any]:
    camera = {"kind": "pinhole", "focal": 900.0, "position": [0.2, -0.4, -3.0], "rotation": [0.1, -0.2, 0.05]}
    return {"camera": {**camera, "origin": [320.0, 240.0], **changes}}


def test_a_pinhole_camera_sees_by_perspective(tmp_path: Path) -> None:
    pixels = each_axis(2, field="marker", kind="pixel", place=[0.2, -0.1, 0.3])
    scene = film(tmp_path, SPATIAL, pixels, observations=pinhole())
    place = see(film(tmp_path, SPATIAL, each_axis(3, field="marker", place=[0.2, -0.1, 0.3])))
    x, y, z = Rotation.from_euler("xyz", [0.1, -0.2, 0.05]).apply(place - [0.2, -0.4, -3.0]).T
    np.testing.assert_allclose(see(scene), np.column_stack([900 * x / z + 320, 900 * y / z + 240]), rtol=1e-12)
    flat = film(tmp_path, DOUBLE, each_axis(2, field="marker", kind="pixel"), observations=pinhole())
    place = np.hstack([see(film(tmp_path, DOUBLE, each_axis(2, field="marker"))), np.zeros((12, 1))])
    x, y, z = Rotation.from_euler("xyz", [0.1, -0.2, 0.05]).apply(place - [0.2, -0.4, -3.0]).T
    np.testing.assert_allclose(see(flat), np.column_stack([900 * x / z + 320, 900 * y / z + 240]), rtol=1e-12)


def test_a_pinhole_camera_that_looks_away_ends_a_trial_with_its_reason(tmp_path: Path) -> None:
    pixels = each_axis(2, field="marker", kind="pixel")
    scene = film(tmp_path, SPATIAL, pixels, observations=pinhole(rotation=[0.0, 3.0, 0.0]))
    with pytest.raises(ArithmeticError, match="must look at what its pixels show"):
        see(scene)


CHANNELS = [
    {"node": 1, "field": "marker", "kind": "pixel", "axis": 0},
    {"node": 0, "field": "marker", "kind": "pixel", "axis": 1},
    {"node": 0, "field": "marker", "kind": "distance", "to": 1},
    {"node": 0, "field": "acceleration", "axis": 1},
    {"node": 1, "field": "acceleration", "kind": "distance"},
]


@pytest.mark.parametrize(
    ("tables", "place", "fields"),
    [
        (DOUBLE, [0.3, 0.05], ["length", "gravity", "tilt", "angle", "rate"]),
        (PLANAR, [0.2, -0.1], ["gravity", "position", "orientation", "angular_velocity"]),
    ],
    ids=["chain", "planar"],
)
def test_the_derivatives_of_all_channels_are_right(tables: Any, place: Any, fields: list[str], tmp_path: Path) -> None:
    camera = ["camera_focal", "camera_position", "camera_rotation", "camera_origin", "channel_delay"]
    unknowns = {name: {"parameter": name} for name in fields + camera}
    channels = [{**channel, "place": place} for channel in CHANNELS]
    scene = film(tmp_path, tables, channels, observations=pinhole(), unknowns=unknowns)
    objective = scene.objective()
    theta = tensor(objective.start, requires_grad=True)
    assert gradcheck(objective.residual_tensor, (theta,), mode="projected")
    residuals, jacobian = objective.residuals(objective.start), objective.jacobian(objective.start)
    gradient = objective.value_and_gradient(objective.start)[1]
    np.testing.assert_allclose(jacobian.T @ residuals, gradient, rtol=1e-9, atol=1e-9 * np.abs(gradient).max())


def test_the_derivatives_of_places_in_space_are_right() -> None:
    """By pose, velocities and centre of mass of the body; those of motions in space are proven elsewhere."""
    markers, place = RigidMarkers(1, 3), (0.2, -0.1, 0.3)

    def places(state: Tensor, centre: Tensor) -> Tensor:
        params = SimpleNamespace(centre_of_mass=centre)
        every = {name: [state[first + i] for i in range(size)] for name, first, size in ROWS}
        moved = markers.velocity(params, 0, place, every)
        return ops.stack([*markers.position(params, 0, place, every), *moved, *markers.turn_into(every, moved)])

    state = tensor(np.random.default_rng(8).normal(size=(13, 2)), requires_grad=True)
    centre = tensor([[0.05, 0.1, -0.2]], requires_grad=True)
    assert gradcheck(places, (state, centre))
    x, q, v, w = (state.data[first : first + size, 0] for _, first, size in ROWS)
    rotated, arm = Rotation.from_quat(q[[1, 2, 3, 0]]), np.array(place) - centre.data[0]
    moved = v + np.cross(w, rotated.apply(arm))
    expected = [x + rotated.apply(arm), moved, rotated.inv().apply(moved)]
    np.testing.assert_allclose(places(state, centre).data[:, 0], np.concatenate(expected), rtol=1e-12)


def test_a_quaternion_of_any_length_turns() -> None:
    q = np.array([0.3, -0.5, 0.2, 0.9])
    found = turn([tensor(each) for each in 0.97 * q], [0.1, -2.0, 0.7])
    expected = Rotation.from_quat(q[[1, 2, 3, 0]]).apply([0.1, -2.0, 0.7])
    np.testing.assert_allclose([each.item() for each in found], expected, rtol=1e-12)
    assert RigidMarkers(2, 3).place_sizes == (3,)


@pytest.mark.parametrize(
    ("tables", "channel", "camera", "message"),
    [
        (DOUBLE, {"field": "marker", "place": [0.1, 0.2, 0.3]}, {}, "must be 1 or 2 coordinates in the frame"),
        (DOUBLE, {"field": "angle", "place": [0.1]}, {}, 'belongs to the field "marker" or "acceleration"'),
        (DOUBLE, {"field": "marke", "node": 0}, {}, "Did you mean 'marker'?"),
        (DOUBLE, {"field": "marker", "node": 2}, {}, "must be the index of one of 2 nodes"),
        (PLANAR, {"field": "marker", "kind": "pixel"}, {"kind": "pinhole", "focal": 1.0}, "a pinhole camera needs it"),
        (PLANAR, {"field": "marker", "kind": "pixel"}, {"focal": 1.0}, "belongs to the other kind of camera"),
        (PLANAR, {"field": "marker", "kind": "pixel"}, pinhole(rotation=0.1)["camera"], "must be three angles"),
    ],
)
def test_markers_and_cameras_that_cannot_be_are_told(
    tables: Any, channel: Any, camera: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as error:
        film(tmp_path, tables, [{"node": 0, **channel}], observations={"camera": camera} if camera else {})
    assert message in str(error.value)
