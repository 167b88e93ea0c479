"""The commands, as a user sees them: what they print, the files they leave and their exit status."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from simphys.app import cli
from simphys.app.report import FitProgress, format_duration
from simphys.optimize import IterationRecord
from simphys.record import Recording
from simphys.rollout.fused import Rollout

from ..helpers import oscillator
from ..helpers.oscillator import assert_same_fit, simphys
from ..helpers.printed import table_rows

PICTURES = {"fit.png", "convergence.png", "adjoint.png", "trajectory.png"}


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In the current folder, so that runs lie beside it."""
    monkeypatch.chdir(tmp_path)
    return oscillator.write(tmp_path).relative_to(tmp_path)


@pytest.fixture(scope="module")
def fit(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """The scene fitted once: the run's folder, and what was printed, as by a fit that lasts no time."""
    folder = tmp_path_factory.mktemp("fit")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("simphys.app.report.LOG_SECONDS", math.inf)
        return folder / "run", simphys("optimize", oscillator.write(folder), f"output.folder={folder / 'run'}")


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures take longest."""
    monkeypatch.setattr("simphys.plot.all_figures", lambda recording, folder: [])


def pictures(folder: str | Path) -> set[str]:
    return {path.name for path in Path(folder).glob("*.png")}


def test_optimize_prints_values_with_units_start_values_standard_errors_and_rmse(fit: tuple[Path, Result]) -> None:
    folder, result = fit
    assert result.exit_code == 0
    rows = {name: row for name, *row in table_rows(result.stdout)}
    unit, start, value, error, _, change = rows["rate"]
    assert (unit, start) == ("N/m", "30")
    assert float(value) == pytest.approx(oscillator.STIFFNESS, abs=4 * float(error))
    assert abs(float(change)) < float(error)
    unit, start, value, error, *_ = rows["drag"]
    assert (unit, start) == ("1/s", "0.2")
    assert float(value) == pytest.approx(oscillator.DRAG, abs=4 * float(error))
    rmse = re.search(r"position of node 0: RMSE (\S+) m\n", result.stdout)
    assert rmse and float(rmse[1]) == pytest.approx(oscillator.NOISE, rel=0.2)
    assert "\nconverged: " in result.stdout
    assert "\nverdict: passed\n" in result.stdout
    assert f"{folder}/\n" in result.stdout
    assert pictures(folder) == PICTURES == set(re.findall(r"\w+\.png", result.stdout))
    assert Recording(folder).kind == "optimize"


def test_optimize_logs_its_progress_in_few_lines_where_stderr_is_no_terminal(fit: tuple[Path, Result]) -> None:
    lines = [line for line in fit[1].stderr.splitlines() if "compiled in" not in line]
    assert re.fullmatch(r"iteration 0/50  loss \S+  \|gradient\| \S+  step 0.0e\+00", lines[0])
    assert re.fullmatch(r"iteration \d+/50  loss \S+  \|gradient\| \S+  step \S+  at most \d+ s left", lines[-1])
    assert len(lines) == 2


def test_on_a_terminal_progress_is_one_line_that_goes_away(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    with FitProgress(50) as progress:
        record = {"loss": 2.5, "gradient_norm": 0.1, "step_length": 0.01, "theta": None}
        progress.update(IterationRecord(stage=1, stages=4, horizon=0.25, index=7, **record))  # type: ignore[arg-type]
    shown = capsys.readouterr().err
    expected = "stage 2/4 (0.25 of the horizon)  iteration 7/50  loss 2.5  |gradient| 1.00e-01  step 1.0e-02  at most "
    assert expected in shown
    assert shown.endswith("\x1b[2K")  # the line is erased


def test_times_left_are_told_in_a_fitting_unit() -> None:
    assert [format_duration(seconds) for seconds in (45, 720, 12600)] == ["45 s", "12 min", "3.5 h"]


def test_a_fit_that_did_not_converge_is_exit_1_says_so_and_can_be_continued_as_if_it_had_never_ended(
    scene: Path, fit: tuple[Path, Result], undrawn: None
) -> None:
    stopped = simphys("optimize", scene, "optimizer.iterations=3")
    assert stopped.exit_code == 1
    assert "iteration limit: stopped after 3 iterations before it converged" in stopped.stdout
    assert "Raise optimizer.iterations; with --resume it goes on from here." in stopped.stdout
    assert simphys("optimize", scene, "--resume").exit_code == 0
    assert_same_fit(Path("runs/scene"), fit[0])


def test_an_existing_run_is_replaced_only_with_overwrite(scene: Path, fit: tuple[Path, Result]) -> None:
    shutil.copytree(fit[0], "runs/scene")
    kept = Path("runs/scene/run.h5").read_bytes()
    refused = simphys("run", scene)
    assert refused.exit_code == 2
    assert "output folder runs/scene: must not hold a run already; found run.h5 there. " in refused.stderr
    assert Path("runs/scene/run.h5").read_bytes() == kept
    refused = simphys("run", scene, "--overwrite")
    assert refused.exit_code == 2
    assert "runs/scene: must not hold a fit, which a simulation does not overwrite; found a fit in" in refused.stderr
    assert Path("runs/scene/run.h5").read_bytes() == kept
    assert simphys("run", scene, "output.folder=other").exit_code == 0
    assert simphys("run", scene, "output.folder=other", "--overwrite").exit_code == 0
    assert Recording("other").kind == "run"
    assert pictures("other") == {"fit.png", "trajectory.png"}


def test_run_simulates_with_overrides_in_toml_syntax(scene: Path) -> None:
    scene.write_text(oscillator.SIMULATION)
    result = simphys("run", scene, "geometry.anchors.0.stiffness=3", "state.velocity=[[1.5]]", "output.folder=here")
    assert (result.exit_code, result.stdout) == (0, "here/\n  trajectory.png\n")
    recording: Any = Recording("here")
    assert recording.scene["geometry"]["anchors"][0]["stiffness"] == 3
    assert recording["particles/nodes/velocity/value"][0, 0] == 1.5
    assert len(recording["particles/nodes/position/value"]) == 51


def test_plot_draws_again_what_was_recorded(fit: tuple[Path, Result], tmp_path: Path) -> None:
    copy = shutil.copytree(fit[0], tmp_path / "copy", ignore=shutil.ignore_patterns("*.png"))
    result = simphys("plot", copy)
    assert result.exit_code == 0
    assert pictures(copy) == PICTURES == set(re.findall(r"\w+\.png", result.stdout))
    (tmp_path / "alone").mkdir()
    alone = shutil.copy(fit[0] / "run.h5", tmp_path / "alone/glider.h5")
    result = simphys("plot", alone)
    assert result.exit_code == 0 and result.stdout.startswith(f"{tmp_path / 'alone'}/\n")
    assert pictures(tmp_path / "alone") == PICTURES


def test_report_writes_one_file_beside_the_run_or_elsewhere(fit: tuple[Path, Result], tmp_path: Path) -> None:
    folder, _ = fit
    first = simphys("report", folder)
    assert first.exit_code == 0 and first.stdout.split() == [str(folder / "report.html")]
    second = simphys("report", folder / "run.h5", "-o", tmp_path / "a.html")
    assert second.exit_code == 0
    assert (tmp_path / "a.html").read_text().startswith("<!DOCTYPE html>")


def test_a_run_writes_a_report_if_asked(scene: Path, undrawn: None) -> None:
    result = simphys("run", scene, "--report", "output.folder=there")
    assert result.exit_code == 0 and "report.html" in result.stdout
    assert "seconds" in Recording("there").attrs("cost")
    assert Path("there/report.html").is_file()


def test_a_certificate_is_saved_for_the_report_if_asked(scene: Path) -> None:
    result = simphys("check", scene, "--save", "output.folder=there")
    assert result.exit_code == 0 and "certificate.txt" in result.stdout
    assert Path("there/certificate.txt").read_text().strip() in result.stdout


def test_check_proves_the_gradient(scene: Path) -> None:
    result = simphys("check", scene)
    assert result.exit_code == 0
    assert result.stdout.startswith("Gradient, over the full horizon of 495 steps in f64 on cpu")
    assert re.search(r"^stiffness .* bitwise ", result.stdout, re.MULTILINE)
    assert result.stdout.endswith("proven\n")
    assert max(map(len, result.stdout.splitlines())) <= 140
    assert not Path("runs").exists()


def test_check_uses_and_reports_the_size_that_the_scene_states(scene: Path) -> None:
    simulation = oscillator.SIMULATION.replace("velocity_verlet", "semi_implicit_euler")  # compiles twice as fast
    scene.write_text(simulation + '[check]\noverrides = ["time.dt=0.02"]\n')
    assert "The scene states a smaller size for its check: time.dt=0.02.\n" in simphys("check", scene).stdout


def test_check_finds_a_wrong_adjoint(scene: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Rollout.backward

    def wrong(ctx: Any, *adjoints: Any) -> tuple[Any, ...]:
        gradients = list(right(ctx, *adjoints))
        gradients[1] = gradients[1] * 1.0001  # of the position at the start
        return tuple(gradients)

    monkeypatch.setattr(Rollout, "backward", staticmethod(wrong))
    result = simphys("check", scene)
    assert result.exit_code == 1
    failed = re.findall(r"^FAILED (position: [a-z =]+): ", result.stdout, re.MULTILINE)
    assert {"position: nested = fused", "position: adjoint = finite difference", "position: tangent = adjoint"} <= set(
        failed
    )
    assert "Each step agrees, but the fused gradient of position does not follow from the steps." in result.stdout
    assert result.stdout.endswith(" statements failed\n")


def test_graph_prints_and_draws_a_step_and_does_not_stand_in_the_way_of_a_run(scene: Path, undrawn: None) -> None:
    result = simphys("graph", scene)
    assert result.exit_code == 0
    assert "SpringForceBackward" in result.stdout and "stiffness" in result.stdout
    assert result.stdout.endswith("runs/scene/\n  graph.png\n")
    assert Path("runs/scene/graph.png").read_bytes().startswith(b"\x89PNG")
    assert simphys("optimize", scene).exit_code == 0
    assert Path("runs/scene/graph.png").exists()


def test_info_names_settings_and_versions(scene: Path) -> None:
    for result in (simphys("info"), simphys("info", scene)):
        assert result.exit_code == 0
        found = dict(line.split(maxsplit=1) for line in result.stdout.splitlines() if " here" not in line)
        assert (found["arch"], found["precision"], found["threads"]) == ("cpu", "f64", "1")
        assert {"simphys", "compiler", "python", "machine", "numpy", "scipy", "h5py", "matplotlib"} <= found.keys()
        assert re.search(r"cuda here +(yes|no)\n", result.stdout)


def test_schema_is_json(tmp_path: Path) -> None:
    assert simphys("schema", tmp_path / "schema.json").exit_code == 0
    assert "$defs" in json.loads((tmp_path / "schema.json").read_text())


def test_help_lists_the_commands() -> None:
    for result in (simphys("--help"), simphys()):
        for name in ("optimize", "run", "check", "plot", "graph", "info", "schema"):
            assert re.search(rf"\W {name} +\w", result.stdout)
    assert simphys("--help").exit_code == 0


def test_the_version_and_short_help() -> None:
    from simphys import __version__

    assert simphys("--version").stdout == f"simphys {__version__}\n"
    for arguments in ((), ("run",), ("optimize",)):
        assert simphys(*arguments, "-h").stdout == simphys(*arguments, "--help").stdout
    assert simphys("run", "-h").exit_code == 0


@pytest.mark.parametrize(("words", "expected"), [("simphys opt", "optimize"), ("simphys run --over", "--overwrite")])
def test_the_shell_completes_commands_and_options(
    words: str, expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["simphys"])
    monkeypatch.setattr("__main__.__package__", None, raising=False)  # as a command, also under `python -m pytest`
    monkeypatch.setenv("_SIMPHYS_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    with pytest.raises(SystemExit) as exit:
        cli.main()
    assert exit.value.code == 0 and capsys.readouterr().out == f"{expected}\n"


@pytest.mark.parametrize("place", [0, 1, 2])
def test_debug_shows_the_traceback_wherever_it_stands(
    place: int, scene: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", "missing.toml"]
    arguments.insert(place, "--debug")
    monkeypatch.setattr("sys.argv", ["simphys", *arguments])
    with pytest.raises(SystemExit) as exit:
        cli.main()
    assert exit.value.code == 2
    shown = capsys.readouterr().err
    assert shown.startswith("Traceback") and "ConfigError: missing.toml: the scene file must exist" in shown
