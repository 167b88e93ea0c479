"""Scene whose loss jumps: a strip that snaps through. The plain gradient leads back to rest; smoothing snaps it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from simphys import plot
from simphys.app.cli import app
from simphys.app.workflow import identify
from simphys.experiment.scene import load_scene
from simphys.record import Recording
from simphys.scenefile import ConfigError

from ..docs.test_guide import DOCS
from ..helpers.printed import table_rows
from ..helpers.small_scenes import oscillator

EXAMPLE = (DOCS / "examples" / "snap.toml").read_text()
SMOOTHED = EXAMPLE.replace("start = -0.4 ", "start = -0.45 ").replace("samples = 16", "samples = 32")
"""The example with more samples, from nearer by: another last bit of theta draws others, of which some snap as well."""
PLAIN = re.sub("smoothing = .*\n", "", SMOOTHED)


def simphys(command: str, text: str, folder: Path, *overrides: str) -> Result:
    scene = folder / "snap.toml"
    scene.write_text(text)
    return CliRunner().invoke(app, [command, str(scene), f"output.folder={folder / 'run'}", *overrides])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Recording]:
    """Output of a smoothed search, and its recording."""
    folder = tmp_path_factory.mktemp("snap")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("simphys.plot.all_figures", lambda recording, folder: [])
        printed = simphys("optimize", SMOOTHED, folder).stdout
    return printed, Recording(folder / "run")


def test_without_smoothing_the_kick_dies_away(tmp_path: Path) -> None:
    (tmp_path / "snap.toml").write_text(PLAIN)
    scene = load_scene(tmp_path / "snap.toml", [f"output.folder={tmp_path / 'run'}"])
    found = identify(scene)
    assert abs(found.unknowns[0].value) < 0.05
    assert found.result.loss == pytest.approx(0.04, rel=1e-3)  # 0.2 m from the target
    assert found.result.mixture is None


def test_with_smoothing_the_strip_snaps(whole: tuple[str, Recording]) -> None:
    recording = whole[1]
    np.testing.assert_allclose(recording["particles/nodes/position/value"][-1, 1], [0.5, -0.1], atol=1e-3)
    assert -1.3 < recording["unknowns/value"][0] < -0.65
    assert recording.attrs("unknowns")["loss"] == recording["iterations/loss"].min()
    plain: Any = recording.attrs("unknowns")["plain_loss"]
    assert plain < 0.01


def test_the_run_holds_the_variances_and_alpha_of_every_iterate(whole: tuple[str, Recording]) -> None:
    recording = whole[1]
    plain, alpha, by_variance, first, zeroth = (
        recording[f"iterations/{name}"]
        for name in ("plain_loss", "alpha", "alpha_by_variance", "variance_first", "variance_zeroth")
    )
    assert alpha.shape == first.shape == zeroth.shape == (41,)
    np.testing.assert_allclose(by_variance, zeroth / (first + zeroth))
    after = 1 + np.flatnonzero(np.diff((plain < 0.02).astype(int)) == 1)[0]  # the kick has passed where the loss jumps
    assert (alpha[max(after - 3, 0) : after + 1] == 0).all()
    assert (first[:after] < zeroth[:after]).any()  # and yet misleading
    assert alpha.max() > 0.99


def test_the_summary_names_the_minimized_loss(whole: tuple[str, Recording]) -> None:
    printed, recording = whole
    rows = {name: row for name, *row in table_rows(printed)}
    unit, start, value, error, *_ = rows["kick"]
    assert (unit, start, error) == ("m/s", "-0.45", "-")
    assert float(value) == pytest.approx(recording["unknowns/value"][0], rel=1e-2)
    plain = recording.attrs("unknowns")["plain_loss"]
    assert " after 40 iterations, 41 evaluations of 33 losses each\n" in printed
    assert f"smoothed by 32 samples of radius 0.4; without smoothing the loss is {plain:.8g}\n" in printed
    assert re.search(
        r"gradient: first-order share alpha [01]\.\d\d; variance first order \S+, zeroth order \S+", printed
    )
    cut = int(np.sum(recording["iterations/alpha"] < recording["iterations/alpha_by_variance"]))
    assert f"in {cut} of 41 iterates alpha was limited" in printed


def test_a_run_that_goes_on_has_the_numbers_of_one_that_did_not_stop(
    whole: tuple[str, Recording], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simphys.plot.all_figures", lambda recording, folder: [])
    simphys("optimize", SMOOTHED, tmp_path, "optimizer.iterations=20")
    scene, run = tmp_path / "snap.toml", tmp_path / "run"
    CliRunner().invoke(app, ["optimize", str(scene), f"output.folder={run}", "--resume"])
    for name in ("theta", "loss", "alpha", "variance_first"):
        np.testing.assert_array_equal(Recording(run)[f"iterations/{name}"], whole[1][f"iterations/{name}"])


def test_the_seed_of_the_scene_and_an_override_reach_the_samples(whole: tuple[str, Recording], tmp_path: Path) -> None:
    (tmp_path / "snap.toml").write_text(SMOOTHED)
    variances = [whole[1]["iterations/variance_zeroth"][0]]
    for override in ("runtime.seed=7", "optimizer.smoothing.samples=16", "optimizer.smoothing.radius=0.1"):
        chosen = [override, "optimizer.iterations=1", f"output.folder={tmp_path / 'run'}"]
        found = identify(load_scene(tmp_path / "snap.toml", chosen))
        mixture = found.result.history[0].mixture
        assert mixture is not None
        variances.append(mixture.variance_zeroth)
    assert len(set(variances)) == 4


def test_a_fit_to_a_measurement_gets_no_standard_errors(tmp_path: Path) -> None:
    optimizer = {"method": "adam", "iterations": 2, "smoothing": {"radius": 0.01, "samples": 4}}
    found = identify(oscillator(tmp_path / "data.txt", optimizer=optimizer))
    assert {row.note for row in found.unknowns} == {"smoothed loss"}
    assert np.isnan([row.standard_error for row in found.unknowns]).all()


def test_both_pictures_are_drawn(whole: tuple[str, Recording], tmp_path: Path) -> None:
    figure = plot.variance(whole[1], tmp_path / "variance.png")
    above, beneath = figure.axes
    assert [str(line.get_label()) for line in above.lines[:3]] == ["|gradient|²", "first order", "zeroth order"]
    np.testing.assert_array_equal(above.lines[1].get_ydata(), whole[1]["iterations/variance_first"])
    np.testing.assert_array_equal(beneath.lines[1].get_ydata(), whole[1]["iterations/alpha"])
    assert beneath.get_title(loc="left").startswith("alpha cut in ")
    loss = plot.convergence(whole[1]).axes[0]
    assert [str(line.get_label()) for line in loss.lines][1:] == ["without smoothing", "best, the result"]
    assert (tmp_path / "variance.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "optimizer.method=lbfgs",
            'snap.toml:.*optimizer.smoothing: belongs to the methods "adam" and .*method = "lbf',
        ),
        ("optimizer.method=least_squares", 'optimizer.smoothing: .*least_squares.*Use method = "adam", or drop'),
        ("optimizer.smoothing.samples=1", "optimizer.smoothing.samples: must be an even number, 4 or more.*found 1"),
        ("optimizer.smoothing.samples=5", "optimizer.smoothing.samples: must be an even number, 4 or more.*found 5"),
        ("optimizer.smoothing.radius=0", "optimizer.smoothing.radius: must be greater than 0; found 0"),
        ("optimizer.smoothing.accuracy=0.5", "optimizer.smoothing.accuracy: must be at least 1; found 0.5"),
        ("optimizer.smoothing.width=1", "optimizer.smoothing.width: unknown key"),
        ("optimizer.smoothing.kind=box", "optimizer.smoothing.kind: must be one of 'randomized'; found .box"),
    ],
)
def test_wrong_keys_are_named(override: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "snap.toml").write_text(SMOOTHED)
    with pytest.raises(ConfigError, match=message):
        load_scene(tmp_path / "snap.toml", [override])
