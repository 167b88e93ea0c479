"""Channels that see an energy: its value, its conservation, its derivatives, a fit, and bad input."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys.autograd import Tensor, gradcheck, runtime, tensor
from simphys.experiment.scene import Scene, build_scene
from simphys.scenefile import ConfigError, from_dict
from simphys.simulator.markers import ENERGIES
from simphys.simulators.rigid.joints.joint import Spring

TIME = {"dt": 1e-3, "steps": 400}
PLANE = {"position": [0.1, 0.7], "mass": 2.0, "inertia": 0.03, "velocity": [0.3, -0.2], "angular_velocity": 3.0}
SPACE = {
    "position": [0.1, 0.0, -0.2],
    "mass": 1.5,
    "inertia": [0.02, 0.03, 0.04, 0.001, -0.002, 0.003],
    "orientation": [0.3, -0.2, 0.5],
    "angular_velocity": [1.0, -2.0, 3.0],
}

SYSTEMS: dict[str, dict[str, Any]] = {
    "chain": {
        "simulator": {"name": "pendulum"},
        "geometry": {"length": [0.4, 0.3]},
        "material": {"mass": [0.5, 0.2], "centre": [0.6, 0.8], "inertia": [0.01, 0.002]},
        "environment": {"tilt": 0.2},
        "state": {"angle": [1.0, -0.4], "rate": [2.0, -1.0]},
    },
    "spherical": {
        "simulator": {"name": "pendulum", "kind": "spherical"},
        "geometry": {"length": 0.4},
        "material": {"mass": 0.5},
        "state": {"direction": [0.6, 0.0, -0.8], "rate": [0.0, 2.0, 0.0]},
    },
    "springs": {
        "simulator": {"name": "mass_spring", "integrator": "velocity_verlet"},
        "geometry": {
            "position": [[0.0, 0.1], [0.4, 0.2]],
            "springs": [[0, 1]],
            "anchors": [{"node": 0, "point": [0.0, 0.5], "stiffness": 20.0}],
        },
        "material": {"mass": [0.3, 0.5], "stiffness": 40.0, "rest_length": 0.3},
        "environment": {"gravity": [0.0, -9.81], "ground": {"height": -0.2, "stiffness": 500.0}},
        "state": {"velocity": [[0.1, 0.0], [0.0, -1.0]]},
    },
    "charges": {
        "simulator": {"name": "charges"},
        "geometry": {"position": [[0.0, 0.0], [1.0, 0.2], [0.3, 0.9]]},
        "material": {"charge": [1.0, -0.5, 0.7], "mass": [1.0, 2.0, 1.5], "coupling": 1.0, "softening": 0.1},
        "state": {"velocity": [[0.3, 0.0], [0.0, 0.2], [-0.1, 0.1]]},
    },
    "plane": {
        "simulator": {"name": "rigid"},
        "bodies": [PLANE, {"position": [1.0, 0.0], "fixed": True}],
        "springs": [{"a": 0, "anchor_a": [0.2, 0.7], "anchor_b": [0.0, 1.5], "stiffness": 30.0, "length": 0.5}],
        "environment": {"gravity": [0.0, -9.81]},
    },
    "space": {
        "simulator": {"name": "rigid"},
        "bodies": [SPACE],
        "springs": [
            {"a": 0, "anchor_a": [0.2, 0.1, -0.2], "anchor_b": [0.0, 0.0, 0.5], "stiffness": 30.0, "length": 0.5}
        ],
        "environment": {"gravity": [0.0, 0.0, -9.81]},
    },
}

SYSTEMS["moved anchors"] = SYSTEMS["space"] | {
    "values": {"hole": {"parameter": "spring_anchor_a", "value": [[0.12, 0.08, -0.05]]}}
}
BALLS = {
    "simulator": {"name": "billiards"},
    "time": {"dt": 0.01, "steps": 60},
    "geometry": {"position": [[0.0, 0.0], [0.3, 0.02]]},
    "material": {"radius": 0.03, "mass": [0.2, 0.3], "restitution": 0.9},
    "table": {"deceleration": 0.2},
    "state": {"velocity": [[1.5, 0.0], [0.2, 0.1]]},
}


def scene_of(name: str, folder: Path, *, rows: Any = None, **changes: Any) -> Scene:
    """A system whose energies are seen every 0.04 s."""
    time = 0.04 * np.arange(1, 11)
    np.savetxt(folder / "energy.txt", np.column_stack([time, np.zeros((10, 3)) if rows is None else rows]))
    channels = [{"column": 1 + k, "field": field, "unit": "J", "sigma": 1e-3} for k, field in enumerate(ENERGIES)]
    seen = {"file": str(folder / "energy.txt"), "channels": channels}
    return build_scene(from_dict({"time": TIME, **SYSTEMS[name], "observations": seen, **changes}))


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_sum_is_conserved_while_both_parts_change(name: str, tmp_path: Path) -> None:
    scene = scene_of(name, tmp_path)
    kinetic, potential, total = scene.predict(scene.rollout()).data.T
    np.testing.assert_allclose(total, kinetic + potential, rtol=1e-12)
    assert np.ptp(kinetic) > 0.01 * abs(kinetic).max() and np.ptp(potential) > 1e-4
    assert np.ptp(total) < 2e-3 * max(np.ptp(kinetic), np.ptp(potential))


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_derivatives_are_right(name: str, tmp_path: Path) -> None:
    """Of both parts by all parameters and all components of the state, at some times."""
    scene = scene_of(name, tmp_path)
    markers = scene.model.describe_markers()
    state = scene.state.arrays()
    random = np.random.default_rng(0)
    moved = [np.stack([values + 0.1 * random.standard_normal(values.shape) for _ in range(3)])
             for values in state.values()]  # fmt: skip
    known = {"mass", "inertia", "length", "centre", "gravity", "tilt", "stiffness", "rest_length", "ground_stiffness",
             "charge", "coupling", "softening", "spring_stiffness", "spring_length",
             "spring_anchor_a", "spring_anchor_b", "centre_of_mass"}  # fmt: skip
    names = [each for each in scene.params.names() if each in known and getattr(scene.params, each).size]

    def energies(*given: Tensor) -> tuple[Tensor, ...]:
        params = scene.params.replace(**dict(zip(names, given[len(moved) :], strict=True)))
        along = dict(zip(state, given, strict=False))
        return tuple([markers.energy(params, each, along) for each in ENERGIES[:2]])

    leaves = [*moved, *[getattr(scene.params, each).data for each in names]]
    assert gradcheck(energies, tuple([tensor(each, requires_grad=True) for each in leaves]))


@pytest.mark.parametrize("name", ["springs", "plane"])
def test_a_spring_without_length_pulls_nowhere(name: str) -> None:
    """Both ends in one place, where the length has a kink; in single precision no small number hides it."""
    tables = SYSTEMS[name] | {"time": TIME}
    with runtime.using(runtime.Settings(precision="f32")):
        scene = build_scene(from_dict(tables | {"runtime": {"precision": "f32"}}))
        markers, shape = scene.model.describe_markers(), scene.state.position.shape
        along = {field: tensor(values[None]) for field, values in scene.state.arrays().items()}
        x = along["position"] = tensor(np.zeros((1, *shape), np.float32), requires_grad=True)
        if name == "plane":
            markers = replace(markers, springs=(Spring(0, 1, (0.0, 0.0), (0.0, 0.0)),))
            params = scene.params.replace(spring_length=tensor([0.0]), spring_stiffness=tensor([30.0]))
        else:
            params = scene.params.replace(ground_stiffness=tensor(0.0))
        markers.energy(params, "potential_energy", along).sum().backward()
        weight = -params.mass.data[:, None] * params.gravity.data
        weight[markers.nodes - 1 :] = 0.0  # the fixed one
        assert x.grad is not None
        np.testing.assert_allclose(x.grad.data[0], weight, rtol=1e-6)


def test_balls_have_the_energy_of_their_motion(tmp_path: Path) -> None:
    """The cloth takes m a of it on each way, an impact some at once; a fit tells both masses."""
    path = tmp_path / "energy.txt"
    np.savetxt(path, np.column_stack([0.02 * np.arange(1, 30), np.zeros(29)]))
    seen = {"file": str(path), "channels": [{"column": 1, "field": "kinetic_energy", "unit": "J", "sigma": 1e-4}]}
    scene = build_scene(from_dict({**BALLS, "observations": seen}))
    motion = scene.rollout()
    speeds = (motion.states.velocity.data**2).sum(axis=2)
    found = scene.predict(motion).data[:, 0]
    np.testing.assert_allclose(found, 0.5 * (speeds @ [0.2, 0.3])[2:60:2], rtol=1e-12)
    assert found[0] - found[-1] > 0.05
    np.savetxt(path, np.column_stack([0.02 * np.arange(1, 30), found]))
    unknowns = {"mass": {"parameter": "mass", "start": [0.25, 0.25], "transform": "log", "unit": "kg"}}
    scene = build_scene(from_dict({**BALLS, "observations": seen, "unknowns": unknowns}))
    objective = scene.objective()
    assert gradcheck(objective.loss_tensor, (tensor(objective.start + 0.01, requires_grad=True),))
    np.testing.assert_allclose([row.value for row in simphys.identify(scene).unknowns], [0.2, 0.3], rtol=1e-6)
    with pytest.raises(ConfigError, match=r"channels\.0\.field: .* known .* Name kinetic_energy\."):
        from_dict({**BALLS, "observations": {**seen, "channels": [{"column": 1, "field": "energy"}]}})


def test_known_energies() -> None:
    """A pendulum of 0.4 m and 0.5 kg at 60 degrees with 2 rad/s: m l^2 w^2 / 2 and -m g l cos 60."""
    tables = SYSTEMS["spherical"] | {"time": TIME}
    tables = tables | {"state": {"direction": [np.sin(np.pi / 3), 0.0, -0.5], "rate": [0.0, 2.0, 0.0]}}
    scene = build_scene(from_dict(tables))
    markers = scene.model.describe_markers()
    along = {field: tensor(values[None]) for field, values in scene.state.arrays().items()}
    assert markers.energy(scene.params, "kinetic_energy", along).data[0] == pytest.approx(0.5 * 0.5 * 0.16 * 4)
    gravity = abs(scene.params.gravity.data).max()
    assert markers.energy(scene.params, "potential_energy", along).data[0] == pytest.approx(-0.5 * gravity * 0.4 * 0.5)


def test_a_fit_finds_mass_and_damping_from_energies(tmp_path: Path) -> None:
    """The scale of an energy tells a mass, which no motion of a pendulum does."""
    material = {"mass": [0.5, 0.2], "centre": [0.6, 0.8], "inertia": [0.01, 0.002], "damping": 0.02}
    made = scene_of("chain", tmp_path, material=material)
    noise = 1e-3 * np.random.default_rng(1).standard_normal((10, 3))
    rows = made.predict(made.rollout()).data + noise
    unknowns = {
        "mass": {"parameter": "mass", "start": [0.4, 0.26], "transform": "log", "unit": "kg"},
        "damping": {"parameter": "damping", "tied": True, "start": 0.03, "bounds": [0, np.inf]},
    }
    fit = simphys.identify(scene_of("chain", tmp_path, rows=rows, material=material, unknowns=unknowns))
    for row, true in zip(fit.unknowns, [0.5, 0.2, 0.02], strict=True):
        assert abs(row.value - true) < 3 * row.standard_error < 0.1 * true, row


def test_the_gradient_of_a_broken_energy_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unknowns = {"mass": {"parameter": "mass", "transform": "log"}}
    objective = scene_of("chain", tmp_path, unknowns=unknowns).objective()
    theta = tensor(objective.start + 0.1, requires_grad=True)
    assert gradcheck(objective.loss_tensor, (theta,))
    kind = type(objective.scene.model.describe_markers())
    right = kind.kinetic_energy

    def broken(self: Any, params: Any, state: Any) -> Tensor:
        return right(self, params.replace(mass=tensor(params.mass.data)), state)

    monkeypatch.setattr(kind, "kinetic_energy", broken)
    with pytest.raises(AssertionError):
        gradcheck(objective.loss_tensor, (theta,))


@pytest.mark.parametrize(
    ("name", "channel", "message"),
    [
        ("chain", {"field": "energy", "node": 0}, r"channels\.0\.node: an energy is that of all bodies together"),
        ("chain", {"field": "energy", "kind": "angle"}, r"channels\.0\.kind: an energy is a number"),
        ("chain", {"field": "angle"}, r"channels\.0\.node: is missing"),
        ("chain", {"field": "energies"}, r"channels\.0\.field: .*Did you mean .energy"),
        ("chain", {"field": "energy", "to": 1}, r"channels\.0\.to: has no meaning for an energy"),
        ("chain", {"field": "energy", "axis": 1}, r"channels\.0\.axis: has no meaning for an energy"),
        ("chain", {"field": "energy", "modulo": 6.28}, r"channels\.0\.modulo: has no meaning for an energy"),
        ("chain", {"field": "energy", "place": [0.1]}, r"channels\.0\.place: belongs to the field"),
    ],
)
def test_what_does_not_fit_is_named(name: str, channel: dict[str, Any], message: str, tmp_path: Path) -> None:
    seen = {"file": str(tmp_path / "energy.txt"), "channels": [{"column": 1, **channel}]}
    with pytest.raises(ConfigError, match=message):
        from_dict({"time": TIME, **SYSTEMS[name], "observations": seen})


def test_compliant_contacts_have_no_potential(tmp_path: Path) -> None:
    tables = SYSTEMS["plane"] | {"contact": {"stiffness": 1e3}}
    tables["simulator"] = {"name": "rigid", "law": "compliant"}
    seen = {"file": str(tmp_path / "energy.txt"), "channels": [{"column": 1, "field": "energy"}]}
    with pytest.raises(ConfigError, match=r"channels\.0\.field: .* known .* Name kinetic_energy\."):
        from_dict({"time": TIME, **tables, "observations": seen})
