"""Several recordings in one fit: a batch gives what one after another gives, and the right derivatives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys.app.health_report import write_health
from simphys.autograd import tensor
from simphys.autograd.errors import InputError
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.diagnose.check.scene import check_scene
from simphys.diagnose.health import scene_health
from simphys.experiment.scene import Scene
from simphys.experiment.several import make_batch, unbind
from simphys.record import Recording, list_parts
from simphys.report.build import make_page
from simphys.scenefile import ConfigError, load

from ..helpers.small_scenes import build, oscillator, soft_square

STIFFNESS, STARTS, MASSES = 9.0, [1.0, 0.6, -0.8], [1.0, 1.5, 2.0]
"""Three releases of one spring with three masses."""
DURATIONS = [3.0, 2.0, 3.0]


def tables(tmp_path: Path, **changes: Any) -> dict[str, Any]:
    """Three trials in one file, made with these values and noise of 0.01; unknown: the spring and each start."""
    file = tmp_path / "trials.csv"
    simulator: dict[str, Any] = {
        "simulator": {"name": "mass_spring", "integrator": "velocity_verlet"},
        "time": {"dt": 0.01},
        "geometry": {"position": [[0.5]], "anchors": [{"node": 0, "point": [0.0], "stiffness": 7.0}]},
    }
    if not file.exists():
        random, rows = np.random.default_rng(3), []
        for place, (start, mass, end) in enumerate(zip(STARTS, MASSES, DURATIONS, strict=True)):
            times = np.sort(random.uniform(0, end, 60))
            rate = np.sqrt(STIFFNESS / mass)
            seen = start * np.cos(rate * times) + 0.01 * random.standard_normal(60)
            rows.append(np.column_stack([np.full(60, place), times + 10 * place, seen]))
        np.savetxt(file, np.concatenate(rows), delimiter=",", header="trial,time,x", comments="")
    experiments = [
        {
            "observations": {"trial": place, "window": [10.0 * place, 10.0 * place + end]},
            "values": {
                "mass": {"parameter": "mass", "entries": [0], "value": mass},
                "begin": {"parameter": "position", "entries": [0], "value": 0.8 * start},
            },
        }
        for place, (start, mass, end) in enumerate(zip(STARTS, MASSES, DURATIONS, strict=True))
    ]
    channel = {"column": "x", "field": "position", "node": 0, "unit": "m", "sigma": 0.01}
    return {
        **simulator,
        "observations": {"file": str(file), "time": "time", "trials": "trial", "channels": [channel]},
        "experiments": experiments,
        "unknowns": {
            "spring": {"parameter": "stiffness", "entries": [0], "transform": "log", "truth": STIFFNESS},
            "start": {"parameter": "position", "entries": [0], "experiments": "each"},
        },
        "output": {"folder": str(tmp_path / "run")},
    } | changes


def test_a_batch_gives_the_losses_of_one_after_another(tmp_path: Path) -> None:
    scene = build(tables(tmp_path))
    assert make_batch(scene.experiments) is not None
    together = scene.losses(scene.rollout()).data
    alone = [part.loss(part.rollout()).item() for part in scene.experiments]
    # The steps' rounding counts a hundredfold in units of the noise.
    np.testing.assert_allclose(together, alone, rtol=1e-11)
    assert scene.loss(scene.rollout()).item() == pytest.approx(sum(alone), rel=1e-11)
    assert [len(found.steps) - 1 for found in scene.rollout()] == [part.steps for part in scene.experiments]
    limited = build(tables(tmp_path), runtime={"memory": "10MB"})
    assert make_batch(limited.experiments) is None
    np.testing.assert_allclose(limited.losses(limited.rollout()).data, alone, rtol=1e-11)


def test_the_derivatives_of_shared_and_of_own_unknowns_are_right(tmp_path: Path) -> None:
    objective = build(tables(tmp_path)).objective()
    assert objective.labels == ["spring", *(f"start, experiment {place}" for place in (1, 2, 3))]
    theta = objective.start + 0.05
    assert gradcheck(objective.loss_tensor, (tensor(theta, requires_grad=True),))
    value, gradient = objective.value_and_gradient(theta)
    residuals, jacobian = objective.residuals(theta), objective.jacobian(theta)
    assert value == pytest.approx(0.5 * residuals @ residuals) and residuals.size == 180
    np.testing.assert_allclose(jacobian.T @ residuals, gradient, rtol=1e-9)
    for place in range(3):  # a start moves its own recording alone
        rows = np.flatnonzero(jacobian[:, 1 + place]) // 60
        assert set(rows.tolist()) == {place}


def test_the_parts_of_an_array_have_the_right_derivative() -> None:
    x = tensor(np.random.default_rng(0).normal(size=(3, 2, 2)), requires_grad=True)
    assert gradcheck(lambda x: unbind(x)[0] * unbind(x)[2].sum(), (x,))


def test_losses_of_a_batch_compare_each_member_with_the_measurement(tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt")
    springs = np.array([[7.0], [9.0]])
    found = scene.losses(scene.rollout(params=scene.params.replace(stiffness=tensor(springs))))
    alone = [scene.loss(scene.rollout(params=scene.params.replace(stiffness=each))).item() for each in springs]
    np.testing.assert_allclose(found.data, alone, rtol=1e-12)
    assert scene.losses(scene.rollout()).shape == (1,)


def test_a_batch_has_no_loss_of_one_motion(tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt")
    params = scene.params.replace(stiffness=tensor(np.array([[7.0], [9.0]])))
    batch = scene.rollout(params=params)
    for call in (scene.loss, scene.predict, scene.residuals):
        with pytest.raises(InputError, match=r"one motion; found a batch of 2 members. Use scene\.losses"):
            call(batch)
    several = replace(scene, params=params)
    for call in (several.loss, several.losses, several.predict):
        with pytest.raises(InputError, match=r"needs one member; found a batch of 2 members.*scene\.losses"):
            call(batch)
    aimed = soft_square()  # its loss is about the end of the motion, without a measurement
    velocity = tensor(np.stack([aimed.state.velocity.data] * 2))
    with pytest.raises(InputError, match=r"found a batch of 2 members. Use scene\.losses"):
        aimed.loss(aimed.rollout(state=aimed.state.replace(velocity=velocity)))


def test_a_fit_of_three_recordings_finds_the_truth_and_is_recorded(tmp_path: Path) -> None:
    scene = build(tables(tmp_path))
    fit = simphys.identify(scene, folder=tmp_path / "run")
    assert fit.verdict == "passed", fit.criteria
    truth = [STIFFNESS, *STARTS]
    for row, true in zip(fit.unknowns, truth, strict=True):
        assert abs(row.value - true) < 3 * row.standard_error
    assert set(fit.rmse) == {f"experiment {place}: x" for place in (1, 2, 3)}
    recording = Recording(tmp_path / "run")
    parts = list_parts(recording)
    assert list(parts) == ["experiment 1", "experiment 2", "experiment 3"]
    assert parts["experiment 2"]["fit/residual"].shape == (60, 1) and "adjoint/position" in parts["experiment 3"]
    assert [str(label) for label in recording["residual_tests/channel"]] == list(fit.rmse)
    fitted = simphys.load_scene(tmp_path / "run" / "fitted.toml")
    again = fitted.loss(fitted.rollout()).item()
    assert again == pytest.approx(fit.result.loss, rel=1e-9)
    assert fitted.objective().start == pytest.approx(np.sign(fitted.objective().start), abs=1)


def test_a_recording_that_is_held_out_is_predicted(tmp_path: Path) -> None:
    given = tables(tmp_path)
    given["experiments"][1]["observations"]["validation"] = {"kind": "recording"}
    given["unknowns"] = {"spring": given["unknowns"]["spring"]}
    for experiment, start in zip(given["experiments"], STARTS, strict=True):
        experiment["values"]["begin"]["value"] = start
    fit = simphys.identify(build(given))
    found = next(each for each in fit.criteria if each.name == "holdout")
    assert found.verdict == "passed" and "60 held-out samples" in found.found


def write(tmp_path: Path, text: str) -> Path:
    build(tables(tmp_path))
    path = tmp_path / "scene.toml"
    path.write_text(
        """
[simulator]
name = "mass_spring"
[time]
dt = 0.01
[geometry]
position = [[0.5]]
[[geometry.anchors]]
node = 0
point = [0.0]
stiffness = 7.0
[unknowns.spring]
parameter = "stiffness"
[observations]
file = "trials.csv"
time = "time"
trials = "trial"
[[observations.channels]]
column = "x"
field = "position"
node = 0
"""
        + text
    )
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[experiments]]\nobservations.tril = 0", "scene.toml:23: experiments.0.observations.tril: unknown key"),
        ("[[experiments]]\nname = '../a'\nobservations.trial = 0", "must be of letters, digits"),
        ("[[experiments]]\nname = 'a'\n[[experiments]]\nname = 'a'", "names of experiments must differ"),
        ("[[experiments]]\nsteps = 3\nduration = 1.0", "needs only one of steps and duration"),
        ("[[experiments]]\nduration = 1.0", "trials, the column that numbers them, and trial, a number, go together"),
        ("[unknowns.start]\nparameter = 'position'\nexperiments = 'each'", '"each" needs experiments'),
        (
            "[[experiments]]\nobservations.trial = 0\nvalues.x = {parameter = 'position', entries = [7], value = 1.0}",
            "scene.toml:24: experiments.0.values.x",
        ),
    ],
)
def test_bad_experiments_are_told_with_their_lines(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        load(write(tmp_path, text))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("observations.trial = 7", "must hold the trial; found no row of trial 7. Set observations.trial to one of"),
        ("observations = {trial = 1, window = [0.0, 5.0]}", "window from 0 to 5; found times from 1"),
    ],
)
def test_a_trial_or_a_window_without_samples_is_told(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        simphys.load_scene(write(tmp_path, f"[[experiments]]\n{text}"))
    assert message in str(error.value) and "trials.csv" in str(error.value)


def test_a_scene_of_several_experiments_says_so_where_it_must_be_one(tmp_path: Path) -> None:
    scene: Scene = build(tables(tmp_path))
    with pytest.raises(InputError, match="needs one experiment"):
        scene.predict(scene.rollout())
    with pytest.raises(InputError, match="needs a trajectory of each of the 3 experiments"):
        scene.losses(scene.experiments[0].rollout())


def test_each_experiment_is_checked_measured_and_replayed(tmp_path: Path) -> None:
    given = tables(tmp_path, time={"dt": 0.05})
    given["experiments"].pop()
    for place, each in enumerate(given["experiments"]):
        each["name"] = f"trial {place}"
        each["steps"] = 8 + place
    scene = build(given)
    told: list[str] = []
    found = check_scene(scene, on_statement=lambda one: told.append(one.name))
    assert found.passed and set(told) == {statement.name for statement in found.statements}
    for place in range(2):
        assert f"trial {place}: the full horizon of {8 + place} steps" in found.horizon
        assert found.sizes[f"trial {place}: stiffness"] > 0
    with pytest.raises(InputError, match=r"needs one experiment; found 2 experiments"):
        scene_health(scene)
    _, files = write_health(scene.experiments[1], scene_health(scene.experiments[1]))
    assert [path.name for path in files] == ["health_trial_1.h5", "health_trial_1.png"]
    page = make_page(simphys.simulate(scene))
    assert page.count('class="replay-data"') == 2 and "<h3>trial 1</h3>" in page
    assert "holds no motion" not in page and "cannot be shown" not in page
