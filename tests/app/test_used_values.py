"""Values that a script gives a scene: runs record them, and nothing made of a run tells others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import simphys
from simphys.autograd.errors import InputError
from simphys.record import Recording
from simphys.report.build import make_page
from simphys.scenefile import load

from ..helpers.small_scenes import oscillator, soft_square

TOLD = "Used in place of the values of the scene's tables: "


def test_a_run_records_the_parameters_and_the_start_that_it_used(tmp_path: Path) -> None:
    scene = soft_square(output={"fields": ["velocity"]})
    moved = scene.state.position.data + 0.25
    stiffer = replace(scene, params=scene.params.replace(stiffness=77.0), state=scene.state.replace(position=moved))
    for recording in (simphys.simulate(stiffer), simphys.simulate(stiffer, folder=tmp_path / "run")):
        assert recording.params.keys() == {n for n, values in scene.params.arrays().items() if values.size}
        assert (recording.params["stiffness"] == 77.0).all()
        assert recording.attrs("parameters/stiffness")["unit"] == "N/m"
        np.testing.assert_array_equal(recording.start["position"], moved)  # though no position is recorded
        line = f"{TOLD}stiffness [11] 77 N/m (in the tables [11] 30 N/m); position [12] "
        assert line in repr(recording).replace("[6, 2]", "[12]")
        assert "stiffness [11] 77 N/m" in make_page(recording)


def test_a_run_of_the_tables_values_tells_no_others() -> None:
    recording = simphys.simulate(soft_square(values={"k": {"parameter": "stiffness", "tied": True, "value": 40.0}}))
    assert (recording.params["stiffness"] == 40.0).all()
    assert TOLD not in repr(recording) and "used_values" not in recording


def test_the_fitted_scene_carries_the_values_that_the_fit_used(tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt", output={"folder": str(tmp_path / "run")})
    heavy = replace(scene, params=scene.params.replace(mass=[2.0, 1.0], drag=[0.0, 0.3]))
    fit = simphys.identify(heavy, folder=tmp_path / "run")
    recording = Recording(tmp_path / "run")
    assert recording.params["stiffness"][0] == fit.scene.params.stiffness.data[0] == pytest.approx(18.0, rel=0.05)
    text = (tmp_path / "run" / "fitted.toml").read_text()
    assert f"# {TOLD}mass [2] 1 ... 2 kg (in the tables [2] 1 kg); drag [2] " in text
    again = simphys.load_scene(tmp_path / "run" / "fitted.toml")
    for name in ("mass", "drag", "stiffness"):
        np.testing.assert_allclose(getattr(again.params, name).data, getattr(fit.scene.params, name).data, rtol=1e-9)
    with pytest.raises(InputError, match=r"no values in place of those of the tables, recorded was mass \[2\] 1"):
        simphys.identify(scene, folder=tmp_path / "run", resume=True)
    assert load(tmp_path / "run" / "fitted.toml").values["used_drag"].entries == [1]  # entry 0 is unknown
