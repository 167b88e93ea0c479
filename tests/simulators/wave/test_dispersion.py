"""Waves on a grid have the speed that `describe_waves` says, and a fit is told where that is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.assess.resolution import judge_resolution
from simphys.autograd import no_grad, tensor
from simphys.experiment.scene import Scene, build_scene
from simphys.rollout import rollout
from simphys.scenefile import from_dict
from simphys.simulator import Waves
from simphys.simulators.wave import Wave

from ...helpers.small_scenes import merged

SPEED, SPACING = 2.0, 0.5


def frequency_on_the_grid(waves: Waves, cells: int) -> float:
    """Find the frequency [Hz] of a wavelength of so many cells: speed * (1 + error) / wavelength, by bisection."""
    low, high = 1e-6, 1.2 * SPEED / (cells * SPACING)
    for _ in range(80):
        middle = 0.5 * (low + high)
        error = waves.speed_error(middle)
        is_low = error > -1 and middle < SPEED * (1 + error) / (cells * SPACING)
        low, high = (middle, high) if is_low else (low, middle)
    return low


@pytest.mark.parametrize("order", [2, 4, 8])
@pytest.mark.parametrize("cells", [5, 8, 16])
def test_a_standing_wave_swings_with_the_frequency_of_the_dispersion_relation(order: int, cells: int) -> None:
    """A leapfrog step keeps cos(k x) cos(omega t) exactly, with the omega of the grid."""
    model = Wave(cells=(80,), spacing=SPACING, dt=0.1, order=order, boundaries=("periodic", "periodic"))
    none = tensor(np.zeros((0, 1)))
    params = model.Params(tensor(np.full(80, SPEED)), none, none)
    waves = model.describe_waves(params.arrays())
    omega = 2 * np.pi * frequency_on_the_grid(waves, cells)
    shape = np.cos(2 * np.pi * np.arange(80) / cells)
    layer = tensor(np.zeros(0))
    start = model.State(tensor(shape), tensor(shape * np.cos(omega * model.dt)), layer, layer, none, layer)
    with no_grad():
        found = rollout(model, params, start, steps=50, keep="final").final.height.data
    np.testing.assert_allclose(found, shape * np.cos(50 * omega * model.dt), atol=1e-5)  # by a table of 4096 angles


def test_finer_cells_and_higher_orders_have_the_speed_more_exactly() -> None:
    def error(spacing: float, order: int) -> float:
        model = Wave(cells=(80,), spacing=spacing, dt=1e-3, order=order)
        return abs(model.describe_waves({"speed": np.full(80, SPEED)}).speed_error(0.5))

    assert error(0.2, 2) / error(0.1, 2) == pytest.approx(4, rel=0.03)
    assert error(0.4, 4) / error(0.2, 4) == pytest.approx(16, rel=0.06)
    assert error(0.4, 8) < error(0.4, 4) < error(0.4, 2)


def test_a_step_at_the_limit_carries_waves_of_one_axis_exactly() -> None:
    model = Wave(cells=(80,), spacing=SPACING, dt=SPACING / SPEED, order=2)
    waves = model.describe_waves({"speed": np.full(80, SPEED)})
    assert abs(waves.speed_error(SPEED / (5 * SPACING))) < 1e-6
    assert waves.cells_a_wavelength(SPEED / (5 * SPACING)) == pytest.approx(5)


def pond(tmp_path: Path, **changes: Any) -> Scene:
    """A source of 2 Hz in water whose waves have 1 m/s on one half, 3 m/s on the other."""
    np.save(tmp_path / "speed.npy", np.repeat([1.0, 3.0], 30)[:, None] * np.ones(4))
    np.savetxt(tmp_path / "seen.txt", np.column_stack([np.arange(1, 40) * 0.05, np.sin(np.arange(1, 40))]))
    tables: dict[str, Any] = {
        "simulator": {"name": "wave", "order": 2},
        "time": {"dt": 5e-3, "duration": 2.0},
        "grid": {"cells": [60, 4], "spacing": 0.05},
        "medium": {"speed": {"file": str(tmp_path / "speed.npy")}},
        "sources": [{"position": [1.0, 0.1]}],
        "control": {"kind": "wavelet", "wavelet": "ricker", "frequency": 2.0, "amplitude": 1.0},
        "unknowns": {"speed": {"parameter": "speed", "tied": True, "start": 1.0}},
        "observations": {
            "file": str(tmp_path / "seen.txt"),
            "channels": [{"column": 1, "field": "height", "node": [30, 2]}],
        },
    }
    return build_scene(from_dict(merged(tables, changes)))


def wavelength(scene: Scene) -> Any:
    return {each.name: each for each in judge_resolution(scene)}.get("wavelength")


def test_ten_cells_in_the_slowest_wave_are_few_for_an_order_of_2_and_enough_for_one_of_4(tmp_path: Path) -> None:
    coarse = wavelength(pond(tmp_path))
    assert coarse.verdict == "doubtful" and "at 1 m/s" in coarse.found and "% too slow" in coarse.found
    assert "10 cells" not in coarse.found.partition("half")[0]  # the half of the power lies above the strongest
    assert "10 at its strongest, 2 Hz" in coarse.found and "simulator.order" in coarse.remedy
    assert wavelength(pond(tmp_path, simulator={"order": 4})).verdict == "passed"
    assert wavelength(pond(tmp_path, control={"frequency": 1.0})).verdict == "passed"


def test_waves_that_the_grid_does_not_carry_are_told(tmp_path: Path) -> None:
    assert "does not carry" in wavelength(pond(tmp_path, control={"frequency": 20.0})).found


def test_a_scene_without_a_source_has_no_frequency_to_judge(tmp_path: Path) -> None:
    assert wavelength(pond(tmp_path, sources=None, control=None)) is None
    assert wavelength(pond(tmp_path, control={"amplitude": 0.0})) is None
