"""Controls of a scene: the signals that their numbers stand for, and all that a scene does with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys import plot
from simphys.app.identification import IdentificationInterrupted
from simphys.app.step_graph import draw_step
from simphys.autograd import tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.diagnose.check.scene import check_scene
from simphys.diagnose.health import scene_health
from simphys.experiment.control import Controls, build_controls
from simphys.experiment.scene import Scene
from simphys.experiment.wavelets import ricker, sine_burst
from simphys.scenefile import KnotsSection, PatternSection, SinesSection, WaveletSection

from ..helpers.rounding import assert_equal_but_for_rounding
from ..helpers.small_scenes import KNOTS, SINES, driven_square, merged, soft_square

DT = 0.01
WAVELET: dict[str, Any] = {"kind": "wavelet", "channels": 2, "frequency": 20.0, "amplitude": [2.0, -0.5]}


def controls(tables: dict[str, Any], steps: int = 20, **changes: Any) -> Controls:
    section = {"sines": SinesSection, "knots": KnotsSection, "wavelet": WaveletSection}[tables["kind"]]
    return build_controls(section(**merged(tables, changes)), steps=steps, dt=DT)


def test_sines_are_waves_mixed_for_each_channel_and_limited() -> None:
    found = controls(SINES).signal(20).data
    for t in range(20):
        for a in range(2):
            phases = [20.0 * t * DT + 2 * np.pi * j / 3 for j in range(3)]
            mixed = sum(w * np.sin(phase) for w, phase in zip(SINES["weight"][a], phases, strict=True))
            expected = SINES["amplitude"][a] * np.tanh(mixed + SINES["bias"][a])
            assert found[t, a] == pytest.approx(expected, rel=1e-12)


def test_sines_without_weights_are_zero_and_may_grow_from_there() -> None:
    still = controls(SINES, weight=None, bias=None, amplitude=0.7)
    weight = still.control_weight.requires_grad_()  # type: ignore[attr-defined]
    signal = still.signal(20)
    assert signal.shape == (20, 2) and not signal.data.any()
    (signal[:, 0] ** 3 + signal[:, 0]).sum().backward()
    basis = np.sin(20.0 * DT * np.arange(20)[:, None] + 2 * np.pi * np.arange(3) / 3)
    np.testing.assert_allclose(weight.grad.data, [0.7 * basis.sum(axis=0), np.zeros(3)], atol=1e-13)


def test_a_pattern_is_waves_and_has_nothing_unknown() -> None:
    pattern = build_controls(PatternSection(kind="pattern", waves=4, frequency=20.0), steps=20, dt=DT)
    expected = np.sin(20.0 * DT * np.arange(20)[:, None] + 2 * np.pi * np.arange(4) / 4)
    np.testing.assert_allclose(pattern.signal(20).data, expected, atol=1e-6)
    assert pattern.names() == ()


def test_knots_are_joined_by_straight_lines() -> None:
    found = controls(KNOTS).signal(20).data
    place = np.arange(20) / 19 * 3
    expected = [np.interp(place, np.arange(4), channel) for channel in np.transpose(KNOTS["value"])]
    assert_equal_but_for_rounding(found, np.transpose(expected), ulps=50)


def test_as_many_knots_as_steps_are_the_signal_and_one_knot_is_constant() -> None:
    value = np.random.default_rng(0).normal(size=(7, 2)).tolist()
    np.testing.assert_array_equal(controls(KNOTS, steps=7, value=value).signal(7).data, value)
    np.testing.assert_array_equal(controls(KNOTS, value=[[0.3, 0.4]]).signal(5).data, [[0.3, 0.4]] * 5)
    np.testing.assert_array_equal(controls(KNOTS, steps=1).signal(1).data, KNOTS["value"][:1])


def test_a_wavelet_drives_each_channel_by_its_amplitude() -> None:
    pulse = ricker(DT * np.arange(20), 20.0)
    assert_equal_but_for_rounding(controls(WAVELET).signal(20).data, pulse[:, None] * [2.0, -0.5])
    np.testing.assert_array_equal(
        controls(WAVELET, amplitude=3.0).signal(20).data, controls(WAVELET, amplitude=[3.0, 3.0]).signal(20).data
    )
    burst = controls(WAVELET, wavelet="sine_burst", delay=0.02).signal(20).data
    assert_equal_but_for_rounding(burst[:, 0], 2 * sine_burst(DT * np.arange(20), 20.0, 0.02))


def test_a_row_of_amplitudes_is_the_signal_of_a_member() -> None:
    rows = [[1.0, 0.0], [0.5, 2.0], [0.0, 1.0]]
    found = controls(WAVELET, amplitude=rows).signal(20).data
    assert found.shape == (3, 20, 2)
    for row, signal in zip(rows, found, strict=True):
        np.testing.assert_array_equal(signal, controls(WAVELET, amplitude=row).signal(20).data)


@pytest.mark.parametrize("tables", [SINES, KNOTS, WAVELET], ids=lambda tables: tables["kind"])
def test_a_shorter_horizon_sees_the_first_part_of_the_signal_and_a_longer_one_goes_on(tables: Any) -> None:
    whole = controls(tables)
    assert_equal_but_for_rounding(whole.signal(8).data, whole.signal(20).data[:8])
    beyond = whole.signal(25).data
    assert_equal_but_for_rounding(beyond[:20], whole.signal(20).data)
    if tables is KNOTS:
        assert_equal_but_for_rounding(beyond[19:], [KNOTS["value"][-1]] * 6)


@pytest.mark.parametrize("tables", [SINES, KNOTS, WAVELET], ids=lambda tables: tables["kind"])
def test_the_derivative_of_a_signal_is_right(tables: Any) -> None:
    made = controls(tables)

    def signal(*values: Any) -> Any:
        return made.replace(**dict(zip(made.names(), values, strict=True))).signal(20)

    gradcheck(signal, tuple(value.detach().requires_grad_() for value in made.tensors()))


@pytest.mark.parametrize("tables", [SINES, KNOTS], ids=lambda tables: tables["kind"])
def test_a_scene_is_driven_in_every_mode_and_when_it_is_streamed(tables: Any) -> None:
    scene = driven_square(tables)
    fused, nested = scene.rollout().position.data, scene.rollout(mode="nested").position.data
    np.testing.assert_allclose(fused, nested, rtol=1e-12)
    streamed = np.concatenate([states["position"] for _, states in scene.stream(block=6)])
    assert_equal_but_for_rounding(streamed, fused, ulps=100)
    still = replace(scene, controls=None).rollout().position.data
    assert np.abs(fused - still)[-1].max() > 1e-3


UNKNOWNS: dict[str, dict[str, Any]] = {
    "sines": {
        "weight": {"parameter": "control_weight"},
        "bias": {"parameter": "control_bias", "entries": [1]},
        "amplitude": {"parameter": "amplitude", "entries": [0, 3, 4], "tied": True},
        "push": {"parameter": "velocity", "entries": [[2, 0]]},
    },
    "knots": {"value": {"parameter": "control_value", "entries": [[0, 1], 2]}},
}


def fitted_square(kind: str, **changes: Any) -> Scene:
    return driven_square(SINES if kind == "sines" else KNOTS, unknowns=UNKNOWNS[kind], **changes)


@pytest.mark.parametrize("kind", UNKNOWNS)
def test_controls_are_unknowns_like_any_other_with_the_right_gradient(kind: str) -> None:
    objective = fitted_square(kind).objective()
    theta = objective.start + 0.05
    scene = objective.scene_at(theta)
    natural = objective.unknowns.natural(theta)
    if kind == "sines":
        np.testing.assert_allclose(scene.values()["control_weight"].ravel(), natural[:6])
        assert_equal_but_for_rounding(scene.values()["control_bias"], [0.1, natural[6]])
    else:
        np.testing.assert_allclose(scene.values()["control_value"][2], natural[1:])
    _, gradient = objective.value_and_gradient(theta)
    assert np.abs(gradient).min() > 1e-8
    for direction, slope in zip(np.eye(theta.size), gradient, strict=True):
        ahead, behind = (objective.value_and_gradient(theta + sign * 1e-5 * direction)[0] for sign in (1, -1))
        assert (ahead - behind) / 2e-5 == pytest.approx(slope, rel=1e-6, abs=1e-8 * np.abs(gradient).max())
    np.testing.assert_allclose(objective.jacobian(theta).T @ objective.residuals(theta), gradient, rtol=1e-9)


def test_a_growing_horizon_keeps_the_times_of_knots(tmp_path: Path) -> None:
    (tmp_path / "seen.txt").write_text("0.05 0.1\n0.1 0.2\n0.2 0.3\n")
    channels = [{"column": 1, "field": "position", "node": 0}]
    seen = {"file": str(tmp_path / "seen.txt"), "channels": channels}
    objective = fitted_square("knots", observations=seen).objective()
    short = objective.until(0.5).scene_at(objective.start)
    whole = objective.scene_at(objective.start).control()
    assert short.steps == 10 and whole is not None
    assert_equal_but_for_rounding(short.control().data, whole.data[:10])  # type: ignore[union-attr]


def test_the_certificate_of_a_driven_scene_proves_the_gradient_by_its_control() -> None:
    found = check_scene(driven_square())
    assert found.passed
    ways = {each.claim for each in found.statements if each.name == "control"}
    assert {"nested = fused", "binomial = stored", "adjoint = finite difference", "tangent = adjoint"} <= ways
    assert "Actuate: adjoint = finite difference" in [each.title for each in found.statements]


def test_a_check_in_f64_takes_the_controls_that_a_script_has_exchanged() -> None:
    scene = driven_square(runtime={"precision": "f32"})
    assert scene.controls is not None
    other = replace(scene, controls=scene.controls.replace(control_bias=tensor([0.5, 0.2])))
    assert other.control().dtype == np.float32  # type: ignore[union-attr]
    found = check_scene(other)
    assert found.passed and found.sizes["control"] != check_scene(scene).sizes["control"]


def test_the_health_of_a_driven_scene_tells_of_its_control() -> None:
    found = {each.name: each for each in scene_health(driven_square()).sensitivities}
    assert found["control"].entries == 40 and found["control"].largest > 1e-6
    assert found["amplitude"].vanishing == 8  # of 11 springs three are driven


def test_the_graph_of_a_driven_step_shows_the_control(tmp_path: Path) -> None:
    text, _ = draw_step(fitted_square("sines", output={"folder": str(tmp_path)}))
    assert "control" in text and "Actuate" in text


def test_the_control_is_recorded_and_drawn(tmp_path: Path) -> None:
    scene = driven_square({**SINES, "unit": "1"}, output={"folder": str(tmp_path / "run"), "every": 5})
    run = simphys.simulate(scene)
    signal = scene.control()
    assert signal is not None
    np.testing.assert_array_equal(run["control/value"], signal.data)
    np.testing.assert_array_equal(run["control/step"], np.arange(20))
    np.testing.assert_allclose(run["control/time"], np.arange(20) * DT)
    assert "control.png" in [path.name for path in plot.all_figures(run, tmp_path / "pictures")]
    (axes,) = plot.control(run).axes
    assert axes.get_ylabel() == "control [1]"
    assert axes.get_title(loc="left").startswith("control, 2 actuators: from ")
    curves: list[Any] = list(axes.lines)
    assert [curve.get_label() for curve in curves] == ["actuator 0", "actuator 1"]
    np.testing.assert_array_equal(curves[1].get_ydata(), signal.data[:, 1])


def test_of_many_channels_the_picture_has_a_row_each(tmp_path: Path) -> None:
    actuators = [{"springs": [i]} for i in range(9)]
    scene = driven_square({**KNOTS, "value": np.eye(9)}, geometry={"actuators": actuators})
    axes, bar = plot.control(simphys.simulate(scene, folder=tmp_path / "run")).axes
    signal = scene.control()
    assert signal is not None and bar.get_ylabel() == "control"
    np.testing.assert_array_equal(axes.images[0].get_array(), signal.data.T)
    assert axes.get_ylabel() == "actuator"


def test_a_scene_without_control_has_no_such_picture(tmp_path: Path) -> None:
    scene = soft_square()
    assert scene.control() is None and "control_weight" not in scene.values()
    run = simphys.simulate(scene, folder=tmp_path / "run")
    with pytest.raises(plot.NotRecorded, match="needs control/value, control/time of the run"):
        plot.control(run)


def test_a_fit_of_controls_records_them_and_resumes(tmp_path: Path) -> None:
    term = {"kind": "final_mean", "axis": 0, "target": 0.33}
    optimizer = {"method": "lbfgs", "iterations": 8}
    scene = fitted_square("sines", loss={"terms": [term]}, optimizer=optimizer)
    whole = simphys.identify(scene, folder=tmp_path / "whole")
    assert whole.result.history[-1].loss < 0.01 * whole.result.history[0].loss
    run, signal = whole.recording, whole.scene.control()
    assert signal is not None and run["adjoint/position"].shape == (21, 6, 2)
    np.testing.assert_array_equal(run["control/value"], signal.data)

    def stop(record: Any) -> None:
        if record.index == 2:
            raise KeyboardInterrupt

    with pytest.raises(IdentificationInterrupted):
        simphys.identify(scene, folder=tmp_path / "broken", on_iteration=stop)
    resumed = simphys.identify(scene, folder=tmp_path / "broken", resume=True)
    np.testing.assert_array_equal(resumed.result.theta, whole.result.theta)
    np.testing.assert_array_equal(resumed.recording["control/value"], signal.data)


def test_the_gradient_is_the_same_within_a_limit_on_memory() -> None:
    loss = {"terms": [{"kind": "running_sum", "axis": 1, "target": 0.3}, {"kind": "final_mean", "target": [0.2, 0.3]}]}
    found = []
    for memory in ("all", "20kB"):
        objective = fitted_square("sines", runtime={"memory": memory}, loss=loss).objective()
        found.append(objective.value_and_gradient(objective.start + 0.05))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-12)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-9)
