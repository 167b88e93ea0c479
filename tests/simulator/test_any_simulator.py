"""A simulator without bodies is fitted, simulated, recorded and drawn like any other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys import plot
from simphys.app.step_graph import draw_step
from simphys.autograd.errors import InputError
from simphys.scenefile import ConfigError, Fields

from ..helpers.pendulum_scene import TRUTH, PendulumConfig, pendulums, register
from ..helpers.rounding import assert_equal_but_for_rounding
from ..helpers.small_scenes import soft_square


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch)


def test_unknowns_are_identified_and_everything_is_recorded_and_drawn(tmp_path: Path) -> None:
    fit = simphys.identify(pendulums(tmp_path))
    assert fit.result.success
    expected = [TRUTH["stiffness"][0], TRUTH["stiffness"][2], TRUTH["damping"]]  # type: ignore[index]
    np.testing.assert_allclose([row.value for row in fit.unknowns], expected, rtol=1e-6)
    assert fit.rmse.keys() == {"angle of node 0", "rate of node 2"}
    run = fit.recording
    motion = fit.scene.rollout()
    for name in ("angle", "rate"):
        np.testing.assert_array_equal(run[f"fields/{name}/value"], getattr(motion, name).data)
        assert run[f"adjoint/{name}"].shape == (201, 3)
    assert run.attrs("fields/angle/value") == {"unit": "rad"}
    assert "particles" not in run
    pictures = plot.all_figures(run, tmp_path / "pictures")
    assert [path.name for path in pictures] == ["fit.png", "convergence.png", "adjoint.png", "fields.png"]


def test_the_fields_are_drawn_one_a_panel_a_curve_a_number(tmp_path: Path) -> None:
    run = simphys.simulate(pendulums(tmp_path))
    figure = plot.fields(run)
    assert [axes.get_ylabel() for axes in figure.axes] == ["angle [rad]", "rate"]
    curves: list[Any] = list(figure.axes[0].lines)
    assert [curve.get_label() for curve in curves] == ["[0]", "[1]", "[2]"]
    np.testing.assert_array_equal(curves[1].get_ydata(), run["fields/angle/value"][:, 1])


def test_of_many_numbers_the_spread_is_drawn(tmp_path: Path) -> None:
    many = {"material": {"stiffness": [2.0] * 20}, "start": {"angle": list(np.linspace(0, 1, 20))}}
    run = simphys.simulate(pendulums(tmp_path, **many, unknowns=None, observations=None))
    (line,) = plot.fields(run).axes[0].lines
    np.testing.assert_allclose(np.asarray(line.get_ydata()), np.median(run["fields/angle/value"], axis=1))


def test_a_run_of_bodies_has_no_such_picture(tmp_path: Path) -> None:
    run = simphys.simulate(soft_square(), folder=tmp_path / "run")
    with pytest.raises(plot.NotRecorded, match="needs fields of the run"):
        plot.fields(run)


@pytest.mark.parametrize("kind", ["final_state", "running_sum"])
def test_every_number_is_a_node_of_a_loss(kind: str, tmp_path: Path) -> None:
    term = {"kind": kind, "field": "angle", "nodes": [0, 2], "target": [0.1, -0.1], "weight": 3.0}
    scene = pendulums(tmp_path, observations=None, loss={"terms": [term]})
    motion = scene.rollout()
    away = motion.angle.data[:, [0, 2]] - [0.1, -0.1]
    squares = np.mean(away**2, axis=1)
    expected = 3.0 * (squares[-1] if kind == "final_state" else scene.dt * squares[1:].sum())
    assert float(scene.loss(motion)) == pytest.approx(expected, rel=1e-12)
    one = pendulums(tmp_path, observations=None, loss={"terms": [{**term, "target": 0.1}]})
    assert float(one.loss(one.rollout())) != pytest.approx(expected, rel=1e-3)


def test_an_offset_counts_from_the_start_of_its_field(tmp_path: Path) -> None:
    term = {"kind": "final_state", "field": "angle", "target_offset": 0.2}
    scene = pendulums(tmp_path, observations=None, loss={"terms": [term]})
    motion = scene.rollout()
    away = motion.angle.data[-1] - (motion.angle.data[0] + 0.2)
    assert float(scene.loss(motion)) == pytest.approx(np.mean(away**2), rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"loss": {"terms": [{"kind": "final_state", "field": "angle", "target": [0.1, 0.2]}]}},
            "loss.terms.0.target: must be a number or [3] of them; found [0.1, 0.2]. Give a number, or one for each",
        ),
        (
            {"loss": {"terms": [{"kind": "final_state", "target": 0.1}]}},
            'loss.terms.0.field: must be a component of the state; found "position". Known: angle, rate.',
        ),
        (
            {"observations": {"channels": [{"column": 1, "field": "angle", "node": 3}]}},
            "observations.channels.0.node: must be the index of one of 3 nodes, counted from 0; found 3. ",
        ),
        (
            {"observations": {"channels": [{"column": 1, "field": "angle", "node": [0, 1]}]}},
            "observations.channels.0.node: must be the indices of a component of angle, which has the shape [3]; found",
        ),
    ],
)
def test_what_does_not_fit_the_state_is_told(changes: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        pendulums(tmp_path, **changes)
    assert str(caught.value).startswith(f"scene: {told}")


def test_the_graph_of_a_step_is_drawn(tmp_path: Path) -> None:
    text, picture = draw_step(pendulums(tmp_path))
    assert "stiffness" in text and "damping" in text and picture.exists()


def test_its_memory_can_be_limited(tmp_path: Path) -> None:
    whole = pendulums(tmp_path).objective()
    part = pendulums(tmp_path, runtime={"memory": "40kB"}).objective()
    expected, found = (each.value_and_gradient(whole.start) for each in (whole, part))
    assert_equal_but_for_rounding(found[0], expected[0], ulps=400)
    assert_equal_but_for_rounding(found[1], expected[1], ulps=400)


def without_mass(self: PendulumConfig) -> Fields:
    return Fields(params={"stiffness": np.ones(3)}, state={"angle": np.ones(3), "rate": np.ones(3)})


def with_more(self: PendulumConfig) -> Fields:
    params = {"stiffness": np.ones(3), "damping": np.array(0.0)}
    return Fields(params=params, state={"angle": np.ones(3), "rate": np.ones(3), "speed": np.ones(3)})


@pytest.mark.parametrize(
    ("function", "made", "told"),
    [
        ("build_model", lambda self: None, "must return the Model of the scene; found None. End it with `return`"),
        ("build_fields", lambda self: None, "must return the Fields of the scene; found None. End it with `return"),
        ("build_fields", lambda self: {}, "must return the Fields of the scene; found a dict. End it with `return"),
        ("build_fields", without_mass, "must give each field of Params: stiffness, damping; found no damping. Add"),
        ("build_fields", with_more, "must give each field of State: angle, rate; found unknown speed. Add"),
    ],
)
def test_what_a_config_builds_is_told_where_it_is_wrong(
    function: str, made: Any, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes: dict[str, Any] = {"observations": None, "unknowns": None}
    pendulums(tmp_path)
    monkeypatch.setattr(PendulumConfig, function, made)
    with pytest.raises(InputError, match=f"^PendulumConfig.{function}: " + re.escape(told)):
        pendulums(tmp_path, **changes)
