"""What takes the place of a run, and that nothing of the old one stays beside the new one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import simphys
from simphys.app.workflow import simulate_together
from simphys.autograd.errors import InputError
from simphys.plot import _OF_FIELDS, _PICTURES, all_figures
from simphys.record import Recording
from simphys.runs.old_files import OF_FIELDS, PICTURES

from ..helpers.small_scenes import oscillator

MADE = {"values.csv", "covariance.csv", "fitted.toml", "fitted.json"}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_all_pictures_are_known() -> None:
    assert set(PICTURES) == set(_PICTURES) and OF_FIELDS == _OF_FIELDS


def test_a_simulation_does_not_overwrite_a_fit(tmp_path: Path) -> None:
    scene, folder = oscillator(tmp_path / "seen.txt"), tmp_path / "run"
    simphys.identify(scene, folder=folder)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    remedy = r"Choose another folder: output\.folder=PATH .* `simphys optimize SCENE --overwrite` replaces"
    with pytest.raises(InputError, match=rf"run: must not hold a fit, .*; found a fit in run\.h5 there\. {remedy}"):
        simphys.simulate(scene, folder=folder, overwrite=True)
    with pytest.raises(InputError, match="must not hold a fit"):
        simulate_together([scene, scene], [folder, tmp_path / "other"])
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_nothing_of_a_fit_stays_beside_the_one_that_replaces_it(tmp_path: Path) -> None:
    scene, folder = oscillator(tmp_path / "seen.txt"), tmp_path / "run"
    given = replace(scene, params=scene.params.replace(mass=[2.0, 1.0]))
    all_figures(simphys.identify(given, folder=folder).recording, folder)
    stale = {"used_drag.npy", "fitted_drag.npy", "report.html", "film.gif"}
    own = {"notes.txt", "my.png", "certificate.txt", "fitted_mine.npy"}
    for name in stale | own:
        (folder / name).write_text("")
    simphys.identify(scene, folder=folder, overwrite=True)
    assert names(folder) == MADE | own | {"run.h5"}  # pictures are drawn by another function
    fit = {path: path.read_bytes() for path in folder.iterdir()}
    unstable = replace(scene, params=scene.params.replace(mass=1e-9))
    with pytest.raises(InputError, match="stable"):  # before anything is removed
        simphys.identify(unstable, folder=folder, overwrite=True)
    assert {path: path.read_bytes() for path in folder.iterdir()} == fit


def test_a_run_in_place_of_a_damaged_one_removes_its_pictures(tmp_path: Path) -> None:
    scene, folder = oscillator(tmp_path / "seen.txt"), tmp_path / "run"
    all_figures(simphys.simulate(scene, folder=folder), folder)
    assert names(folder) == {"run.h5", "fit.png", "trajectory.png"}
    (folder / "run.h5").write_bytes(b"damaged")
    simphys.simulate(scene, folder=folder, overwrite=True)
    assert names(folder) == {"run.h5"} and Recording(folder).kind == "run"
