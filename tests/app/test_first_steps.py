"""Commands for a start: list, new, docs, compare, and the examples in the help."""

from __future__ import annotations

import tomllib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.app.command import EXAMPLES as HELP
from simphys.app.command import main
from simphys.app.compare_runs import compare_runs
from simphys.app.key_docs import find_keys, list_keys
from simphys.app.start_scene import EXAMPLES
from simphys.autograd.errors import InputError
from simphys.experiment.scene import load_scene
from simphys.record import MemoryRecorder, Recording
from simphys.scenefile.simulators import SIMULATORS

from ..helpers.oscillator import simphys

SCENES = Path(__file__).resolve().parents[2] / "scenes"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_list_has_a_line_for_each_scene_that_ships(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SCENES.parent)  # paths are relative there: those of a long checkout would be folded
    shown = simphys("list").stdout
    for path in SCENES.rglob("*.toml"):
        assert path.stem in shown
    assert tomllib.loads((SCENES / "mass_spring" / "jelly.toml").read_text())["title"] in shown


def test_list_of_a_folder_without_scenes_says_so(tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text("[tool]\nname = 1\n")
    (tmp_path / "broken.toml").write_text("[[[")
    result = simphys("list", tmp_path)
    assert result.exit_code == 2 and "must be a folder with scene files" in result.stderr


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_a_new_scene_of_any_simulator_runs_at_once_and_its_comments_name_real_fields(simulator: str) -> None:
    assert simphys("new", "mine", "--simulator", simulator).stdout.split() == ["mine.toml"]
    scene = load_scene("mine.toml")
    scene.rollout(steps=5)
    example = EXAMPLES[simulator]
    assert example.field in scene.state.names()
    assert example.parameter in scene.values()
    assert scene.config.output.folder == "runs/mine"


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_the_unknown_in_the_comments_of_a_new_scene_is_physical(simulator: str) -> None:
    """Without its comment signs, the example is a valid unknown whose bounds the simulator does not refuse."""
    simphys("new", "mine", "--simulator", simulator)
    text = Path("mine.toml").read_text().replace("# [unknowns", "[unknowns")
    begin = text.index("[unknowns")
    end = text.index("\n#\n", begin)
    Path("mine.toml").write_text(text[:begin] + text[begin:end].replace("\n# ", "\n") + text[end:])
    scene = load_scene("mine.toml")
    (unknown,) = scene.config.unknowns.values()
    values = scene.values()[unknown.parameter]
    assert unknown.tied or values.size == 1 or unknown.entries
    demand = type(scene.config).DEMANDS.get(unknown.parameter, lambda number: "")
    low, high = (0.0, np.inf) if unknown.transform == "log" else unknown.bounds
    tiny = np.nextafter(low, np.inf) if unknown.transform == "log" else low
    for inside in {max(tiny, -1e300), min(high, 1e300), float(values.flat[0])}:
        assert not demand(inside)
    for number in (-1.0, 1e300):  # what the simulator refuses, bounds exclude
        assert not demand(number) or not low <= number <= high


def test_a_new_scene_of_molecules_names_the_units_of_its_comments() -> None:
    simphys("new", "mine", "--simulator", "molecular")
    units = load_scene("mine.toml").units
    assert (units.length, units.time) == ("nm", "ps")


def test_every_simulator_has_a_start() -> None:
    assert set(EXAMPLES) == set(SIMULATORS)


def test_new_overwrites_nothing_and_knows_its_simulators() -> None:
    assert simphys("new", "a/mine").exit_code == 0
    again = simphys("new", "a/mine")
    assert again.exit_code == 2 and "must be a new file" in again.stderr
    wrong = simphys("new", "other", "-s", "rgid")
    assert wrong.exit_code == 2 and "Did you mean 'rigid'?" in wrong.stderr
    assert not Path("other.toml").exists()


def test_docs_give_unit_default_and_bounds_of_a_key() -> None:
    (dt,) = find_keys("time.dt")
    assert (dt.kind, dt.default, dt.bounds) == ("number", "required", "> 0")
    assert "[s]" in dt.section and set(dt.simulators) == set(SIMULATORS)
    (method,) = find_keys("optimizer.method")
    assert '"lbfgs"' in method.kind and method.default == "'least_squares'"


@pytest.mark.parametrize(
    ("key", "unit"),
    [
        ("time.dt", "s"),
        ("material.rest_length", "m"),
        ("medium.heat_capacity", "J/(m^3 K)"),
        ("particle_volume", "m^2 or m^3"),
        ("joints.0.damping", "N m s or kg/s"),
        ("geometry.anchors.0.point", "m"),  # what follows it in its section is a stiffness
        ("unknowns.NAME.bounds", "unit of the parameter"),
        ("material.restitution", "1"),
        ("time.steps", ""),
        ("bodies.0.law", ""),
    ],
)
def test_docs_find_the_unit_of_a_number_in_its_section(key: str, unit: str) -> None:
    assert {doc.unit for doc in find_keys(key) if doc.path.endswith(key)} == {unit}


def test_every_number_has_a_unit_and_nothing_else_has_one() -> None:
    without = {doc.path for doc in list_keys() if "number" in doc.kind and not doc.unit}
    assert not without, "the text of their section names these with a unit in brackets, [1] without a dimension"
    assert not [doc.path for doc in list_keys() if "number" not in doc.kind and doc.unit]


def test_no_unit_is_an_index() -> None:
    assert {doc.unit for doc in list_keys()} & {"j", "J", "n", "m"} == {"J", "m"}


def test_docs_find_the_end_of_a_key_a_section_and_a_simulator() -> None:
    assert {doc.path for doc in find_keys("friction")} >= {"environment.ground.friction", "bodies.0.friction"}
    assert {doc.path for doc in find_keys("time")} == {"time.dt", "time.steps", "time.duration"}
    assert all("rigid" in doc.simulators for doc in find_keys("rigid"))
    result = simphys("docs", "restitution")
    assert result.exit_code == 0 and "bodies.0.restitution" in result.stdout
    assert "\nbodies.0: " in result.stdout  # each description says of which section it is
    with pytest.raises(InputError, match="friction"):
        find_keys("frction")


def test_docs_find_the_keys_of_a_simulator_that_no_package_announces() -> None:
    own = find_keys("simphys.simulators.heat.scene:HeatConfig")
    assert {(doc.path, doc.unit) for doc in own} == {(doc.path, doc.unit) for doc in find_keys("heat")}
    with pytest.raises(InputError, match=r"name a subclass of simphys\.scenefile\.Config"):
        find_keys("simphys.simulators.heat.model:Heat")
    with pytest.raises(InputError, match="No module named 'nowhere'"):
        find_keys("nowhere:Config")


def recorded(values: list[float], *, mass: float, **errors: list[float]) -> Recording:
    scene = {"title": "A run", "material": {"mass": mass, "drag": 0.1}, "output": {"folder": f"runs/{mass}"}}
    recorder = MemoryRecorder(kind="optimize", provenance={"simphys": "0.1.0"}, scene=scene)
    columns: dict[str, Any] = {"label": ["k", "c"], "unit": ["N/m", "1/s"], "start": [1.0, 1.0], "value": values}
    columns |= {"standard_error": [0.3, 0.04], **errors}
    recorder.write("unknowns", attrs={"status": "converged", "message": "", "loss": 1.0}, **columns)
    return recorder.recording


def test_two_runs_are_compared_by_scene_and_by_values_in_their_errors() -> None:
    tables = {table.caption: table for table in compare_runs(recorded([40, 1], mass=1), recorded([41, 1.1], mass=2))}
    assert tables["Scenes differ in"].rows == (("material.mass", "1", "2"),)
    k, c = tables["Identified values"].rows
    assert k == ("k", "N/m", "40.00", "41.00", "+1", "+2.4", "standard error")
    assert c[-2:] == ("+1.8", "standard error")  # 0.1 / (0.04 sqrt 2)


def test_scenes_are_compared_to_the_last_key_of_a_table_in_a_list() -> None:
    """Two channels that differ behind the first sixty characters of all that is said of them."""

    def seen(sigma: float) -> Recording:
        channel = {"column": 1, "field": "position", "node": 0, "axis": 0, "kind": "component", "unit": "m"}
        scene = {"observations": {"channels": [channel, channel | {"sigma": sigma}]}}
        return MemoryRecorder(kind="run", provenance={}, scene=scene).recording

    (table,) = [each for each in compare_runs(seen(0.1), seen(0.2)) if each.caption == "Scenes differ in"]
    assert table.rows == (("observations.channels.1.sigma", "0.1", "0.2"),)


def test_runs_with_correlated_residuals_are_compared_by_the_errors_that_allow_for_it() -> None:
    """The same difference is four times as many errors, if one takes residuals for independent."""
    first, second = (recorded(values, mass=1, robust_error=[1.2, 0.01]) for values in ([40.0, 1.0], [41.0, 1.1]))
    (table,) = [each for each in compare_runs(first, second) if each.caption == "Identified values"]
    k, c = table.rows
    assert k[-2:] == ("+0.59", "if correlated")  # 1 / (1.2 sqrt 2)
    assert c[-2:] == ("+1.8", "standard error")  # the smaller one does not count
    (table,) = [each for each in compare_runs(recorded([40, 1], mass=1), second) if each.caption == "Identified values"]
    assert table.rows[0][-2:] == ("+0.81", "standard error, if correlated")  # 1 / hypot(0.3, 1.2)


def test_runs_of_other_kinds_are_compared_as_far_as_they_go() -> None:
    bare = MemoryRecorder(kind="run", provenance={}, scene={"title": "Another"}).recording
    captions = [table.caption for table in compare_runs(recorded([1, 1], mass=1), bare)]
    assert captions == ["Runs", "Scenes differ in"]


@pytest.mark.parametrize("name", HELP)
def test_help_shows_an_example_that_is_one_of_its_command(name: str) -> None:
    assert HELP[name].startswith(f"simphys {name} ")
    assert HELP[name].split()[-1] in simphys(name, "-h").stdout.replace("\n", " ")


def test_a_warning_of_the_command_is_one_line_without_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["simphys", "--version"])
    for hook in ("sys.unraisablehook", "warnings.formatwarning"):
        monkeypatch.setattr(hook, None)
    with pytest.raises(SystemExit):
        main()
    assert warnings.formatwarning("it changes nothing", UserWarning, "scene.py", 3) == "warning: it changes nothing\n"


def test_a_fit_that_is_interrupted_after_its_search_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("simphys.app.workflow.identify", interrupt)
    result = simphys("optimize", str(SCENES / "mass_spring" / "air_track.toml"))
    assert result.exit_code == 130 and "--resume continues" in result.stderr
