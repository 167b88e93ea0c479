"""Measurements of a whole field: read with every mistake told, predicted, fitted, by frequency as well, recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import simphys
from simphys import optimize, plot
from simphys.app import report
from simphys.app.identification import IdentificationInterrupted
from simphys.autograd import gradcheck, tensor
from simphys.autograd.errors import InputError
from simphys.autograd.proof.gradcheck import dot_product_test
from simphys.experiment.observe_field import read_field_observations
from simphys.experiment.sampling import SampleField, field_plan
from simphys.experiment.scene import Scene
from simphys.runs import fit_text
from simphys.scenefile import ConfigError

from ..helpers.rounding import assert_equal_but_for_rounding
from ..helpers.row_scene import RELEASES, TRUTH, register, row


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch)


STIFFNESS = {"stiffness": {"parameter": "stiffness", "transform": "log", "truth": TRUTH}}
TIMES = np.arange(1, 41) * 0.1  # every second step


def measured(folder: Path, file: str = "shots.h5", **changes: Any) -> Scene:
    """The row of pendulums, all angles of which were seen, with the true stiffness, of each release."""
    path = folder / file
    if not path.exists():
        motion = row(folder, material={"stiffness": TRUTH}).rollout()
        store(path, TIMES, motion.angle.data[:, 2::2])
    observations = {"file": str(path), "field": "angle", "sigma": 0.01, "unit": "rad"}
    return row(folder, unknowns=STIFFNESS, **{"observations": observations, **changes})


def store(path: Path, time: np.ndarray, values: np.ndarray) -> None:
    if path.suffix == ".npz":
        np.savez(path, time=time, values=values)
        return
    with h5py.File(path, "w") as file:
        file["time"], file["values"] = time, values


@pytest.mark.parametrize("method", ["least_squares", "lbfgs"])
@pytest.mark.parametrize("file", ["shots.h5", "shots.npz"])
def test_a_medium_is_found_from_what_was_seen_of_all_experiments(method: str, file: str, tmp_path: Path) -> None:
    fit = simphys.identify(measured(tmp_path, file, optimizer={"method": method}))
    assert fit.result.success
    np.testing.assert_allclose([unknown.value for unknown in fit.unknowns], TRUTH, rtol=1e-5)
    (compared,) = fit.truth_errors
    assert compared.label == "stiffness" and compared.value < 1e-5 < compared.start
    assert compared.start == pytest.approx(np.linalg.norm([0.1, 0.2, 0.2]) / np.linalg.norm(TRUTH))


def test_measurement_prediction_and_known_values_are_recorded(tmp_path: Path) -> None:
    scene = measured(tmp_path)
    fit = simphys.identify(scene)
    run = fit.recording
    assert run["field_observations/value"].shape == run["field_fit/predicted"].shape == (40, 2, 3)
    predicted = fit.scene.predict(fit.scene.rollout()).data
    np.testing.assert_array_equal(run["field_fit/predicted"], np.moveaxis(predicted, 1, 0))
    assert run.attrs("field_observations") == {"field": "angle", "unit": "rad"}
    assert run.attrs("fields/angle/value") == {"unit": "rad"}
    assert fit.rmse["angle"] < 1e-6
    assert run["truth/stiffness/truth"].tolist() == TRUTH
    plot.all_figures(run, tmp_path / "pictures")


def test_within_a_limit_on_memory_only_what_was_seen_is_kept(tmp_path: Path) -> None:
    whole, limited = measured(tmp_path), measured(tmp_path, runtime={"memory": "100kB"})
    trajectory = limited.rollout()
    assert trajectory.steps.tolist() == list(range(2, 81, 2))
    assert trajectory.states.rate.size == 0
    value, gradient = whole.objective().value_and_gradient(whole.objective().start)
    found = limited.objective().value_and_gradient(limited.objective().start)
    assert_equal_but_for_rounding(found[0], value, ulps=100)
    assert_equal_but_for_rounding(found[1], gradient, ulps=100)


def test_value_gradient_residuals_and_jacobian_agree(tmp_path: Path) -> None:
    loss = {"lowpass": [0.5, 1.0], "kind": "huber", "delta": 1.5}
    for chosen in ({}, loss):
        objective = measured(tmp_path, loss=chosen).objective()
        theta = objective.start + 0.02
        value, gradient = objective.value_and_gradient(theta)
        residuals, jacobian = objective.residuals(theta), objective.jacobian(theta)
        assert value == pytest.approx(0.5 * float(residuals @ residuals), rel=1e-12)
        np.testing.assert_allclose(jacobian.T @ residuals, gradient, rtol=1e-9)
        for column, direction in enumerate(np.eye(theta.size)):
            ahead, behind = (objective.residuals(theta + sign * 1e-6 * direction) for sign in (1, -1))
            scale = np.abs(jacobian[:, column]).max()
            np.testing.assert_allclose((ahead - behind) / 2e-6, jacobian[:, column], atol=1e-6 * scale)


def test_a_fit_by_frequency_goes_through_its_stages_and_is_resumed_to_the_same_bits(tmp_path: Path) -> None:
    loss = {"lowpass": [0.5, 1.0, 0]}
    fit = simphys.identify(measured(tmp_path, loss=loss), folder=tmp_path / "whole")
    assert fit.result.success and fit.result.lowpass == np.inf
    np.testing.assert_allclose([unknown.value for unknown in fit.unknowns], TRUTH, rtol=1e-5)
    assert [record.lowpass for record in fit.result.history if record.index == 0] == [0.5, 1.0, np.inf]
    run = fit.recording
    assert sorted(set(run["iterations/lowpass"])) == [0.5, 1.0, np.inf]
    assert np.isfinite([unknown.standard_error for unknown in fit.unknowns]).all()
    above, beneath = plot.convergence(run).axes
    assert above.get_title(loc="left").startswith("all frequencies: loss")
    assert [text.get_text() for text in above.texts] == ["0.5 Hz", "1 Hz", "all"]
    assert beneath.get_xlabel() == "iteration, in stages named by their highest frequency"

    def interrupt(record: optimize.IterationRecord) -> None:
        if record.stage == 1 and record.index == 1:
            raise KeyboardInterrupt

    scene = measured(tmp_path, loss=loss, output={"folder": str(tmp_path / "again")})
    with pytest.raises(IdentificationInterrupted):
        simphys.identify(scene, folder=tmp_path / "run", on_iteration=interrupt)
    again = simphys.identify(scene, folder=tmp_path / "run", resume=True)
    assert again.result.theta.tobytes() == fit.result.theta.tobytes()
    assert again.recording["iterations/loss"].tobytes() == run["iterations/loss"].tobytes()


def test_of_filtered_misfits_no_standard_errors_are_told(tmp_path: Path) -> None:
    fit = simphys.identify(measured(tmp_path, loss={"lowpass": [0.5, 1.0]}))
    assert fit.result.success and {unknown.note for unknown in fit.unknowns} == {"filtered misfits"}


def test_times_that_are_not_uniform_cannot_be_filtered(tmp_path: Path) -> None:
    store(tmp_path / "shots.h5", np.array([0.1, 0.2, 0.4]), np.zeros((2, 3, 3)))
    with pytest.raises(InputError, match=r"needs samples at uniform times; found from 0\.1 to 0\.2 apart"):
        measured(tmp_path, loss={"lowpass": [5.0]})
    store(tmp_path / "shots.h5", TIMES[:4], np.zeros((2, 4, 3)))
    with pytest.raises(
        InputError,
        match=r"of each frequency fits into the measurement; found a period of 0\.5 in a measurement of 0\.4",
    ):
        measured(tmp_path, loss={"lowpass": [2.0, 5.0]})


def test_a_growing_horizon_sees_the_first_samples(tmp_path: Path) -> None:
    objective = measured(tmp_path).objective()
    part = objective.until(0.25)
    assert part.scene.steps == 20 and part.residuals(part.start).size == 10 * 2 * 3
    fit = simphys.identify(measured(tmp_path, optimizer={"horizon": "growing"}))
    assert fit.result.success and fit.truth_errors[0].value < 1e-5


def test_missing_numbers_have_no_weight(tmp_path: Path) -> None:
    measured(tmp_path)
    with h5py.File(tmp_path / "shots.h5") as file:
        values = file["values"][()]
    gone = np.array(values)
    gone[1, 3:8, 2] = np.nan
    store(tmp_path / "gone.h5", TIMES, gone)
    observations = {"file": str(tmp_path / "gone.h5"), "field": "angle", "missing": "skip"}
    scene = measured(tmp_path, observations=observations)
    (residuals,) = scene.residuals(scene.rollout())
    assert (residuals.data == 0).sum() == 5
    assert simphys.identify(scene).truth_errors[0].value < 1e-5


def test_between_steps_a_field_is_interpolated_and_at_steps_exact() -> None:
    along = tensor(np.random.default_rng(0).normal(size=(2, 9, 3)), requires_grad=True)
    at_steps = field_plan(np.array([0.0, 0.3, 0.9, 1.6]), 1, dt=0.2, steps=8)
    between = SampleField.apply(at_steps, along).data[:, 1]
    assert_equal_but_for_rounding(between, along.data[:, 1:3].mean(axis=1))
    np.testing.assert_array_equal(SampleField.apply(at_steps, along).data[:, [0, 3]], along.data[:, [0, 8]])
    # Several samples lie in one interval, and one at a step.
    made = field_plan(np.array([0.21, 0.25, 0.3, 0.8, 1.55]), 1, dt=0.2, steps=8)
    assert gradcheck(lambda x: SampleField.apply(made, x), (along,)).outcome == "passed"
    dot_product_test(lambda x: SampleField.apply(made, x), (along,), tolerance=1e-12)


GOOD = (TIMES[:4], np.zeros((4, 3)))


@pytest.mark.parametrize(
    ("time", "values", "message"),
    [
        (TIMES[:3], GOOD[1], "shots.npz, values: must have the shape [3, 3], [N, *shape] of angle at 3 times"),
        (np.array([0.1, 0.3, 0.2, 0.4]), GOOD[1], "time: times must increase; found 0.2 after 0.3, at 2"),
        (np.array([-0.1, 0.3, 0.4, 0.5]), GOOD[1], "time: times must not be negative; found -0.1"),
        (np.array([0.1, np.nan, 0.4, 0.5]), GOOD[1], "time: every sample must have a time; found nan at 1"),
        (GOOD[0], np.full((4, 3), np.nan), "values: numbers must not be missing; found NaN at [0, 0]"),
        (GOOD[0], np.full((4, 3), np.inf), "values: must be finite numbers; found inf at [0, 0]"),
        (GOOD[0], np.full((4, 3), "a"), "values: must hold numbers; found <U1"),
        (np.zeros(0), np.zeros((0, 3)), "time: must be a list of times [N]; found the shape [0]"),
    ],
)
def test_mistakes_in_a_file_are_told(time: np.ndarray, values: np.ndarray, message: str, tmp_path: Path) -> None:
    store(tmp_path / "shots.npz", time, values)
    with pytest.raises(InputError) as error:
        read_field_observations(tmp_path / "shots.npz", field="angle", shapes={"angle": (3,)}, members=None, sigma=1.0)
    assert message in str(error.value)


def test_a_file_that_is_none_is_told(tmp_path: Path) -> None:
    def message(file: str) -> str:
        with pytest.raises(InputError) as error:
            read_field_observations(tmp_path / file, field="angle", shapes={"angle": (3,)}, members=None, sigma=1.0)
        return str(error.value)

    assert "must be a file that can be read; found No such file" in message("missing.h5")
    (tmp_path / "text.h5").write_text("1 2 3")
    assert "must be an HDF5 or an .npz file" in message("text.h5")
    np.savez(tmp_path / "other.npz", times=TIMES)
    assert "must have a dataset 'time'; found datasets: times" in message("other.npz")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "other.npz").read_bytes()[:90])
    assert "must be readable" in message("cut.npz")


def test_a_horizon_shorter_than_the_recording_sees_a_piece_of_it(tmp_path: Path) -> None:
    whole, piece = measured(tmp_path), measured(tmp_path, time={"steps": 60})
    assert piece.observations is not None and whole.observations is not None
    assert 0 < len(piece.observations.times) < len(whole.observations.times)
    assert piece.predict(piece.rollout()).shape == piece.observations.values.shape


def test_a_window_of_time_begins_the_motion(tmp_path: Path) -> None:
    whole = measured(tmp_path).observations
    begin, end = TIMES[1] - 0.001, TIMES[-1]
    assert whole is not None
    given = {"file": str(whole.file), "field": "angle", "sigma": 0.01, "unit": "rad", "window": [begin, end]}
    part = measured(tmp_path, observations=given).observations
    assert part is not None
    assert_equal_but_for_rounding(part.times, whole.times[1:] - begin, size=end)
    np.testing.assert_array_equal(part.values, whole.values[:, 1:])
    some = measured(tmp_path, observations=given | {"window": None, "begin": begin, "every": 2}).observations
    assert some is not None
    np.testing.assert_array_equal(some.times, part.times[::2])
    np.testing.assert_array_equal(some.values, part.values[:, ::2])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"observations": {"file": "x"}}, "observations: needs channels, or the field that the file holds whole"),
        ({"observations": {"file": "x", "field": "speed"}}, "observations.field: must be a component of the state"),
        ({"observations": {"file": "x", "field": "angle", "time": 1}}, "observations.time: belongs to channels"),
        ({"loss": {"lowpass": [5.0, 2.0]}}, "loss.lowpass: must be frequencies that increase"),
        ({"loss": {"lowpass": [-1.0]}}, "loss.lowpass: must be frequencies that increase"),
        ({"loss": {"lowpass": [2.0, -1.0]}}, "loss.lowpass: must be frequencies that increase"),
        ({"loss": {"lowpass": [5.0, 0, 9.0]}}, "loss.lowpass: must be frequencies that increase"),
        ({"loss": {"lowpass": [5.0]}, "observations": None}, "loss.lowpass: needs observations of a whole field"),
        (
            {"loss": {"lowpass": [5.0]}, "optimizer": {"horizon": "growing"}},
            "loss.lowpass: must not go with a growing horizon",
        ),
    ],
)
def test_mistakes_in_a_scene_are_told(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        measured(tmp_path, **changes)
    assert message in str(error.value)


def test_one_experiment_has_no_axis_of_members(tmp_path: Path) -> None:
    motion = row(tmp_path, material={"stiffness": TRUTH}, start={"angle": RELEASES[0]}).rollout()
    store(tmp_path / "shots.h5", TIMES, motion.angle.data[2::2])
    fit = simphys.identify(measured(tmp_path, start={"angle": RELEASES[0]}))
    assert fit.truth_errors[0].value < 1e-5
    assert fit.recording["field_observations/value"].shape == (40, 3)


def test_the_report_compares_with_known_values_and_tells_ranges_of_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fit_text, "FOLDED", 2)
    report.print_identification(simphys.identify(measured(tmp_path)))
    shown = capsys.readouterr().out
    assert "stiffness, 3 values" in shown and "1.1 ... 2.8" in shown
    assert "stiffness: relative error against the truth 8.0 % -> 0.00 %" in shown
    assert [report.format_percent(part) for part in (0.12, 0.034, 0.0012, 1.5)] == ["12 %", "3.4 %", "0.12 %", "150 %"]


def test_least_squares_is_refused_where_jacobians_would_be_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simphys.runs.estimates.LEAST_SQUARES_UNKNOWNS", 2)
    with pytest.raises(InputError, match="least_squares computes Jacobians, for at most 2 unknowns; found 3 unknowns"):
        simphys.identify(measured(tmp_path))


def test_of_too_many_unknowns_nothing_is_said_about_their_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simphys.runs.estimates.RANK_CHECK_UNKNOWNS", 2)
    fit = simphys.identify(measured(tmp_path, optimizer={"method": "lbfgs"}))
    assert {unknown.note for unknown in fit.unknowns} == {"too many unknowns"}
    assert np.isnan([unknown.standard_error for unknown in fit.unknowns]).all()
