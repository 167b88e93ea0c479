"""The report of a run: what it says, that it needs nothing from outside, and what it does with unusual runs."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys.app.workflow import identify, simulate
from simphys.autograd.errors import InputError, StorageError
from simphys.experiment.scene import build_scene, load_scene
from simphys.plot.motion.recorded import ON_TRACK
from simphys.record import MemoryRecorder, Recording
from simphys.report import make_page, write_report
from simphys.report.build import read_status
from simphys.report.correlation import read_correlation
from simphys.report.packing import pack
from simphys.report.replay import make_replay
from simphys.report.scene_text import to_toml
from simphys.runs.digits import format_estimate
from simphys.runs.estimates import Estimate
from simphys.runs.fit_text import estimate_rows
from simphys.scenefile import from_dict, to_dict

from ..plot.grid_runs import grid_run, ripple

SCENES = Path(__file__).resolve().parents[2] / "scenes"
LARGEST = 5_000_000  # bytes


class Outline(HTMLParser):
    """Headings, identifiers, links, and pictures without a description."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.levels: list[int] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.nameless: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        about = dict(attrs)
        if re.fullmatch("h[1-6]", tag):
            self.levels.append(int(tag[1]))
        if "id" in about:
            self.ids.append(str(about["id"]))
        if tag in ("a", "use") and (link := about.get("href") or about.get("xlink:href")):
            self.links.append(link)
        if (tag == "img" and not about.get("alt")) or (about.get("role") == "img" and not about.get("aria-label")):
            self.nameless.append(tag)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fit a glider, with a certificate beside the run."""
    folder = tmp_path_factory.mktemp("fit")
    identify(load_scene(SCENES / "mass_spring" / "air_track.toml", [f"output.folder={folder}"]), folder=folder)
    (folder / "certificate.txt").write_text("proven\n")
    return folder


def replay_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" class="replay-data">(.*?)</script>', page, re.S)
    assert found is not None
    return json.loads(found[1])


def unpack(packed: dict[str, Any]) -> np.ndarray:
    """The inverse of `pack`, as page/replay.js has it."""
    raw = np.frombuffer(zlib.decompress(b64decode(packed["data"])), np.uint8)
    if packed["bits"] == 16:
        small, large = raw.reshape(2, -1).astype(np.uint16)
        whole = np.cumsum((small | large << 8).reshape(packed["shape"]), axis=0, dtype=np.uint16)
    else:
        whole = np.cumsum(raw.reshape(packed["shape"]), axis=0, dtype=np.uint8)
    low, high = np.array(packed["low"]), np.array(packed["high"])
    return low + whole / (2 ** packed["bits"] - 1) * (high - low)


def test_a_report_says_what_was_found_and_how(fitted: Path) -> None:
    page = write_report(Recording(fitted)).read_text()
    assert "One glider between springs on an air track" in page and "converged" in page
    for name in ("stiffness", "rest_point", "RMSE / noise", "peak memory", "compiling kernels", "least_squares"):
        assert name in page
    sections = {"motion", "results", "correlation", "fits", "search", "motions", "gradients", "certificate", "making"}
    assert sections | {"scene"} <= set(Outline(page).ids)
    assert re.search(r"<td class=\"number\">6\.34\d\d\d</td>", page)  # as many digits as the error of 0.00014 allows


def test_a_report_asks_for_nothing_from_outside(fitted: Path) -> None:
    page = write_report(Recording(fitted)).read_text()
    assert "://" not in page
    assert not re.search(r"(src|href)=\"(?!#|data:)", page)
    assert len(page) < LARGEST


def test_a_report_has_an_outline_descriptions_and_links_that_lead_somewhere(fitted: Path) -> None:
    outline = Outline(make_page(Recording(fitted)))
    assert outline.levels[0] == 1 and outline.levels.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(outline.levels, outline.levels[1:], strict=False))
    assert outline.nameless == []
    assert len(set(outline.ids)) == len(outline.ids)
    assert {link.removeprefix("#") for link in outline.links} <= set(outline.ids)


def test_the_replay_holds_the_recorded_motion(fitted: Path) -> None:
    recording = Recording(fitted)
    replay = replay_of(make_page(recording))
    points = next(layer for layer in replay["layers"] if layer["kind"] == "points")
    rows = np.searchsorted(recording["particles/nodes/position/time"], np.array(replay["time"]) - 1e-6)
    shown = unpack(points["place"])[..., 0]
    assert shown == pytest.approx(recording["particles/nodes/position/value"][rows, :, 0], abs=200 / 65535)
    assert any(layer["name"] == "measured" for layer in replay["layers"])


def test_packing_is_exact_to_half_a_unit() -> None:
    values = np.random.default_rng(0).normal(size=(20, 7, 3))
    low, high = values.min(axis=(0, 1)), values.max(axis=(0, 1))
    for bits in (8, 16):
        step = (high - low) / (2**bits - 1)
        assert (np.abs(unpack(dict(pack(values, low, high, bits=bits))) - values) <= 0.500001 * step).all()


def test_correlations_are_those_that_the_fit_recorded(fitted: Path) -> None:
    recording = Recording(fitted)
    found = read_correlation(recording)
    assert found is not None
    shown = [[float(cell.text.replace("\N{MINUS SIGN}", "-")) for cell in row] for row in found.rows]
    assert shown == pytest.approx(recording["covariance/correlation"], abs=0.0051)
    assert found.names == ("stiffness", "drag", "rest_point", "start", "velocity")


def test_a_report_gives_the_verdict_with_each_criterion(fitted: Path) -> None:
    recording = Recording(fitted)
    page = make_page(recording)
    assert f"verdict: {recording.attrs('judgement')['verdict']}" in page
    for name in recording["judgement/name"]:
        assert str(name) in page


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (12.34567, 0.0123, ("12.346", "0.012")),
        (-99.1764, 0.045, ("-99.176", "0.045")),
        (6543.2, 25.0, ("6543", "25")),
        (6543.2, 250.0, ("6.54e+03", "2.5e+02")),
        (1.5, np.nan, ("1.5", "")),
        (0.0, 0.001, ("0.0000", "0.0010")),
    ],
)
def test_a_value_has_the_digits_that_its_error_allows(value: float, error: float, shown: tuple[str, str]) -> None:
    assert format_estimate(value, error) == shown


def test_both_errors_of_a_value_have_one_notation() -> None:
    (row,) = estimate_rows([Estimate("drag", "1/s", 0.01, 0.01459, 0.0000534, "", 0.0000538)])
    assert row[3:6] == ("0.014590", "0.000053", "0.000054")


def test_a_value_has_the_digits_of_the_larger_error() -> None:
    correlated = Estimate("k", "N/m", 10.0, 12.34567, 0.0123, "", robust_error=0.13)
    alone, none = replace(correlated, robust_error=np.nan), replace(correlated, standard_error=np.nan)
    assert estimate_rows([correlated])[0][3:6] == ("12.35", "0.012", "0.13")
    assert estimate_rows([replace(correlated, robust_error=0.001)])[0][3] == "12.346"
    assert estimate_rows([alone])[0][3:] == ("12.346", "0.012")
    assert estimate_rows([replace(none, robust_error=np.nan)])[0][3:] == ("12.3457", "-")


def test_a_start_that_is_the_rounding_of_0_beside_its_unknown_is_0() -> None:
    along, across = Estimate("pivot[0]", "m", -0.25, -0.24, 1e-4, ""), Estimate("pivot[1]", "m", 1.5e-17, 0.0, 1e-4, "")
    assert [row[2] for row in estimate_rows([along, across])] == ["-0.25", "0"]
    assert estimate_rows([Estimate("size", "m", 1e-17, 3e-17, 1e-19, "")])[0][2] == "1e-17"


def test_the_text_of_a_scene_is_that_of_a_scene_file(tmp_path: Path) -> None:
    scene = load_scene(SCENES / "pendulum" / "double.toml", [f"output.folder={tmp_path}"])
    tables = to_dict(scene.config)
    path = tmp_path / "again.toml"
    path.write_text(to_toml(tables))
    assert to_dict(load_scene(path).config) == to_dict(from_dict(tables))


SMALL = {
    "billiards/pocket": ("table", "points", "goals"),
    "mass_spring/jelly": ("flat", "lines", "points"),
    "rigid/two_balls": ("trail", "shapes"),
    "smoke/taylor_green": ("picture",),
    "pendulum/swing_up": ("trail", "lines", "points"),
    "heat/conductivity": ("picture",),
    "charges/find_charges": ("points",),
}


@pytest.mark.parametrize("name", SMALL)
def test_each_kind_of_motion_has_a_replay_of_its_own(name: str) -> None:
    recording = simulate(load_scene(SCENES / f"{name}.toml", ["output.every=8"]))
    replay = make_replay(recording)
    kinds = {layer.get("look", layer["kind"]) for layer in replay["layers"]} | {e["kind"] for e in replay["layers"]}
    assert set(SMALL[name]) <= kinds
    assert len(replay["time"]) >= 2 and np.isfinite([*replay["low"], *replay["high"]]).all()
    json.dumps(replay, allow_nan=False)


def test_few_nodes_on_a_line_are_replayed_on_their_track_and_many_by_their_displacements() -> None:
    track = make_replay(simulate(load_scene(SCENES / "mass_spring/two_gliders.toml", ["output.every=500"])))
    assert [layer["kind"] for layer in track["layers"]] == ["lines", "points", "rings"]
    assert track["low"][1] == track["high"][1] == 0.0
    n = ON_TRACK + 1
    geometry = {"position": [[float(place)] for place in range(n)], "springs": [[i, i + 1] for i in range(n - 1)]}
    tables: dict[str, Any] = {"simulator": {"name": "mass_spring"}, "time": {"dt": 0.01, "steps": 5}}
    tables |= {"geometry": geometry, "material": {"stiffness": 1.0, "mass": 1.0}, "environment": {"gravity": [-1.0]}}
    (curve,) = make_replay(simulate(build_scene(from_dict(tables))))["layers"]
    assert curve["kind"] == "curve" and len(curve["across"]) == n


def test_a_field_on_a_line_is_replayed_as_a_curve(tmp_path: Path) -> None:
    values = ripple((40,), 9)
    replay = make_replay(grid_run(tmp_path, {"height": values}, cells=(40,), units={"height": "m"}))
    (curve,) = replay["layers"]
    assert curve["kind"] == "curve" and replay["axes"] == ["x [m]", "height [m]"]
    assert unpack(curve["values"]) == pytest.approx(values, abs=1e-4)


def test_an_obstacle_is_outlined_in_the_replay_of_what_flows_around_it(tmp_path: Path) -> None:
    middles = (np.arange(20) + 0.5) / 20
    distance = np.hypot(middles[:, None] - 0.4, middles - 0.5) - 0.2
    groups = {"parameters": {"obstacle": distance}}
    replay = make_replay(
        grid_run(tmp_path, {"smoke": ripple((20, 20), 3)}, cells=(20, 20), units={"smoke": ""}, groups=groups)
    )
    *_, outline = replay["layers"]
    (polygon,) = map(np.array, outline["polygons"])
    assert np.hypot(*(polygon - [0.4, 0.5]).T) == pytest.approx(0.2, abs=0.01)
    assert (polygon[0] == polygon[-1]).all()


def test_a_run_of_several_experiments_is_completed_when_all_of_them_are() -> None:
    recorder = run_in_memory()
    for name, status in (("a", "completed"), ("b", "blown up")):
        recorder.write(f"experiments/{name}/motion", attrs={"status": "completed", "message": "", "steps": 3})
        assert read_status(recorder.recording).word == "completed"
        recorder.write(f"experiments/{name}/motion", attrs={"status": status, "message": "", "steps": 3})
    assert read_status(recorder.recording).word == "blown up"


def test_a_slope_is_seen_as_one() -> None:
    replay = make_replay(simulate(load_scene(SCENES / "mass_spring" / "jelly.toml", ["time.steps=8"])))
    gravity = np.array([1.7, 0.0, -9.66])
    turned = np.array(replay["turn"]) @ gravity
    assert turned == pytest.approx([0, 0, -np.linalg.norm(gravity)], abs=1e-12)
    assert np.linalg.det(replay["turn"]) == pytest.approx(1)


def run_in_memory(**provenance: str) -> MemoryRecorder:
    """A recording of a scene alone."""
    scene = {"title": "A <bold> & simple run", "simulator": {"name": "mass_spring"}, "time": {"dt": 0.1}}
    return MemoryRecorder(kind="run", provenance={"simphys": simphys.__version__, **provenance}, scene=scene)


def test_a_run_without_states_is_reported_with_what_it_has() -> None:
    page = make_page(run_in_memory().recording)
    assert "holds no motion" in page and 'class="replay"' not in page
    assert "A &lt;bold&gt; &amp; simple run" in page and "<bold>" not in page
    assert "unfinished" in page


def test_a_run_of_another_version_says_so() -> None:
    assert "Version 0.0.7 of simphys recorded the run" in make_page(run_in_memory(simphys="0.0.7").recording)


def test_an_array_that_is_cut_off_is_named_and_the_rest_shown() -> None:
    """A recording whose predictions are shorter than its measurement."""
    recorder = run_in_memory()
    attrs = {"labels": ["x"], "units": ["m"], "fields": ["position"], "components": ["0,0"]}
    recorder.write("observations", attrs=attrs, time=[0.0, 1.0, 2.0], value=np.ones((3, 1)), weight=np.ones((3, 1)))
    recorder.write("fit", predicted=np.ones((2, 1)))
    page = make_page(recorder.recording)
    assert "The results cannot be shown" in page and 'id="scene"' in page


@pytest.mark.filterwarnings("ignore:.*is cut off")
@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_of_a_file_that_is_cut_off_what_is_left_is_shown(share: float, fitted: Path, tmp_path: Path) -> None:
    cut = tmp_path / "run.h5"
    whole = (fitted / "run.h5").read_bytes()
    cut.write_bytes(whole[: int(share * len(whole))])
    page = write_report(Recording(cut)).read_text()
    assert "run.h5 is cut off: it holds" in page and "passed, cut off" in page
    assert "cannot be shown" not in page and "stiffness" in page and 'id="scene"' in page
    assert ("The replay needs a recorded motion" in page) == ('class="replay"' not in page)


def test_a_run_in_memory_needs_a_path(tmp_path: Path) -> None:
    recording = run_in_memory().recording
    with pytest.raises(InputError, match=r"path=FILE\.html"):
        write_report(recording)
    assert write_report(recording, tmp_path / "new" / "a.html").is_file()


def test_a_report_that_cannot_be_written_says_where(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"report .*file"):
        write_report(run_in_memory().recording, tmp_path / "file" / "report.html")
