"""A scene file becomes a validated scene, or one error that tells where each of its problems stands."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.scenefile import Config, ConfigError, from_dict, load, to_dict
from simphys.scenefile.simulators import SIMULATORS
from simphys.simulators.mass_spring.scene import MassSpringConfig

GLIDER = """\
title = "One glider"
[simulator]
name = "mass_spring"
[time]
dt = 1e-3
[geometry]
position = [[-70.0]]
[[geometry.anchors]]
node = 0
point = [4.0]
stiffness = 8.0
[unknowns.spring_rate]
parameter = "stiffness"
bounds = [0.1, inf]
[observations]
file = "track.txt"
time = 1
[[observations.channels]]
column = 2
field = "position"
node = 0
"""


@pytest.fixture
def glider(tmp_path: Path) -> Path:
    return written(tmp_path, GLIDER)


def written(folder: Path, text: str) -> Path:
    path = folder / "glider.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refused(path: Path, *overrides: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(path, overrides)
    assert str(caught.value) == "\n".join(str(error) for error in caught.value.errors)
    return [str(error) for error in caught.value.errors]


def test_defaults_are_filled_in(glider: Path) -> None:
    config = load(glider)
    assert isinstance(config, MassSpringConfig)
    assert config.runtime.model_dump() == {
        "arch": "cpu",
        "compiler": "auto",
        "precision": "f64",
        "threads": "auto",
        "seed": 0,
        "memory": "all",
        "deterministic": False,
        "verify": True,
    }
    assert config.optimizer.method == "least_squares"
    assert config.unknowns["spring_rate"].bounds == [0.1, math.inf]
    assert config.output.folder == "runs/glider"


def test_overrides_win_and_the_last_one_most(glider: Path) -> None:
    config = load(glider, ["geometry.anchors.0.stiffness=3", "time.dt=1e-2", "time.dt=2e-3"])
    assert isinstance(config, MassSpringConfig)
    assert config.geometry.anchors[0].stiffness == 3.0
    assert config.time.dt == 2e-3


def test_a_path_in_the_file_is_relative_to_the_file(glider: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert observed(load(glider)) == str(glider.parent / "track.txt")


@pytest.mark.parametrize("override", ["observations.file=data/x.txt", 'observations.file="data/x.txt"'])
def test_a_path_in_an_override_is_relative_to_the_current_folder(
    glider: Path, override: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    assert observed(load(glider, [override])) == str(elsewhere / "data/x.txt")


def test_an_absolute_path_stays(glider: Path) -> None:
    assert observed(load(glider, ["observations.file=/data/x.txt"])) == "/data/x.txt"


def observed(config: Config) -> str:
    assert config.observations is not None
    return config.observations.file


def test_a_scene_survives_json(glider: Path) -> None:
    config = load(glider)
    stored = json.dumps(to_dict(config), allow_nan=False)
    assert from_dict(json.loads(stored)) == config


def test_a_script_may_give_arrays_and_tuples() -> None:
    config = from_dict(
        {
            "simulator": {"name": "mass_spring"},
            "time": {"dt": np.float64(1e-3), "steps": np.int64(3)},
            "geometry": {"position": np.zeros((2, 2)), "springs": ((0, 1),)},
            "material": {"stiffness": np.ones(1)},
        }
    )
    assert config.time.steps == 3
    assert from_dict(to_dict(config)) == config


def test_errors_of_a_script_name_what_the_script_calls_the_scene() -> None:
    with pytest.raises(
        ConfigError, match=r"^cloth: geometry: this section is required; found nothing\. Add geometry\."
    ):
        from_dict({"simulator": {"name": "mass_spring"}, "time": {"dt": 1.0, "steps": 1}}, source="cloth")


def test_a_missing_file_is_told_with_the_nearest_name(glider: Path) -> None:
    missing = glider.with_name("gilder.toml")
    assert refused(missing) == [
        f"{missing}: the scene file must exist; found no such file. Did you mean 'glider.toml'?"
    ]


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    (line,) = refused(tmp_path / "no" / "scene.toml")
    assert "the scene file must exist; found no such file. Give the path of a scene, a TOML file." in line


def test_a_folder_is_no_scene(tmp_path: Path) -> None:
    assert "the scene file must be readable" in refused(tmp_path)[0]


def test_a_file_that_is_not_text_is_told(tmp_path: Path) -> None:
    path = tmp_path / "scene.toml"
    path.write_bytes(b"title = '\xff'")
    assert refused(path) == [f"{path}: a scene is UTF-8 text; found byte 9 that is not UTF-8. Save it as UTF-8."]


def test_a_syntax_error_has_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, GLIDER.replace("dt = 1e-3", "dt = 1e-3 s"))
    (line,) = refused(path)
    assert line.startswith(f'{path}:5: a scene must be valid TOML; found "dt = 1e-3 s". ')


def test_a_syntax_error_at_the_end_has_the_last_line(tmp_path: Path) -> None:
    path = written(tmp_path, "a = 1\nb = [1,\n")
    assert refused(path)[0].startswith(f"{path}:2: a scene must be valid TOML")


def test_all_problems_are_told_at_once_in_the_order_of_their_lines(tmp_path: Path) -> None:
    text = GLIDER.replace("dt = 1e-3", "dt = -1e-3").replace("node = 0\npoint", "node = 3\npoint")
    text = text.replace('"stiffness"\n', '"stifness"\n').replace("column = 2", "colum = 2\nsigma = '1'")
    path = written(tmp_path, text)
    assert refused(path) == [
        f"{path}:5: time.dt: must be greater than 0; found -0.001. Give a value that is greater than 0.",
        f"{path}:9: geometry.anchors.0.node: must be the index of one of 1 nodes, counted from 0; found 3."
        " Give an index from 0 to 0.",
        f"{path}:18: observations.channels.0.column: this key is required; found nothing."
        " Add observations.channels.0.column.",
        f"{path}:19: observations.channels.0.colum: unknown key; found 2. Did you mean 'column'?",
        f'{path}:20: observations.channels.0.sigma: must be a number, or "unknown"; found "1".'
        " Write numbers without quotes.",
    ]


def test_a_problem_of_an_override_names_the_override(glider: Path) -> None:
    assert refused(glider, "time.dt=-1", "geometry.anchors.0.stifness=3") == [
        "override 'time.dt=-1': time.dt: must be greater than 0; found -1. Give a value that is greater than 0.",
        "override 'geometry.anchors.0.stifness=3': geometry.anchors.0.stifness: unknown key; found 3."
        " Did you mean 'stiffness'?",
    ]


def test_a_problem_beside_an_override_keeps_its_line(glider: Path) -> None:
    (line,) = refused(glider, "unknowns.spring_rate.start=0.05")
    assert line.startswith(f"{glider}:14: unknowns.spring_rate.bounds: the bounds [0.1, inf] must include the start")


def test_overrides_that_cannot_be_read_are_told_with_the_other_problems(glider: Path) -> None:
    lines = refused(glider, "time.dt", "geometry.anchors.4.node=0", "runtime.threads=0")
    assert lines[0].startswith("override 'time.dt': must be KEY=VALUE")
    assert lines[1].startswith("override 'geometry.anchors.4.node=0': geometry.anchors has 1 elements")
    assert lines[2].startswith("override 'runtime.threads=0': runtime.threads: must be at least 1")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ('name = "mass_sprong"', "found \"mass_sprong\". Did you mean 'mass_spring'?"),
        ("", f"found nothing. Known: {', '.join(SIMULATORS)}."),
        ("name = 3", f"found 3. Known: {', '.join(SIMULATORS)}."),
        ('name = ".own:Config"', 'found ".own:Config".'),
    ],
)
def test_an_unknown_simulator_is_told_with_the_other_problems(tmp_path: Path, name: str, told: str) -> None:
    path = written(tmp_path, GLIDER.replace('name = "mass_spring"', name).replace("1e-3", "0"))
    first, second = refused(path)
    assert "simulator.name: must name a simulator; " + told in first
    assert second.startswith(f"{path}:5: time.dt: must be greater than 0")


def test_of_many_wrong_elements_only_the_first_are_told(tmp_path: Path) -> None:
    path = written(tmp_path, GLIDER + f"[material]\nmass = {[-1.0] * 1000}\n")
    lines = refused(path)
    assert len(lines) == 6
    assert "material.mass.4: must be greater than 0; found -1.0" in lines[4]
    assert lines[5].startswith(f"{path}:23: material.mass: its elements have other problems like these; found 995 more")


def test_nothing_in_a_scene_is_executed(tmp_path: Path) -> None:
    path = written(tmp_path, GLIDER.replace('"One glider"', "\"{__import__('os').getcwd()} $HOME `pwd` %(x)s\""))
    assert load(path).title == "{__import__('os').getcwd()} $HOME `pwd` %(x)s"


DEEP = "[" * 5000 + "]" * 5000


@pytest.mark.parametrize(
    ("text", "overrides", "message"),
    [
        (f"x = {DEEP}", [], "tables and lists are nested some levels deep"),
        (f"{'.'.join('a' * 3000)} = 1", [], "tables and lists are nested some levels deep"),
        ("x = " + "9" * 5000, [], "numbers have some digits"),
        ("", [f"title={DEEP}"], "the value has some digits, or some levels"),
        ("", ["time.steps=" + "9" * 5000], "the value has some digits, or some levels"),
        ("", [f"{'.'.join('a' * 5000)}=1"], "tables and lists are nested some levels deep"),
    ],
    ids=["list", "table", "number", "override", "number of an override", "key of an override"],
)
def test_what_python_cannot_hold_is_an_error(text: str, overrides: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        load(written(tmp_path, f"{text}\n{GLIDER}"), overrides)
    assert len(str(caught.value)) < 3000


def test_tables_of_a_script_may_be_too_deep() -> None:
    deep: Any = 1
    for _ in range(3000):
        deep = [deep]
    with pytest.raises(ConfigError, match="scene: tables and lists are nested some levels deep"):
        from_dict({"simulator": {"name": "heat"}, "x": deep})


def test_text_of_bytes_that_are_no_utf8_is_invalid(glider: Path) -> None:
    with pytest.raises(ConfigError, match="title: must be text"):
        load(glider, ['title="bad \udcff"'])
    assert load(glider, ['output.folder="bad \udcff"']).output.folder == "bad \udcff"  # a path may be of any bytes


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not delete the current folder")
def test_a_current_folder_that_was_deleted_is_told(
    glider: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables, gone = to_dict(load(glider)), tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert load(glider).time.dt > 0  # needs none
    for call in (lambda: from_dict(tables), lambda: load(glider, ["time.dt=0.1"])):
        with pytest.raises(ConfigError, match="Change to another folder"):
            call()
