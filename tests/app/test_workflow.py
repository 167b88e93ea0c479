"""From a scene to a run folder: what is recorded, what a fit reports, and that an interruption loses nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys.app.assessment import assess
from simphys.app.identification import Identification, IdentificationInterrupted
from simphys.autograd import tensor
from simphys.autograd.errors import InputError
from simphys.optimize import IterationRecord, minimize
from simphys.plot import all_figures
from simphys.record import Recording
from simphys.runs.estimates import UndeterminedStart

from ..helpers.small_scenes import TRUTH, oscillator, soft_square

METHODS = ["least_squares", "lbfgs", "adam", "gradient_descent"]


def interrupt_at(count: int) -> Any:
    """Ctrl-C at an iteration."""
    seen: list[IterationRecord] = []

    def on_iteration(record: IterationRecord) -> None:
        seen.append(record)
        if len(seen) == count:
            raise KeyboardInterrupt

    return on_iteration


def same_tables(first: Recording, second: Recording, groups: tuple[str, ...]) -> None:
    for group in groups:
        assert first.keys(group) == second.keys(group) != []
        for name in first.keys(group):
            path = f"{group}/{name}"
            if first.keys(path):
                same_tables(first, second, (path,))
            else:
                np.testing.assert_array_equal(first[path], second[path], err_msg=path)


def test_a_fit_finds_the_truth_and_says_how_well_it_knows_it(tmp_path: Path) -> None:
    fit = simphys.identify(oscillator(tmp_path / "seen.txt"))
    assert fit.result.success and fit.folder is None and not (tmp_path / "run").exists()
    assert [(row.label, row.unit) for row in fit.unknowns] == [("stiffness", "N/m"), ("drag", "1/s"), ("start", "m")]
    for row in fit.unknowns:
        assert abs(row.value - TRUTH[row.label]) < 3 * row.standard_error < 0.1
        assert row.note == ""
    assert [row.start for row in fit.unknowns] == pytest.approx([7.0, 0.2, 0.8])
    assert next(iter(fit.rmse.values())) == pytest.approx(0.01, rel=0.2)  # m
    assert fit.scene.params.stiffness.data[0] == pytest.approx(fit.unknowns[0].value)


def test_ctrl_c_after_the_search_gives_its_values_and_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene, whole = oscillator(tmp_path / "seen.txt"), tmp_path / "whole"
    fit = simphys.identify(scene, folder=whole)

    def interrupt(*arguments: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(IdentificationInterrupted) as stop:
        patch.setattr("simphys.app.workflow.record_motions", interrupt)
        simphys.identify(scene, folder=tmp_path / "run")
    stopped = stop.value.identification
    assert stopped.result.status == "interrupted" and stopped.result.message.endswith("there is no verdict yet")
    assert [row.value for row in stopped.unknowns] == [row.value for row in fit.unknowns]
    simphys.identify(scene, folder=tmp_path / "run", resume=True)
    same_tables(Recording(tmp_path / "run"), Recording(whole), ("unknowns", "fit", "judgement"))


def test_without_a_folder_the_same_is_recorded_in_memory_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = oscillator(tmp_path / "seen.txt", output={"every": 10})
    on_disk = simphys.identify(scene, folder=tmp_path / "on_disk")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    in_memory = simphys.identify(scene)
    assert in_memory.unknowns == on_disk.unknowns and in_memory.rmse == on_disk.rmse
    assert (in_memory.folder, on_disk.folder) == (None, tmp_path / "on_disk")
    groups = set(on_disk.recording.keys()) - {"h5md", "evaluations"}
    assert set(in_memory.recording.keys()) == groups  # evaluations are for a resume
    tables = ("adjoint", "iterations", "fit", "observations", "particles/nodes/position", "unknowns")
    same_tables(in_memory.recording, on_disk.recording, tables)
    assert in_memory.recording.scene == on_disk.recording.scene
    for group in ("unknowns", "motion"):
        assert in_memory.recording.attrs(group) == on_disk.recording.attrs(group)
    one, other = simphys.simulate(scene), simphys.simulate(scene, folder=tmp_path / "motion")
    same_tables(one, other, ("particles/nodes/position", "fit", "observations"))
    with pytest.raises(IdentificationInterrupted) as caught:
        simphys.identify(scene, on_iteration=interrupt_at(2))
    assert caught.value.identification.folder is None
    assert not list(Path().iterdir()) and not (tmp_path / "run").exists()
    names = ["adjoint.png", "convergence.png", "fit.png", "trajectory.png"]
    for fit in (in_memory, on_disk):
        assert sorted(path.name for path in all_figures(fit.recording, tmp_path / "pictures")) == names


def test_standard_errors_are_the_scatter_of_fits_to_fresh_noise(tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt")
    errors = [row.standard_error for row in simphys.identify(scene).unknowns]
    time, _ = np.loadtxt(tmp_path / "seen.txt").T
    true = oscillator(tmp_path / "seen.txt", unknowns=None)
    clean = true.predict(true.rollout()).data[:, 0]
    found = []
    for seed in range(40):
        noisy = clean + 0.01 * np.random.default_rng(seed).standard_normal(time.size)
        np.savetxt(tmp_path / "again.txt", np.column_stack([time, noisy]))
        again = oscillator(tmp_path / "seen.txt", observations={"file": str(tmp_path / "again.txt")}).objective()
        found.append(again.unknowns.natural(minimize(again, tolerance=1e-6).theta))
    np.testing.assert_allclose(np.std(found, axis=0), errors, rtol=0.4)  # 40 fits tell a scatter to 11 %


def test_a_fit_records_all_that_is_drawn_from_it(tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt", output={"every": 10})
    told: list[IterationRecord] = []
    fit = simphys.identify(scene, on_iteration=told.append)
    run = fit.recording
    assert run["particles/nodes/position/value"].shape == (41, 2, 1)
    np.testing.assert_allclose(run["particles/nodes/position/time"], np.arange(41) * 0.1)
    assert run["adjoint/position"].shape == run["adjoint/velocity"].shape == (41, 2, 1)
    assert scene.observations is not None
    np.testing.assert_array_equal(run["observations/value"], scene.observations.values)
    np.testing.assert_allclose(run["fit/residual"], run["observations/value"] - run["fit/predicted"])
    np.testing.assert_array_equal(run["iterations/loss"], [record.loss for record in told])
    np.testing.assert_array_equal(run["unknowns/value"], [row.value for row in fit.unknowns])
    assert run.attrs("unknowns")["status"] == "converged"
    resolved: Any = run.scene
    assert resolved["unknowns"]["stiffness"]["start"] == 7.0
    assert {"seed", "arch", "precision"} <= set(run.provenance)


def test_the_recorded_adjoint_is_the_gradient_with_respect_to_the_state(tmp_path: Path) -> None:
    fit = simphys.identify(oscillator(tmp_path / "seen.txt"))
    state = fit.scene.state
    x, v = state.position.detach().requires_grad_(), state.velocity.detach().requires_grad_()
    fit.scene.loss(fit.scene.rollout(state=state.replace(position=x, velocity=v))).backward()
    run = fit.recording
    assert x.grad is not None and v.grad is not None
    np.testing.assert_allclose(run["adjoint/position"][0], x.grad.data, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(run["adjoint/velocity"][0], v.grad.data, rtol=1e-10, atol=1e-12)


def test_a_missing_sample_has_no_residual(tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt")
    rows = (tmp_path / "seen.txt").read_text().splitlines()
    rows[5] = rows[5].split()[0] + " nan"
    (tmp_path / "gaps.txt").write_text("\n".join(rows))
    scene = oscillator(tmp_path / "seen.txt", observations={"file": str(tmp_path / "gaps.txt"), "missing": "skip"})
    fit = simphys.identify(scene)
    assert np.flatnonzero(np.isnan(fit.recording["fit/residual"][:, 0])).tolist() == [5]
    assert fit.result.success and np.isfinite(list(fit.rmse.values())).all()


@pytest.mark.parametrize("horizon", ["full", "growing"])
@pytest.mark.parametrize("method", METHODS)
def test_a_resumed_fit_is_the_uninterrupted_one(method: str, horizon: str, tmp_path: Path) -> None:
    optimizer = {"method": method, "horizon": horizon, "iterations": 12}
    scene = oscillator(tmp_path / "seen.txt", optimizer=optimizer, output={"matrices": True})
    whole = simphys.identify(scene, folder=tmp_path / "whole")
    with pytest.raises(IdentificationInterrupted):
        simphys.identify(scene, folder=tmp_path / "broken", on_iteration=interrupt_at(3))
    told: list[IterationRecord] = []
    resumed = simphys.identify(scene, folder=tmp_path / "broken", resume=True, on_iteration=told.append)
    assert len(told) == len(whole.result.history)  # also what was told before
    np.testing.assert_array_equal(resumed.result.theta, whole.result.theta)
    assert resumed.result.loss == whole.result.loss and resumed.unknowns == whole.unknowns
    same_tables(
        whole.recording,
        resumed.recording,
        ("evaluations", "iterations", "fit", "unknowns", "adjoint", "particles/nodes/position"),
    )


def test_a_fit_may_be_interrupted_again_and_again(tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt", optimizer={"horizon": "growing"}, output={"matrices": True})
    whole = simphys.identify(scene, folder=tmp_path / "whole")
    for count in (1, 4, 9):
        with pytest.raises(IdentificationInterrupted):
            simphys.identify(scene, folder=tmp_path / "run", resume=count > 1, on_iteration=interrupt_at(count))
    resumed = simphys.identify(scene, folder=tmp_path / "run", resume=True)
    np.testing.assert_array_equal(resumed.result.theta, whole.result.theta)
    same_tables(whole.recording, resumed.recording, ("evaluations", "iterations"))


def test_an_interrupted_fit_hands_out_the_best_so_far(tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt")
    with pytest.raises(IdentificationInterrupted) as caught:
        simphys.identify(scene, folder=tmp_path / "run", on_iteration=interrupt_at(4))
    best: Identification = caught.value.identification
    assert best.result.status == "interrupted" and best.folder == tmp_path / "run"
    losses = best.recording["iterations/loss"]
    assert best.result.loss == losses.min() < losses[0]
    assert all(np.isnan(row.standard_error) for row in best.unknowns)


def test_a_longer_fit_goes_on_where_a_shorter_one_ended(tmp_path: Path) -> None:
    def scene(iterations: int) -> simphys.Scene:
        return oscillator(tmp_path / "seen.txt", optimizer={"iterations": iterations})

    short = simphys.identify(scene(2), folder=tmp_path / "run")
    assert short.result.status == "iteration limit"
    long = simphys.identify(scene(50), folder=tmp_path / "run", resume=True)
    whole = simphys.identify(scene(50), folder=tmp_path / "whole")
    assert long.result.success
    np.testing.assert_array_equal(long.result.theta, whole.result.theta)


def test_a_simulation_records_every_kth_step_and_what_was_measured(tmp_path: Path) -> None:
    run = simphys.simulate(soft_square(output={"every": 5}), folder=tmp_path / "square")
    assert run.folder == tmp_path / "square"
    np.testing.assert_array_equal(run["particles/nodes/position/step"], [0, 5, 10, 15, 20])
    expected = soft_square().rollout().position.data[::5]
    np.testing.assert_array_equal(run["particles/nodes/position/value"], expected)
    assert "observations/value" not in run and "adjoint/position" not in run
    glider = simphys.simulate(oscillator(tmp_path / "seen.txt"))
    assert glider["fit/predicted"].shape == (100, 1)


def test_a_fit_without_measurement_has_no_standard_errors(tmp_path: Path) -> None:
    unknown = {"throw": {"parameter": "velocity", "entries": [[i, 0] for i in range(6)], "tied": True, "start": 0.0}}
    scene = soft_square(unknowns=unknown, optimizer={"method": "lbfgs"}, output={"folder": str(tmp_path / "run")})
    fit = simphys.identify(scene)
    assert fit.result.success and fit.rmse == {} and np.isnan(fit.unknowns[0].standard_error)
    middle = fit.scene.rollout().position.data.mean(axis=1)
    assert middle[-1, 0] - middle[0, 0] == pytest.approx(0.5, rel=1e-3)


def test_an_unknown_at_its_bound_has_no_standard_error_but_a_note(tmp_path: Path) -> None:
    drag = {"drag": {"bounds": [0.15, 5.0]}}  # the truth is 0.1
    fit = simphys.identify(oscillator(tmp_path / "seen.txt", unknowns=drag))
    row = next(row for row in fit.unknowns if row.label == "drag")
    assert row.value == pytest.approx(0.15, rel=1e-5) and np.isnan(row.standard_error) and row.note == "at a bound"


def test_unknowns_that_cannot_be_told_apart_are_named_before_anything_is_written(tmp_path: Path) -> None:
    mass = {"mass": {"parameter": "mass", "entries": [0], "transform": "log"}}  # only k/m shows in the motion
    with pytest.raises(InputError, match="stiffness, mass can change together without any effect"):
        simphys.identify(oscillator(tmp_path / "seen.txt", unknowns=mass), folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("horizon", ["growing", "shooting"])
def test_a_fit_in_stages_finds_what_its_start_at_rest_hides(horizon: str, tmp_path: Path) -> None:
    rest: Any = {"unknowns": {"start": {"start": 0.0}}}  # where the spring is at rest, too
    with pytest.raises(InputError, match=r"stiffness, drag change no observation.*give state.velocity another start"):
        simphys.identify(oscillator(tmp_path / "seen.txt", **rest))
    scene = oscillator(tmp_path / "seen.txt", **rest, optimizer={"horizon": horizon})
    with pytest.warns(UndeterminedStart, match="found rank 1: stiffness, drag change no observation"):
        fit = simphys.identify(scene)
    assert fit.verdict == "passed"
    assert [row.value for row in fit.unknowns] == pytest.approx(list(TRUTH.values()), abs=0.01)


def test_a_fit_in_stages_fails_if_the_data_do_not_determine_its_end(tmp_path: Path) -> None:
    mass: Any = {"mass": {"parameter": "mass", "entries": [0], "start": 1.0}}
    scene = oscillator(tmp_path / "seen.txt", unknowns=mass, optimizer={"horizon": "growing"})
    with pytest.warns(UndeterminedStart, match="can change together without any effect"):
        fit = simphys.identify(scene)
    assert fit.verdict == "failed" and "do not determine all unknowns at the end" in fit.result.message
    assert "fix one (leave it out of the unknowns)" in fit.result.message
    assert "stiffness, mass" in fit.result.message


def test_mistakes_about_the_folder_are_told(tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt")
    folder = tmp_path / "run"
    simphys.identify(scene, folder=folder)
    with pytest.raises(InputError, match=r"must not hold a run already; .* --overwrite \(in Python overwrite=True\)"):
        simphys.identify(scene, folder=folder)
    with pytest.raises(InputError, match="either resumed or overwritten"):
        simphys.identify(scene, folder=folder, resume=True, overwrite=True)
    with pytest.raises(InputError, match="the scene must be that of the interrupted run"):
        simphys.identify(oscillator(tmp_path / "seen.txt", material={"mass": 2.0}), folder=folder, resume=True)
    simphys.identify(scene, folder=folder, overwrite=True)
    for flag in ("overwrite", "resume"):
        options: Any = {flag: True}
        with pytest.raises(InputError, match=rf"identify: {flag} needs the folder of a run; found folder=None\. "):
            simphys.identify(scene, **options)
    with pytest.raises(InputError, match="simulate: overwrite needs the folder of a run"):
        simphys.simulate(scene, overwrite=True)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [("cart.toml", "'cart.toml'"), (Path("cart.toml"), "'cart.toml'"), ({"simulator": {}}, "'scene.toml'")],
)
def test_a_path_or_tables_in_place_of_a_scene_are_refused(given: Any, wanted: str, tmp_path: Path) -> None:
    calls: dict[str, Callable[[Any], Any]] = {
        "identify": simphys.identify,
        "simulate": simphys.simulate,
        "check": simphys.check,
        "assess": partial(assess, folder=tmp_path),
    }
    for name, call in calls.items():
        with pytest.raises(InputError) as caught:
            call(given)
        assert caught.value.source == name and caught.value.remedy == f"Pass simphys.load_scene({wanted})."


def test_a_batch_beside_the_measurement_of_one_member_is_refused(tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt")
    batch = scene.params.replace(stiffness=tensor(np.array([[8.0], [9.0], [10.0]])))
    several = replace(scene, params=batch)
    calls: list[Callable[[Any], Any]] = [simphys.identify, simphys.simulate, simphys.check]
    for call in calls:
        with pytest.raises(InputError, match=r"seen.txt: .* needs one member; found a batch of 3 .*scene\.losses"):
            call(several)
    simphys.simulate(replace(several, observations=None))
