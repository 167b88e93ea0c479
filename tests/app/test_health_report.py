"""`simphys health`: tables, the conclusion, the files that it leaves, and its exit status."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from simphys.app.health_report import print_health, write_hdf5, write_health
from simphys.autograd import tensor
from simphys.autograd.errors import InputError, StorageError
from simphys.diagnose.health import Health, health, scene_health
from simphys.experiment.scene import load_scene
from simphys.simulator.events import Event

from ..helpers import oscillator, small_scenes, tanks
from ..helpers.oscillator import simphys
from ..helpers.printed import table_rows
from ..rollout.pendulums import Params, Pendulums, State


def on_top(steps: int) -> Health:
    """A pendulum at rest on top, with exponent 2."""
    params, state = Params(tensor([-4.0]), tensor(0.0)), State(tensor([0.0]), tensor([0.0]))
    return health(Pendulums(n=1, dt=0.01), params, state, steps=steps)


def test_the_command_prints_tables_and_leaves_a_picture_and_the_data(tmp_path: Path) -> None:
    scene = oscillator.write(tmp_path)
    result = simphys("health", scene, f"output.folder={tmp_path / 'run'}", "output.every=5")
    assert result.exit_code == 0
    assert "A mass on a spring: 495 steps (0.99 s), f64" in result.stdout
    assert "Longest horizon with a usable gradient: 495 steps (0.99 s) (the whole horizon examined)." in result.stdout
    assert result.stdout.endswith(f"{tmp_path / 'run'}/\n  health.h5\n  health.png\n")
    loaded = load_scene(scene)
    start = {name: value.detach().requires_grad_() for name, value in vars(loaded.state).items()}
    trajectory = loaded.rollout(state=loaded.state.replace(**start), keep_adjoint=True)
    loaded.loss(trajectory).backward()
    assert trajectory.adjoint is not None
    with h5py.File(tmp_path / "run" / "health.h5") as file:
        assert file["adjoint/position"].attrs["unit"] == b"loss/(m)"
        np.testing.assert_array_equal(file["adjoint/step"], np.arange(0, 496, 5))
        np.testing.assert_allclose(file["adjoint/velocity"], trajectory.adjoint.velocity[::5], rtol=1e-12)
        assert file["growth/log_adjoint"].shape == file["growth/log_tangent"].shape == (496,)
        assert file["usable_steps"][()] == 495


def test_in_single_precision_the_limit_is_nearer(tmp_path: Path) -> None:
    arguments = ["runtime.precision=f32", f"output.folder={tmp_path / 'run'}"]
    done = simphys("health", oscillator.write(tmp_path), *arguments)
    assert done.exit_code == 0
    assert "495 steps (0.99 s), f32" in done.stdout
    assert "the adjoint's growth passes 1/eps = 8.4e+06" in done.stdout


def test_a_run_in_the_same_folder_stays(tmp_path: Path) -> None:
    scene = oscillator.write(tmp_path)
    folder = f"output.folder={tmp_path / 'run'}"
    assert simphys("run", scene, folder).exit_code == 0
    kept = (tmp_path / "run" / "run.h5").read_bytes()
    assert simphys("health", scene, folder).exit_code == 0
    assert (tmp_path / "run" / "run.h5").read_bytes() == kept


def test_without_a_loss_the_health_is_that_of_the_motion() -> None:
    scene = small_scenes.soft_square(loss=None)
    found = scene_health(scene)
    assert found.steps == 20
    assert all((values[-1] != 0).all() for values in found.adjoint.values())  # a weight for each component of the end


def test_terms_that_refer_to_the_start_are_differentiated_by_it_too() -> None:
    """A target relative to the start: moved as a whole, start and target move alike, and the loss stays."""
    found = scene_health(small_scenes.soft_square())
    np.testing.assert_allclose(found.adjoint["position"][0].sum(axis=0), 0, atol=1e-12)
    assert np.abs(found.adjoint["position"][1].sum(axis=0)).max() > 0.1


def test_a_horizon_that_is_too_long_is_told_with_its_usable_part(capsys: pytest.CaptureFixture[str]) -> None:
    found = on_top(2500)
    print_health(found, title="On top")
    shown = capsys.readouterr().out
    assert "On top: 2500 steps (25 s), f64" in shown
    assert "+2 1/s" in shown
    assert f"{found.usable_steps + 1} steps ({(found.usable_steps + 1) * 0.01:.4g} s) from the end" in shown
    assert f"Longest horizon with a usable gradient: {found.usable_steps} steps" in shown
    assert "Over the whole horizon the gradient is noise" in shown
    assert "At this rate" not in shown


def test_where_the_horizon_would_end_is_told_when_growth_is_exponential(capsys: pytest.CaptureFixture[str]) -> None:
    print_health(on_top(500))
    assert "At this rate it would end after about 18" in capsys.readouterr().out


def test_the_first_nan_is_told_with_its_sub_step_and_what_can_be_done(capsys: pytest.CaptureFixture[str]) -> None:
    model, params = tanks.Tanks(2), tanks.Params(tensor(1.0))
    print_health(health(model, params, tanks.State(tensor([4.0, 1.0])), steps=60))
    shown = capsys.readouterr().out
    assert "forward: level[1] = nan at step 19 (t = 1.9 s), made by Sqrt" in shown
    assert "keep them where Sqrt is defined" in shown
    assert "tanks.py" in shown and "faults.py" not in shown  # the sub-step's line, and not what ran it again
    assert "The tables above are about the motion before that" in shown
    print_health(health(model, params, tanks.State(tensor([4.0, -1.0])), steps=60))
    shown = capsys.readouterr().out
    assert "No horizon has a usable gradient." in shown
    assert "Sensitivity" not in shown


def test_what_nothing_can_be_learnt_about_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    found = on_top(20)  # at rest there is nothing that stiffness or damping act on
    print_health(found)
    shown = capsys.readouterr().out
    assert "Nothing can be learnt about stiffness, damping: no effect beyond the rounding of the loss." in shown


def impacts(steps: list[int], *, one_sided: str = "") -> tuple[Event, ...]:
    return tuple([Event(step, step * 0.01 + 0.004, "impact", f"ball {step}", one_sided) for step in steps])


def test_events_are_counted_with_their_steps_and_those_that_make_a_gradient_one_sided_are_told_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stick = Event(7, 0.07, "stick", "block 0", "its speed is exactly 0")
    print_health(replace(on_top(20), events=(*impacts([2, 5, 5]), stick)))
    shown = capsys.readouterr().out
    rows = table_rows(shown)
    assert ["impact", "3", "-", "2, 5"] in rows and ["stick", "1", "1", "7"] in rows
    assert ["7", "0.07", "stick", "block 0", "its speed is exactly 0"] in rows
    assert "At an event the gradient is one of several different ones." in shown
    assert "optimizer.smoothing" in shown


def test_of_many_events_the_first_and_the_last_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    print_health(replace(on_top(20), events=impacts(list(range(0, 600, 2)), one_sided="two at once")))
    shown = capsys.readouterr().out
    assert "0, 2, 4, 6, 8, 10 and 294 more, the last 598" in shown
    assert "and 294 more, the last in step 598" in shown
    assert shown.count("two at once") == 6
    assert "At 300 events" in shown


def test_without_events_nothing_is_told_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    print_health(on_top(20))
    assert "vent" not in capsys.readouterr().out


def test_where_a_horizon_is_too_long_something_that_works_is_offered(capsys: pytest.CaptureFixture[str]) -> None:
    print_health(on_top(2500))
    assert "Remedies: a horizon no longer than that" in capsys.readouterr().out
    print_health(on_top(500))
    assert "Remed" not in capsys.readouterr().out


def test_events_are_stored_a_dataset_each_field(tmp_path: Path) -> None:
    write_hdf5(replace(on_top(20), events=impacts([3, 14], one_sided="µ")), tmp_path / "health.h5", units={})
    with h5py.File(tmp_path / "health.h5") as file:
        np.testing.assert_array_equal(file["events/step"], [3, 14])
        np.testing.assert_allclose(file["events/time"], [0.034, 0.144])
        assert file["events/time"].attrs["unit"] == b"s"
        assert [text.decode() for text in file["events/kind"]] == ["impact", "impact"]
        assert [text.decode() for text in file["events/what"]] == ["ball 3", "ball 14"]
        assert [text.decode() for text in file["events/one_sided"]] == ["µ", "µ"]
    write_hdf5(on_top(20), tmp_path / "health.h5", units={})
    with h5py.File(tmp_path / "health.h5") as file:
        assert "events" not in file


def test_the_command_tells_of_a_body_that_comes_down(tmp_path: Path) -> None:
    """A mass on a spring, standing on the ground at the start: exactly there, and pressed into it after."""
    scene = oscillator.write(tmp_path)
    scene.write_text(
        oscillator.SIMULATION.replace("[[0.2]]", "[[0.2]]\n\n[environment]\nground = { height = 0.2, stiffness = 9.0 }")
    )
    result = simphys("health", scene, f"output.folder={tmp_path / 'run'}")
    assert result.exit_code == 0
    rows = table_rows(result.stdout)
    assert ["contact", "1", "1", "0"] in rows
    (reason,) = [row[-1] for row in rows if row[:-1] == ["0", "0", "contact", "node 0"]]
    assert reason.startswith("exactly at the ground's")


def test_a_fault_is_exit_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = health(tanks.Tanks(1), tanks.Params(tensor(1.0)), tanks.State(tensor([-1.0])), steps=3)
    monkeypatch.setattr("simphys.diagnose.health.scene_health", lambda scene: broken)
    result = simphys("health", oscillator.write(tmp_path), f"output.folder={tmp_path / 'run'}")
    assert result.exit_code == 1
    assert result.stdout.endswith(f"{tmp_path / 'run'}/\n  health.h5\n")  # there is nothing to draw


def test_a_folder_that_cannot_be_made_and_a_file_that_cannot_be_written_are_told(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    scene = small_scenes.soft_square(output={"folder": str(tmp_path / "taken")})
    with pytest.raises(InputError, match=r"output folder .*taken: must be a folder that can be created"):
        write_health(scene, scene_health(scene))
    with pytest.raises(StorageError, match=r"health\.h5 cannot be written"):
        write_hdf5(on_top(20), tmp_path / "absent" / "health.h5", units={})
