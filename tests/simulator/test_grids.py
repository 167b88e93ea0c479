"""Recordings of scenes with fields on a grid describe the grid."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simphys
from simphys.simulator.grids import Grid

from ..helpers.row_scene import RELEASES, register, row


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch)


def test_cells_lie_at_whole_multiples_of_the_spacing_or_halfway_between() -> None:
    points = Grid(cells=(3, 2), spacing=0.5, offset=0.0, fields={"height": "m"})
    np.testing.assert_array_equal(points.axis(0), [0.0, 0.5, 1.0])
    middles = Grid(cells=(3, 2), spacing=0.5, offset=0.5, fields={"smoke": ""})
    np.testing.assert_array_equal(middles.axis(1), [0.25, 0.75])


def test_a_recording_tells_where_cells_are_and_what_each_of_them_is_made_of(tmp_path: Path) -> None:
    run = simphys.simulate(row(tmp_path, start={"angle": RELEASES[0]}))
    about = run.attrs("grid")
    assert np.asarray(about["cells"]).tolist() == [3]
    assert (about["spacing"], about["offset"]) == (0.1, 0.5)
    assert list(about["fields"]) == ["angle", "stiffness"]  # type: ignore[call-overload]
    assert list(about["units"]) == ["rad", "1/s^2"]  # type: ignore[call-overload]
    assert run["parameters/stiffness"].tolist() == [1.1, 2.2, 2.8]
    assert run.attrs("parameters/stiffness") == {"unit": "1/s^2"}
    assert run.attrs("fields/angle/value") == {"unit": "rad"}
