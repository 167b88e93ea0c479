"""A scene's own units of length and time stand in its pictures, report, replay and files."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simphys import plot
from simphys.app.workflow import simulate
from simphys.autograd.errors import InputError
from simphys.experiment.scene import Scene, load_scene
from simphys.record import Recording
from simphys.report.build import make_page
from simphys.report.replay import make_replay
from simphys.runs.export import export_run
from simphys.simulator import SI, Units

SCENES = Path(__file__).resolve().parents[2] / "scenes"
OWN = ('units.length="nm"', 'units.time="ps"')


UNITLESS = ("experiment", "rollout", "scenefile", "simulator", "simulators")
"""Folders whose messages are made where the units of the scene are not known, or a matter of its user."""
NAMES = r"(?:m|s|kg|J|Hz|Pa|rad/s|1/s|N/m|kg m\^2|m\^2|m/s|m/s\^2)"
OF_SI = re.compile(rf"\[{NAMES}\]|(?<=\}}) {NAMES}(?=[ ,.;:]|$)")


def load(name: str, *overrides: str) -> Scene:
    return load_scene(SCENES / f"{name}.toml", [*overrides, *OWN])


@pytest.fixture(scope="module")
def disc() -> Recording:
    return simulate(load("billiards/pocket", "time.steps=20"))


def labels(figure: Any) -> str:
    panels = [axes for axes in figure.axes if axes.get_visible()]
    figure.draw_without_rendering()
    return " | ".join(
        [text for axes in panels for text in (axes.get_xlabel(), axes.get_ylabel(), axes.get_title("left"))]
    )


def test_a_run_knows_the_units_of_its_scene(disc: Recording) -> None:
    assert disc.units == Units("nm", "ps")
    position, velocity = (f"particles/nodes/{name}/value" for name in ("position", "velocity"))
    assert disc.attrs(position)["unit"] == "nm"
    assert disc.attrs(velocity)["unit"] == "nm/ps"
    assert disc.attrs("particles/nodes/position/time")["unit"] == "ps"


def test_pictures_replay_and_report_name_them(disc: Recording) -> None:
    shown = labels(plot.trajectory(disc))
    assert "x [nm]" in shown and " ps" in shown and "[m]" not in shown
    replay = make_replay(disc)
    assert (replay["unit"], replay["time_unit"]) == ("nm", "ps")
    assert "nm/ps" in {colour["unit"] for layer in replay["layers"] for colour in layer.get("colours", ())}
    page = make_page(disc)
    assert "20 steps of" in page and " ps in all" in page and " s in all" not in page


def test_fields_on_a_grid_have_axes_in_them() -> None:
    run = simulate(load("wave/drop", "time.steps=20", "output.every=20"))
    shown = labels(plot.snapshots(run))
    assert "x [nm]" in shown and " ps" in shown and "[m]" not in shown
    assert make_replay(run)["unit"] == "nm"
    assert dict(zip(*[run.attrs("grid")[key] for key in ("fields", "units")], strict=True))["speed"] == "nm/ps"


def test_files_of_data_name_them(disc: Recording, tmp_path: Path) -> None:
    (position,) = [path for path in export_run(disc, tmp_path, "csv") if path.stem.endswith("position")]
    assert position.read_text().startswith("time [ps],")
    assert "[nm]" in position.read_text().partition("\n")[0]


def test_the_description_of_a_scene_names_them() -> None:
    text = repr(load_scene(SCENES / "molecular/argon.toml", ["geometry.cells=[2, 2, 2]", "simulator.cutoff=0.55"]))
    assert "0.01 ps = 2.5 ps" in text and "nm/ps" in text and "sigma 0.33 nm" in text and " kg" not in text


def test_a_run_of_a_scene_without_them_is_in_si() -> None:
    run = simulate(load_scene(SCENES / "billiards/pocket.toml", ["time.steps=2"]))
    assert run.units == SI
    statics: dict[str, Any] = run.store.statics  # type: ignore[attr-defined]
    scene = json.loads(statics["scene"][0])
    del scene["units"]  # as earlier versions left it
    statics["scene"][0] = json.dumps(scene)
    assert run.units == SI
    assert "x [m]" in labels(plot.trajectory(run))


def texts_of(tree: ast.AST) -> Iterator[str]:
    """Yield the texts of a program that are no docstrings, with {} for values in them."""
    docs = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    parts = {id(part) for each in ast.walk(tree) if isinstance(each, ast.JoinedStr) for part in each.values}
    for each in ast.walk(tree):
        if isinstance(each, ast.JoinedStr):
            yield "".join([str(part.value) if isinstance(part, ast.Constant) else "{}" for part in each.values])
        elif isinstance(each, ast.Constant) and isinstance(each.value, str) and not {id(each)} & (docs | parts):
            yield each.value


@pytest.mark.parametrize("folder", UNITLESS)
def test_messages_of_those_who_do_not_know_them_name_none(folder: str) -> None:
    for path in sorted((SCENES.parent / "simphys" / folder).rglob("*.py")):
        found = [text for text in texts_of(ast.parse(path.read_text())) if OF_SI.search(text)]
        assert not found, f"{path} names units of SI, which may not be those of the scene"


def test_a_message_with_a_unit_would_be_found() -> None:
    for line in ('x = f"at least {x:g} m apart"', 'x = f"{x} s"', 'x = "a length [m] of each"'):
        assert any([OF_SI.search(text) for text in texts_of(ast.parse(line))])
    for line in ('x = f"{x} steps"', '"""A length [m]."""', 'x = f"{x} of {y}s"'):
        assert not any([OF_SI.search(text) for text in texts_of(ast.parse(line))])


def test_a_unit_without_a_name_is_refused() -> None:
    with pytest.raises(InputError, match=r"units\.length"):
        load_scene(SCENES / "billiards/pocket.toml", ['units.length=""'])
