"""A user's mistakes, through the command line: who noticed, which constraint, the value found, the remedy; exit 2."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from simphys.autograd import runtime
from simphys.record import Recording

from ..helpers import oscillator
from ..helpers.oscillator import SCENE, SIMULATION, simphys


@pytest.fixture(autouse=True)
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """scene.toml and data.txt in the current folder."""
    monkeypatch.chdir(tmp_path)
    return oscillator.write(tmp_path).relative_to(tmp_path)


def assert_refused(message: str, *arguments: str, loses: str = "runs") -> None:
    """Exit 2 with one message that begins so, nothing else on stdout or stderr, and no run is left behind."""
    result = simphys(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(message)
    assert re.search(r": .+; found .+\. .+\.?\n$", result.stderr)  # constraint, value, remedy
    assert result.stderr.count("\n") == 1
    assert not Path(loses).exists()


def write(old: str, new: str) -> int:
    """Change the scene file; returns the line where the new text begins."""
    assert old in SCENE
    text = SCENE.replace(old, new)
    Path("scene.toml").write_text(text)
    return text[: text.index(new)].count("\n") + 1


MATERIAL = "[material]\ndrag = 0.2"
POSITION = "position = [[0.2]]"


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("dt = 2e-3", "dt = 2e-3\nstep = 3", 1, "time.step: unknown key; found 3. Did you mean 'steps'?"),
        ("[time]", "[times]", 0, "times: unknown section; found {"),
        ("dt = 2e-3", 'dt = "2e-3"', 0, 'time.dt: must be a number; found "2e-3". Write numbers without quotes.'),
        (MATERIAL, f"{MATERIAL}\nmass = -1", 2, "material.mass: must be greater than 0; found -1"),
        (MATERIAL, f"{MATERIAL}\nmass = [1, 2]", 2, "material.mass: must have 1 elements, one for each node; found ["),
        (POSITION, "position = [[nan]]", 0, "geometry.position.0.0: must be a finite number; found NaN"),
        (
            'parameter = "drag"',
            'parameter = "drug"',
            0,
            'unknowns.drag.parameter: must name a parameter, a state component or a control; found "drug". Did you',
        ),
        (
            "bounds = [0, inf]",
            "bounds = [1, inf]",
            0,
            "unknowns.drag.bounds: the bounds [1, inf] must include the start; found a start of 0.2. Widen the bounds",
        ),
        (
            "entries = [0]",
            "entries = [7]",
            0,
            "unknowns.drag.entries.0: drag has the shape [2], counted from 0; found 7",
        ),
        ("node = 0\nunit", "node = 5\nunit", 0, "observations.channels.0.node: must be the index of one of 2 nodes"),
    ],
)
def test_a_mistake_in_the_scene_is_told_with_its_line(old: str, new: str, line: int, message: str) -> None:
    number = write(old, new) + line
    result = simphys("optimize", "scene.toml")
    assert result.exit_code == 2
    assert f"scene.toml:{number}: {message}" in result.stderr
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("springs", "rest_length", "message"),
    [
        ("[[0, 0]]", 1, "geometry.springs.0: its numbers must differ from each other; found [0, 0]. Name another"),
        ("[[0, 2]]", 1, "geometry.springs.0.1: must be the index of one of 2 nodes, counted from 0; found 2. Give an"),
        ("[[0, -1]]", 1, "geometry.springs.0.1: must be at least 0; found -1. "),
        (
            "[[0, 1]]",
            1,
            "geometry.springs.0: a spring of zero length needs the rest length 0, not 1; found [0, 1]. Move",
        ),
    ],
)
def test_an_impossible_spring_is_told(springs: str, rest_length: float, message: str) -> None:
    material = f"{MATERIAL}\nstiffness = 1.0\nrest_length = {rest_length}"
    text = SIMULATION.replace(POSITION, f"position = [[0.2], [0.2]]\nsprings = {springs}").replace(MATERIAL, material)
    Path("scene.toml").write_text(text)
    assert_refused(f"scene.toml:13: {message}", "run", "scene.toml")


def test_all_mistakes_of_a_scene_are_told_at_once() -> None:
    write("dt = 2e-3", "dt = -2e-3\nstep = 3")
    lines = simphys("optimize", "scene.toml", "material.mass=0", "foo", "geometry.anchors.3.stiffness=3").stderr
    for who in ("scene.toml:8: time.dt", "scene.toml:9: time.step", "override 'material.mass=0'", "override 'foo'"):
        assert f"{who}: " in lines
    assert 'geometry.anchors has 1 elements, counted from 0; found "3". Override geometry.anchors as a whole' in lines


def test_a_missing_scene_file_is_told_with_the_one_that_may_be_meant() -> None:
    message = "scen.toml: the scene file must exist; found no such file. Did you mean 'scene.toml'?\n"
    assert_refused(message, "optimize", "scen.toml")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["optimise", "scene.toml"], "optimize"),
        (["optimize"], "SCENE"),
        (["optimize", "scene.toml", "--overwite"], "--overwrite"),
    ],
)
def test_a_mistyped_command_line_is_told(arguments: list[str], message: str) -> None:
    result = simphys(*arguments)
    assert result.exit_code == 2 and message in result.stderr


def test_unknowns_that_the_data_cannot_tell_apart_are_named() -> None:
    mass = '[unknowns.mass]\nparameter = "mass"\nentries = [0]\n'
    Path("scene.toml").write_text(SCENE.replace("[unknowns.drag]", f"{mass}\n[unknowns.drag]"))
    assert_refused(
        "unknowns: the data must determine all 3 unknowns (rank of the Jacobian at the start); "
        "found rank 2: rate, mass can change together without any effect. Tie some of them together, fix one",
        "optimize",
        "scene.toml",
    )


def test_an_unknown_that_changes_no_observation_is_named() -> None:
    Path("scene.toml").write_text(SCENE + '[unknowns.fixed]\nparameter = "velocity"\nentries = [1]\n')
    result = simphys("optimize", "scene.toml")
    assert result.exit_code == 2
    assert "found rank 2: fixed changes no observation. " in result.stderr


@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "velocity_verlet"])
def test_a_time_step_beyond_the_stability_limit_is_told_with_the_largest_stable_one(integrator: str) -> None:
    Path("scene.toml").write_text(SIMULATION)
    start = ["run", "scene.toml", f"simulator.integrator={integrator}", "time.steps=5000"]
    assert_refused("time.dt: the largest stable time step of this scene is ", *start, "time.dt=0.5")
    message = simphys(*start, "time.dt=0.5").stderr
    expected = rf"this scene is (\S+), by .* \({integrator}\); found 0.5. Set time.dt to (\S+) or less"
    told = re.search(expected, message)
    assert told
    largest, advised = float(told[1]), float(told[2])
    assert_refused("time.dt: ", *start, f"time.dt={1.001 * largest}")
    assert advised < largest
    assert simphys(*start, f"time.dt={0.99 * largest}").exit_code == 0
    assert np.abs(Recording("runs/scene")["particles/nodes/position/value"]).max() < 3


DATA = "0.00 0.20\n0.01 0.19\n0.02 0.18\n"


@pytest.mark.parametrize(
    ("content", "overrides", "message"),
    [
        (
            None,
            [],
            "observations.file {file}: must be a file that can be read; found No such file or directory. Correct",
        ),
        ("", [], "observations.file {file}: must hold samples; found an empty file. Name another observations.file."),
        ("% only a remark\n", [], "observations.file {file}: must hold samples; found none. Name another"),
        (
            DATA.replace("0.19", "nan"),
            [],
            "{file}, line 2, column 1: samples must not be missing; found no value or NaN",
        ),
        (DATA.replace("0.01", "nan"), [], "{file}, line 2, column 0: every sample must have a time; found none. "),
        (
            DATA.replace("0.01", "0.03"),
            [],
            "{file}, line 3, column 0: times must increase; found 0.02 after 0.03. Sort",
        ),
        (
            DATA.replace("0.19", "x"),
            [],
            "{file}, line 2, column 1: must be a finite number; found 'x'. Correct the cell; ",
        ),
        (
            DATA,
            ["observations.time=7"],
            "observations.file {file}: has columns 0 to 1; found column 7. Count the columns",
        ),
        (
            "t,x\n0,0.2\n1,0.1\n",
            ["observations.time=t", "observations.channels.0.column=y"],
            "observations.file {file}: must have this column; found column 'y'. It has t, x.",
        ),
        (
            DATA,
            ["time.steps=5", "observations.window=[7.0,9.0]"],
            "{file}, column 0: must have samples in the window from 7 to 9; found times from",
        ),
    ],
)
def test_a_bad_measurement_is_told_with_its_place(content: str | None, overrides: list[str], message: str) -> None:
    file = Path("other.txt").absolute()
    if content is not None:
        file.write_text(content)
    assert_refused(message.format(file=file), "optimize", "scene.toml", "observations.file=other.txt", *overrides)


def test_an_arch_that_the_machine_lacks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "available", lambda arch: arch == "cpu")
    message = "runtime.init: arch=cuda must exist on this machine; found "
    assert_refused(message, "optimize", "scene.toml", "runtime.arch=cuda")
    assert (
        "without a cuda device. Use arch=cpu, or install " in simphys("run", "scene.toml", "runtime.arch=cuda").stderr
    )


@pytest.mark.parametrize("command", ["optimize", "run", "graph"])
def test_an_output_folder_that_cannot_be_written_is_told(command: str) -> None:
    Path("file").write_text("kept")
    message = "output folder file/run: must be "
    assert_refused(message, command, "scene.toml", "output.folder=file/run")
    assert "(output.folder=PATH)" in simphys(command, "scene.toml", "output.folder=file/run").stderr
    assert Path("file").read_text() == "kept"


def test_a_schema_that_cannot_be_written_is_told() -> None:
    assert_refused(
        "schema missing/schema.json: must be a file that can be written; found No such", "schema", "missing/schema.json"
    )


def test_a_folder_without_a_run_is_told() -> None:
    assert_refused("recording nowhere: must be the folder of a run; found no such folder. Give", "plot", "nowhere")
    Path("empty").mkdir()
    assert_refused("recording empty: must be the folder of a run; found no run.h5 there. Give", "plot", "empty")


def test_a_scene_without_unknowns_or_without_a_loss_cannot_be_fitted() -> None:
    Path("scene.toml").write_text(SIMULATION)
    assert_refused("unknowns: something must be unknown; found no [unknowns.NAME]", "optimize", "scene.toml")
    Path("scene.toml").write_text(SIMULATION + '[unknowns.rate]\nparameter = "stiffness"\n')
    assert_refused("loss: a loss needs observations or terms; found neither. Add", "optimize", "scene.toml")


def test_a_mistake_does_not_cost_the_run_that_was_to_be_overwritten() -> None:
    Path("scene.toml").write_text(SIMULATION)
    simphys("run", "scene.toml")
    before = {path: path.read_bytes() for path in Path("runs").rglob("*") if path.is_file()}
    for mistake in ("time.dt=9", "observations.file=missing", "geometry.position=[[nan]]", "unknowns.a.parameter=b"):
        assert simphys("run", "scene.toml", "--overwrite", mistake).exit_code == 2
        assert simphys("optimize", "scene.toml", "--overwrite", mistake).exit_code == 2
    assert {path: path.read_bytes() for path in Path("runs").rglob("*") if path.is_file()} == before


def test_a_resumed_run_must_be_of_the_same_scene_and_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simphys.plot.all_figures", lambda recording, folder: [])
    simphys("optimize", "scene.toml", "optimizer.iterations=2")
    before = Path("runs/scene/run.h5").read_bytes()
    resume = ["optimize", "scene.toml", "--resume"]
    both = simphys(*resume, "--overwrite")
    changed = simphys(*resume, "material.drag=0.25")
    Path("data.txt").write_text(Path("data.txt").read_text().replace("\n0.0100 ", "\n0.0101 "))
    other = simphys(*resume)
    for result, message in (
        (both, "identify: a run is either resumed or overwritten; found both. Drop one of them."),
        (changed, "resume of runs/scene: the scene must be that of the interrupted run; found [material] "),
        (other, "resume of runs/scene: the measurement must be that of the interrupted run; found another "),
    ):
        assert result.exit_code == 2 and result.stderr.startswith(message)
    assert Path("runs/scene/run.h5").read_bytes() == before


@pytest.mark.parametrize(("command", "package"), [("intervals", "iminuit"), ("sample", "pints")])
def test_a_missing_package_is_named_before_the_fit(command: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    assert_refused(
        f"{command}: needs the package {package}; found not installed. Run pip install", command, "scene.toml"
    )
