"""A misfit names its cause: the number of the model, of a sensor or of the start that the fit takes for known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys.app.identification import Identification
from simphys.assess import omitted
from simphys.assess.criteria import Criterion
from simphys.assess.lags import describe_lags, measure_lags
from simphys.assess.omitted import Omitted, find_omitted
from simphys.experiment.scene import Scene

from ..experiment.test_several import STARTS, build, tables
from ..helpers.small_scenes import TRUTH, oscillator
from ..simulators.rigid.joints.test_assembly import arm

NO_DRAG = {"unknowns": {"drag": None}, "material": {"drag": 0.0}}


def seen_as(folder: Path, change: Callable[[Any, Any], Any], **changes: Any) -> Scene:
    """The oscillator, whose recording another sensor made: `change` makes its values of times and values."""
    oscillator(folder / "seen.txt")
    time, value = np.loadtxt(folder / "seen.txt").T
    np.savetxt(folder / "seen.txt", np.column_stack([time, change(time, value)]))
    return oscillator(folder / "seen.txt", **changes)


def find(scene: Scene) -> dict[str, Omitted]:
    """What a fit omits, by the name of the field, the best one first."""
    fit = simphys.identify(scene)
    assert fit.uncertainty is not None
    return {each.parameter: each for each in find_omitted(scene.objective(), fit.uncertainty)}


def misfit(fit: Identification) -> Criterion:
    return next(each for each in fit.criteria if each.name == "misfit")


def test_a_force_that_the_model_lacks_is_named_with_its_value(tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt", **NO_DRAG)
    found = find(scene)
    assert set(found) == {"drag", "damping", "air_drag"}  # of a single mass the first two do the same
    assert found["drag"].found == pytest.approx(TRUTH["drag"], abs=0.01) and found["drag"].value == 0
    fit = simphys.identify(scene)
    assert "drag[0] 0 -> 0.09" in misfit(fit).remedy and "leaves 26 %" in misfit(fit).remedy


PENDULUM: dict[str, Any] = {
    "simulator": {"name": "pendulum"},
    "geometry": {"length": [0.6]},
    "material": {"mass": 0.5, "damping": 0.005},
    "state": {"angle": [1.2]},
}
BALL: dict[str, Any] = {
    "simulator": {"name": "mass_spring"},
    "geometry": {"position": [[0.0]]},
    "material": {"mass": 0.003},
    "state": {"velocity": [[8.0]]},
    "environment": {"gravity": [-9.81]},
}
ROD: dict[str, Any] = {
    "simulator": {"name": "rigid"},
    "bodies": [{"position": [0.3, 0.0], "mass": 0.5, "inertia": 0.02}],
    "joints": [{"kind": "revolute", "a": 0, "anchor": [0.0, 0.0], "start": 0.3}],
    "environment": {"gravity": [0.0, -9.81]},
}


@pytest.mark.parametrize(
    ("tables", "field", "force", "found"),
    [
        (PENDULUM, "angle", {"material": {"mass": 0.5, "damping": 0.005, "drag": 0.02}}, "drag 0 -> 0.0"),
        (
            PENDULUM,
            "angle",
            {"material": {"mass": 0.5, "damping": 0.005, "dry_friction": 0.04}},
            "dry_friction 0 -> 0.0",
        ),
        (BALL, "position", {"material": {"mass": 0.003, "air_drag": 2e-5}}, "air_drag 0 -> 1.999"),
        (ROD, "orientation", {"joints": [{**ROD["joints"][0], "dry_friction": 0.03}]}, "joint_dry_friction 0 -> 0.0"),
    ],
)
def test_a_force_that_the_model_has_on_demand_is_named(
    tables: dict[str, Any], field: str, force: dict[str, Any], found: str, tmp_path: Path
) -> None:
    """Friction and drag take time, so that a model without them does not know their parameters."""
    time = {"dt": 0.01, "steps": 600}
    motion = build({**tables, **force, "time": time}).rollout()
    noise = 2e-3 * np.random.default_rng(0).standard_normal(150)
    angle = getattr(motion.states, field).data[4::4].reshape(-1)
    np.savetxt(tmp_path / "seen.txt", np.column_stack([0.04 * np.arange(1, 151), angle + noise]))
    unit = "m" if field == "position" else "rad"
    channel = {"column": 1, "field": field, "node": 0, "unit": unit, "sigma": 2e-3}
    seen = {"file": str(tmp_path / "seen.txt"), "channels": [channel]}
    unknowns = (
        {"gravity": {"parameter": "gravity", "entries": [1]}} if tables is ROD else {"g": {"parameter": "gravity"}}
    )
    scene = build({**tables, "time": time, "observations": seen, "unknowns": unknowns})
    fit = simphys.identify(scene)
    assert misfit(fit).verdict != "passed" and f"what explains it: {found}" in misfit(fit).remedy
    assert scene.params.arrays().keys() == fit.scene.params.arrays().keys()
    again = build({**tables, **force, "time": time, "observations": seen, "unknowns": unknowns})
    assert misfit(simphys.identify(again)).verdict == "passed"


def test_values_of_forces_on_demand_are_enough(tmp_path: Path) -> None:
    value = {"brake": {"parameter": "drag", "value": 0.02}}
    one = build({**PENDULUM, "time": {"dt": 0.01, "steps": 50}, "values": value})
    other = build(
        {**PENDULUM, "time": {"dt": 0.01, "steps": 50}, "material": {"mass": 0.5, "damping": 0.005, "drag": 0.02}}
    )
    np.testing.assert_array_equal(one.rollout().angle.data, other.rollout().angle.data)


def test_a_sensor_with_an_offset_is_named(tmp_path: Path) -> None:
    found = find(seen_as(tmp_path, lambda time, value: value + 0.05))
    assert found["channel_offset"].found == pytest.approx(0.05, abs=0.005)
    assert found["channel_offset"].label == "offset of position of node 0 (channel_offset)"


def test_a_sensor_that_is_late_is_named(tmp_path: Path) -> None:
    found = find(seen_as(tmp_path, lambda time, value: np.interp(time - 0.05, time, value)))
    assert found["channel_delay"].found == pytest.approx(0.05, abs=0.005)


def test_a_recording_that_began_before_the_motion_is_told_to_begin_later(tmp_path: Path) -> None:
    scene = seen_as(tmp_path, lambda time, x: np.interp(time - 1.0, time, x))
    fit = simphys.identify(scene)
    assert "is at rest for the first" in misfit(fit).remedy and "set observations.begin" in misfit(fit).remedy


def test_a_clock_that_drifts_is_told_from_a_force(tmp_path: Path) -> None:
    """The clock is 0.2 s fast after 20 s, and was right at the start."""
    time, rate = np.linspace(0.05, 19.5, 400), np.sqrt(TRUTH["stiffness"])
    seen = np.exp(-0.5 * TRUTH["drag"] * time) * np.cos(rate * time) + 0.01 * np.random.default_rng(3).standard_normal(
        400
    )
    np.savetxt(tmp_path / "seen.txt", np.column_stack([time + 5e-4 * time**2, seen]))
    longer = {"time": {"duration": 20.0}, "optimizer": {"horizon": "growing"}}
    scene = oscillator(tmp_path / "seen.txt", **longer)
    fit = simphys.identify(scene)
    assert "its clock may drift, or the frequency change" in misfit(fit).remedy
    assert fit.uncertainty is not None
    (found,) = measure_lags(scene.objective().scene_at(fit.uncertainty.theta))
    assert found.explained > 0.75 and np.ptp(found.lags) > 0.05
    without = oscillator(tmp_path / "damped.txt", **NO_DRAG)
    pushed = simphys.identify(without)
    assert pushed.uncertainty is not None
    assert not describe_lags(without.objective(), pushed.uncertainty.theta)


def test_a_column_in_another_unit_is_named(tmp_path: Path) -> None:
    scene = seen_as(tmp_path, lambda time, value: 1000 * value, unknowns={"start": None})
    found = find(scene)
    assert found["channel_gain"].found == pytest.approx(1000, rel=0.01)


def test_one_of_several_recordings_with_another_gain_is_named(tmp_path: Path) -> None:
    given = tables(tmp_path)
    del given["unknowns"]["start"]
    for experiment, start in zip(given["experiments"], STARTS, strict=True):
        experiment["values"]["begin"]["value"] = start
    lines = Path(given["observations"]["file"]).read_text().splitlines()
    changed = [f"1.0,{time},{1.2 * float(x)}" for time, x in (line.split(",")[1:] for line in lines[61:121])]
    Path(given["observations"]["file"]).write_text("\n".join([*lines[:61], *changed, *lines[121:]]))
    found = find(build(given))
    assert found["channel_gain"].label == "gain of x (channel_gain), experiment 2"
    assert found["channel_gain"].found == pytest.approx(1.2, rel=0.01)


def test_a_single_number_that_is_sought_is_not_named_again(tmp_path: Path) -> None:
    """The height of a ground, which is no list, is all that the fit has."""
    others = dict.fromkeys(("stiffness", "drag", "start"))
    sought = {"parameter": "ground_height", "scale": 0.1}
    ground = {"ground": {"height": 0.1, "stiffness": 5.0}}
    scene = seen_as(
        tmp_path, lambda time, value: value + 0.05, environment=ground, unknowns={**others, "height": sought}
    )
    found = find(scene)
    assert found and "ground_height" not in found


def test_nothing_is_named_where_nothing_explains_the_recording(tmp_path: Path) -> None:
    fit = simphys.identify(seen_as(tmp_path, lambda time, value: np.sin(time**2)))
    assert misfit(fit).verdict == "failed" and misfit(fit).remedy.startswith("Look at fit.png: a wrong column")


def test_a_bound_that_holds_the_fit_back_is_the_explanation(tmp_path: Path) -> None:
    fit = simphys.identify(oscillator(tmp_path / "seen.txt", unknowns={"stiffness": {"bounds": [5.0, 8.0]}}))
    assert misfit(fit).verdict == "failed" and "explains" not in misfit(fit).remedy


def test_residuals_that_are_noise_ask_for_another_sigma(tmp_path: Path) -> None:
    fit = simphys.identify(seen_as(tmp_path, lambda time, value: 1000 * value))  # the start explains the unit
    assert misfit(fit).verdict == "failed" and "is sigma 964 times the stated one?" in misfit(fit).remedy


def test_long_motions_are_explained_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(omitted, "SHORT", 0)
    fit = simphys.identify(oscillator(tmp_path / "seen.txt", **NO_DRAG))
    assert misfit(fit).verdict != "passed" and "explains" not in misfit(fit).remedy


def test_no_start_is_named_that_a_scene_may_not_seek(tmp_path: Path) -> None:
    """The start of an arm's joints explains its recording; that of a body would tear them."""
    scene = arm(tmp_path, unknowns={"damping": {"parameter": "joint_damping", "tied": True, "start": 0.1}})
    found = find(scene)
    assert set(found) == {"joint_start"}
    sections = omitted._list_sections(scene, scene.config.unknowns, scene.params)
    assert not {section.parameter for _, section in sections} & {"position", "orientation", "velocity"}


def test_noise_that_is_stated_need_not_be_explained(tmp_path: Path) -> None:
    """An offset of 2 sigma explains all of the misfit but the noise, which is half of it."""
    scene = seen_as(tmp_path, lambda time, value: value + 0.02)
    fit = simphys.identify(scene)
    assert misfit(fit).verdict == "doubtful" and "offset of position of node 0" in misfit(fit).remedy


def test_another_optimum_of_the_same_unknowns_is_no_number_that_the_model_lacks(tmp_path: Path) -> None:
    """A sensor of the distance from the middle shows each swing twice: a stiffer spring is a local optimum."""
    channel = {"column": 1, "kind": "distance", "field": "position", "node": 0, "unit": "m", "sigma": 0.01}
    start = {"stiffness": {"start": 16.0}, "speed": {"parameter": "velocity", "entries": [0], "scale": 1.0}}
    scene = seen_as(tmp_path, lambda time, value: abs(value), unknowns=start, observations={"channels": [channel]})
    fit = simphys.identify(scene)
    assert fit.result.status == "converged" and fit.unknowns[0].value > 15 and misfit(fit).verdict == "failed"
    assert misfit(fit).remedy.startswith("This is a local optimum: start [unknowns] from ")
    assert f"stiffness {fit.unknowns[0].value:.5g} -> 8.99" in misfit(fit).remedy
