"""The sections of scenes of elastic waves, their arrays, and what they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.autograd import InputError
from simphys.autograd.errors import UnphysicalValue
from simphys.experiment.scene import build_scene
from simphys.scenefile import ConfigError, from_dict
from simphys.simulators.elastic import Elastic

GRID = {"cells": [40, 30], "spacing": 2.0, "layer_frequency": 20.0, "layer": 6}


def sections(**changed: Any) -> dict[str, Any]:
    """Build the sections of a small section of the ground, with two shots."""
    return {
        "simulator": {"name": "elastic"},
        "time": {"dt": 5e-4, "steps": 5},
        "grid": GRID,
        "medium": {"vp": 800.0, "vs": 400.0, "density": 1900.0},
        "sources": [
            {"position": [30.0, 0.0], "force": [0.0, 2.0]},
            {"position": [50.0, 4.0], "force": [0.0, 2.0], "shot": 1},
        ],
        "receivers": {"lines": [{"start": [20.0, 0.0], "end": [60.0, 0.0], "count": 5}]},
        "control": {"kind": "wavelet", "frequency": 20.0},
        **changed,
    }


def test_all_given_values_arrive(tmp_path: Path) -> None:
    np.save(tmp_path / "vs.npy", np.linspace(400.0, 500.0, 1200).reshape(40, 30))
    scene = build_scene(from_dict(sections(medium={"vp": 900, "vs": {"file": str(tmp_path / "vs.npy")}, "density": 2})))
    assert scene.model == Elastic(
        (40, 30), 2.0, 5e-4, 4, ("absorbing", "absorbing", "free", "absorbing"), 6, 900.0, 20.0, sources=1, receivers=5
    )
    params = scene.params.arrays()
    assert params["vs"][39, 29] == 500 and (params["vp"] == 900).all() and (params["density"] == 2).all()
    assert params["source_position"].tolist() == [[[30.0, 0.0]], [[50.0, 4.0]]] and scene.members == 2
    assert params["force"].tolist() == [[0.0, 2.0]]
    assert params["receiver_position"][:, 0].tolist() == [20.0, 30.0, 40.0, 50.0, 60.0]
    assert scene.grid is not None and scene.grid.depth


def test_a_scene_in_space_has_three_components() -> None:
    scene = build_scene(
        from_dict(
            sections(
                grid={**GRID, "cells": [16, 14, 13], "sides": {"y-": "wall"}},
                sources=[{"position": [9.0, 8.0, 2.0], "moment": [1, 2, 3, 4, 5, 6]}],
                receivers={"position": [[9.0, 8.0, 0.0]]},
                fibre=[{"start": [8.0, 8.0, 4.0], "end": [8.0, 8.0, 12.0], "count": 3, "gauge": 4.0}],
            )
        )
    )
    assert scene.model.sides == ("absorbing", "absorbing", "wall", "absorbing", "free", "absorbing")
    assert scene.params.moment.shape == (1, 6) and not scene.model.forces
    assert scene.model.fibre == ((0.0, 0.0, 4.0),) * 3 and scene.params.fibre_position[1].data.tolist() == [
        8.0,
        8.0,
        8.0,
    ]
    assert scene.state.received.shape == (3,) and scene.state.memory_sxy_y.shape == (16, 6, 13)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"grid": {**GRID, "sides": {"x-": "free"}}}, r"grid\.sides: only the top, z-, can be free"),
        (
            {"grid": {**GRID, "cells": [11, 30]}},
            r"grid\.cells: axis x has at least 12 cells, for its layers and differences; found 11",
        ),
        ({"grid": {**GRID, "cells": [40, 9]}}, r"grid\.cells: axis z has at least 12 cells, for its layers"),
        (
            {"grid": {"cells": [40, 30], "spacing": 2.0}},
            r"grid\.layer_frequency: absorbing layers have .* a frequency; found nothing",
        ),
        (
            {"sources": [{"position": [90.0, 0.0], "force": [0, 1]}]},
            r"a source must be inside .* from 0 to 80 along x",
        ),
        ({"sources": [{"position": [9.0, 0.0]}]}, r"sources\.0.*a source has a force or a moment"),
        ({"receivers": {"position": [[5.0, -1.0]]}}, r"a receiver must be inside of the grid, from 0 to 60 along z"),
        ({"medium": {"vp": 800.0, "vs": -1.0, "density": 1.0}}, r"medium\.vs"),
        ({"control": None}, r"sources need a control"),
        (
            {"fibre": [{"start": [9.0, 1.0], "end": [9.0, 9.0], "count": 2, "gauge": 4.0}]},
            r"fibre\.0\.start.*the gauge of a channel must be inside of the grid",
        ),
        ({"fibre": [{"start": [9, 9], "end": [9, 9], "count": 1, "gauge": 4.0}]}, r"fibre\.0\.end.*another place"),
        ({"grid": {**GRID, "sides": {"y-": "wall"}}}, r"grid\.sides\.y-.*a section x, z has no sides across y"),
        ({"sources": [{"position": [9.0, 0.0], "force": [0, 0, 1]}]}, r"sources\.0\.force.*must have 2 elements"),
        (
            {"sources": [{"position": [9.0, 0.0], "moment": [1, 1, 1, 0]}]},
            r"sources\.0\.moment.*must have 3 elements, one for each moment",
        ),
    ],
)
def test_a_wrong_value_is_refused(changed: dict[str, Any], message: str) -> None:
    given = {name: value for name, value in sections(**changed).items() if value is not None}
    with pytest.raises(ConfigError, match=f"(?s){message}"):
        from_dict(given)


def test_an_invalid_time_is_all_that_is_wrong() -> None:
    with pytest.raises(ConfigError) as caught:
        from_dict(sections(time={"dt": "x", "steps": 5}))
    assert [str(error).partition(";")[0] for error in caught.value.errors] == ["scene: time.dt: must be a number"]


def test_matrices_along_an_axis_must_fit_into_memory() -> None:
    with pytest.raises(ConfigError, match=r"grid\.cells\.0: what it counts must fit into the free memory"):
        from_dict(sections(grid={**sections()["grid"], "cells": [1_500_000, 30]}))


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        (
            {"time": {"dt": 5e-3, "steps": 5}},
            InputError,
            r"is 0\.001515, by the largest vp, 800 in cell \[0, 0\]; found 0\.005.*"
            r"time\.dt to 0\.0014",
        ),
        (
            {"control": {"kind": "wavelet", "frequency": 60.0}},
            InputError,
            r"of frequency 60 is 6\.667 long at the least vs, 400 .* order 4 need 5 cells .*; found 2.*1\.33 or less",
        ),
        (
            {"medium": {"vp": 420.0, "vs": 400.0, "density": 1900.0}},
            UnphysicalValue,
            r"vp must be above 1\.155 vs.*420 and 400 in cell \[0, 0\]",
        ),
    ],
)
def test_waves_that_the_grid_cannot_carry_are_refused(changed: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"(?s){message}"):
        build_scene(from_dict(sections(**changed)))


def test_a_model_that_fits_no_section_is_refused() -> None:
    for changed, message in (
        ({"cells": (5, 5, 5, 5)}, "a section has 2 dimensions"),
        ({"cells": (5, 5, 5)}, r"must hold 6 of .*one for each of \('x-', 'x\+', 'y-'"),
        ({"order": 3}, "one of"),
        ({"sides": ("wall", "wall", "wall", "free")}, "only the top"),
        ({"sides": ("wall",)}, "must hold 4"),
        ({"sides": ("wall", "wall", "free", "absorbing")}, "absorbing layers have a width, a speed and a frequency"),
        ({"cells": (20, 3)}, "axis z has at least 4 cells"),
    ):
        with pytest.raises(InputError, match=message):
            Elastic(**{"cells": (20, 20), "spacing": 1.0, "dt": 0.1, **changed})  # type: ignore[arg-type]
