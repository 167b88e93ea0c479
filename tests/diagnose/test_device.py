"""The first gradient on a GPU is compared with the processor's, once for a scene and device, before a run or a fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simphys.app.workflow import identify, simulate
from simphys.autograd import InputError, runtime
from simphys.diagnose import device
from simphys.diagnose.check.certificate import Statement
from simphys.diagnose.device import verify_device

from ..helpers.small_scenes import oscillator

pytestmark = pytest.mark.skipif(not runtime.available("vulkan"), reason="no Vulkan driver is installed")

VULKAN = {"arch": "vulkan", "precision": "f32"}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_place", lambda scene, of=device._place: tmp_path / "verified" / of(scene).name)


def test_a_scene_is_compared_once_and_again_with_other_values(tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt", runtime=VULKAN)
    told: list[str] = []
    for _ in range(2):
        verify_device(scene, tell=told.append)
    (line,) = told
    assert line.startswith("f32 on vulkan: loss and gradient are those of the processor in f64 within ")
    assert runtime.settings().arch == "vulkan"
    verify_device(oscillator(tmp_path / "seen.txt", runtime=VULKAN, time={"dt": 0.005}), tell=told.append)
    assert len(told) == 2


def test_nothing_is_compared_on_the_processor_or_where_it_is_turned_off(tmp_path: Path) -> None:
    told: list[str] = []
    verify_device(oscillator(tmp_path / "seen.txt"), tell=told.append)
    verify_device(oscillator(tmp_path / "seen.txt", runtime={**VULKAN, "verify": False}), tell=told.append)
    assert told == []


@pytest.mark.parametrize("job", [simulate, identify])
def test_a_wrong_device_stops_a_run_and_a_fit_before_they_begin(
    job: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = [Statement("velocity", "f32 on vulkan = f64", 1.0, 1e-2)], "f32 on vulkan: velocity differs from f64."
    monkeypatch.setattr(device, "compare_asked", lambda *makes, seed: wrong)
    scene = oscillator(tmp_path / "seen.txt", runtime=VULKAN)
    with pytest.raises(InputError, match=r"runtime\.arch vulkan: .* found f32 on vulkan: velocity differs") as raised:
        job(scene, folder=tmp_path / "run")
    assert "runtime.verify = false" in raised.value.remedy
    assert not (tmp_path / "run").exists() and not (tmp_path / "verified").exists()
