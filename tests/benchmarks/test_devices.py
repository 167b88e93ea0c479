"""The benchmark that compares scenes on a device with the processor."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import devices
from simphys.app.start_scene import CHECKOUT
from simphys.autograd import runtime

pytestmark = pytest.mark.skipif(not runtime.available("vulkan"), reason="no Vulkan driver is installed")


def test_scenes_are_compared_each_in_its_process(capsys: pytest.CaptureFixture[str]) -> None:
    rows = devices.main(["--arch", "vulkan", "--steps", "2", "pendulum/swing"])
    assert [(row.scene, row.verdict) for row in rows] == [("pendulum/swing", "agrees")]
    assert rows[0].difference is not None and rows[0].difference < 1e-3
    assert "1 agrees" in capsys.readouterr().out


def test_what_a_device_cannot_do_is_a_row_of_its_own() -> None:
    scene = Path(CHECKOUT) / "pendulum" / "swing.toml"
    row = devices.compare_scene(scene, "vulkan", "f64", 2)
    assert row.verdict == "refused" and "vulkan" in row.finding
    late = devices.compare_apart(scene, ["--arch", "vulkan"], 0.01)
    assert (late.verdict, late.difference) == ("not done in time", None)
