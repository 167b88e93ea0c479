"""The sections of scenes of flows, their arrays and checks, and the fit of the scene that ships."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import simphys
from simphys.autograd import runtime
from simphys.experiment.scene import build_scene
from simphys.files.field_file import read_field
from simphys.scenefile import ConfigError, from_dict
from simphys.simulators.smoke.model import Smoke
from simphys.simulators.smoke.shapes import connected

FOLDER = Path(__file__).parents[3] / "scenes" / "smoke"
CHANNEL = {"x-": "inflow", "x+": "open"}
ENTERS = {"x-": {"velocity": [1.0, 0.0]}}


def sections(**changed: Any) -> dict[str, Any]:
    """Build the sections of a resting fluid between periodic sides, with the runtime of this process."""
    return {
        "simulator": {"name": "smoke"},
        "runtime": {"precision": str(runtime.settings().precision)},
        "time": {"dt": 0.01, "steps": 5},
        "grid": {"cells": [8, 6], "spacing": 0.5},
        **changed,
    }


def grid(**changed: Any) -> dict[str, Any]:
    return {"cells": [8, 6], "spacing": 0.5, **changed}


def test_defaults_describe_a_resting_inviscid_fluid_without_smoke() -> None:
    scene = build_scene(from_dict(sections()))
    assert scene.model == Smoke((8, 6), 0.5, 0.01)
    assert not any(values.any() for record in (scene.params, scene.state) for values in record.arrays().values())
    for record, shapes in ((scene.params, scene.model.param_shapes()), (scene.state, scene.model.state_shapes())):
        assert {name: values.shape for name, values in record.arrays().items()} == dict(shapes)
    assert scene.grid is not None and scene.grid.offset == 0.5


@pytest.mark.parametrize("cells", [[3000, 7], [20_000, 6]])
def test_a_long_grid_that_is_not_halved_is_refused(cells: list[int]) -> None:
    with pytest.raises(ConfigError, match=r"grid\.cells: multigrid halves the grid .* found .* is left\. Give counts"):
        from_dict(sections(grid=grid(cells=cells)))
    from_dict(sections(grid=grid(cells=[4000, 6])))
    from_dict(sections(grid=grid(cells=cells), simulator={"name": "smoke", "projection": "conjugate_gradients"}))


def test_all_given_values_arrive() -> None:
    scene = build_scene(
        from_dict(
            sections(
                simulator={"name": "smoke", "advection": "semi_lagrangian", "projection": "jacobi", "sweeps": 9},
                grid=grid(boundaries=CHANNEL, slip=True),
                fluid={"viscosity": 0.1, "buoyancy": [0.0, 2.0]},
                sides={"x-": {"velocity": [1.0, 0.5], "smoke": 0.7}, "x+": {"smoke": 0.1}},
                emitters=[{"centre": [1.25, 1.25], "radius": 0.6, "rate": 3.0}],
                obstacle={"shapes": [{"centre": [2.0, 1.5], "radius": 0.5}, {"centre": [3, 1], "radii": [0.2, 0.4]}]},
                state={"velocity": [1.0, 2.0], "smoke": [{"centre": [1.25, 1.25], "radius": 0.5, "amount": 2.0}]},
            )
        )
    )
    model, params, state = scene.model, scene.params.arrays(), scene.state.arrays()
    assert model.boundaries == ("inflow", "open", "closed", "closed") and model.slip and model.has_obstacle
    assert (model.advection, model.projection, model.sweeps) == ("semi_lagrangian", "jacobi", 9)
    assert params["viscosity"] == 0.1 and params["buoyancy"].tolist() == [0, 2]
    assert params["boundary_velocity"].tolist() == [[1, 0.5], [0, 0], [0, 0], [0, 0]]
    assert params["boundary_smoke"].tolist() == [0.7, 0.1, 0, 0]
    assert params["smoke_rate"][2, 2] == 3.0 and params["smoke_rate"][1, 2] > 0 and not params["smoke_rate"][5:].any()
    assert params["obstacle"][3, 2] == pytest.approx(np.hypot(0.25, 0.25) - 0.5)
    assert params["obstacle"][0, 0] == pytest.approx(np.hypot(1.75, 1.25) - 0.5)
    np.testing.assert_array_equal(state["velocity"][0, :, :6], 1.0)
    np.testing.assert_array_equal(state["velocity"][1, :8], 2.0)
    assert not state["velocity"][0, :, 6].any() and not state["velocity"][1, 8].any()  # no faces of these components
    assert state["smoke"][2, 2] == 2.0 and state["smoke"][3, 2] == pytest.approx(2 * np.exp(-1))


def test_arrays_come_from_files_beside_the_scene(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    start, smoke, phi = random.normal(size=(2, 8, 6)), random.normal(size=(8, 6)), random.normal(size=(8, 6))
    for name, values in (("start", start), ("smoke", smoke), ("phi", phi)):
        np.save(tmp_path / f"{name}.npy", values)
    (tmp_path / "flow.toml").write_text(
        'simulator.name = "smoke"\n'
        f'runtime.precision = "{runtime.settings().precision}"\n'
        "time = { dt = 0.01, steps = 2 }\n"
        "grid = { cells = [8, 6], spacing = 0.5 }\n"
        'obstacle.file = "phi.npy"\n'
        'state.velocity.file = "start.npy"\n'
        'state.smoke.file = "smoke.npy"\n'
    )
    scene = simphys.load_scene(tmp_path / "flow.toml")
    np.testing.assert_array_equal(scene.state.velocity.data, start)
    np.testing.assert_array_equal(scene.state.smoke.data, smoke)
    np.testing.assert_array_equal(scene.params.obstacle.data, phi)


@pytest.mark.parametrize("cells", [[8, 8], [4, 4, 4]])
def test_taylor_green_vortices_have_no_divergence(cells: list[int]) -> None:
    made = sections(grid={"cells": cells, "spacing": 0.25}, state={"velocity": {"flow": "taylor_green", "speed": 2.0}})
    u = build_scene(from_dict(made)).state.velocity.data
    divergence = sum([np.roll(u[axis], -1, axis) - u[axis] for axis in range(len(cells))])
    assert abs(u).max() > 0.9 and abs(divergence).max() < 1e-13


BLOCKED = {"shapes": [{"centre": [2.0, 1.5], "radii": [0.6, 30.0]}]}


@pytest.mark.parametrize(
    ("changed", "where", "message"),
    [
        ({"grid": grid(cells=[8])}, "grid.cells", ""),
        ({"grid": grid(boundaries="walls")}, "grid.boundaries", ""),
        ({"grid": grid(boundaries={"x-": "periodic"})}, "grid.boundaries", "periodic together"),
        ({"grid": grid(boundaries={"z-": "open"})}, "grid.boundaries.z-", "side of a 2-D grid"),
        ({"fluid": {"viscosity": -1.0}}, "fluid.viscosity", ""),
        ({"simulator": {"name": "smoke", "projection": "jacobi", "sweeps": 6_000_000}}, "simulator.sweeps", "10000"),
        ({"fluid": {"buoyancy": [1.0, 2.0, 3.0]}}, "fluid.buoyancy", "2 elements"),
        (
            {"simulator": {"name": "smoke", "projection": "fft"}, "grid": grid(boundaries="closed")},
            "simulator.projection",
            "fft needs periodic sides",
        ),
        (
            {"simulator": {"name": "smoke", "grid": "collocated"}, "grid": grid(boundaries="open")},
            "grid.boundaries",
            "periodic or closed",
        ),
        ({"grid": grid(boundaries=CHANNEL)}, "sides.x-.velocity", "an inflow needs a velocity"),
        ({"sides": ENTERS}, "sides.x-.velocity", "this side is periodic"),
        ({"grid": grid(boundaries="closed"), "sides": ENTERS}, "sides.x-.velocity", "at a wall must be 0"),
        (
            {"grid": grid(boundaries="closed", slip=True), "sides": {"x-": {"velocity": [0.0, 1.0]}}},
            "sides.x-.velocity",
            "cannot drag",
        ),
        ({"sides": {"z+": {"smoke": 1.0}}}, "sides.z+", "side of a 2-D grid"),
        ({"emitters": [{"centre": [1.0, 1.0, 1.0], "radius": 1.0, "rate": 1.0}]}, "emitters.0.centre", "2 elements"),
        ({"obstacle": {}}, "obstacle", "one of shapes, outline and file"),
        ({"obstacle": {"shapes": [{"centre": [1.0, 1.0]}]}}, "obstacle.shapes.0", "one of radius and radii"),
        ({"obstacle": {"file": "nowhere.npy"}}, "obstacle.file", "can be read"),
        ({"state": {"velocity": [1.0, 2.0, 3.0]}}, "state.velocity", "2 elements"),
        ({"state": {"velocity": {"flow": "taylor_green", "origin": [0.0] * 3}}}, "state.velocity.origin", "2 elements"),
        ({"state": {"smoke": [{"centre": [1.0], "radius": 1.0}]}}, "state.smoke", ""),
        (
            {"grid": grid(boundaries={"x-": "inflow"}), "sides": ENTERS},
            "grid.boundaries",
            "net inflow of 3, and no open side",
        ),
        (
            {"grid": grid(boundaries=CHANNEL), "sides": ENTERS, "obstacle": BLOCKED},
            "obstacle",
            "cells that it cuts off, with a net inflow of 3",
        ),
        (
            {
                "grid": grid(boundaries=CHANNEL),
                "sides": ENTERS,
                "obstacle": {"shapes": [{"centre": [2.0, 1.5], "radius": 9.0}]},
            },
            "obstacle",
            "room for the fluid",
        ),
    ],
)
def test_inconsistent_sections_are_reported_with_their_place(changed: dict[str, Any], where: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        from_dict(sections(**changed))
    assert where in str(raised.value) and message in str(raised.value)
    assert len(raised.value.errors) == 1 or not message


def test_an_inflow_may_balance_another_and_a_wall_with_a_gap_does_not_block() -> None:
    through = {"x-": {"velocity": [1.0, 0.0]}, "x+": {"velocity": [1.0, 0.0]}}
    from_dict(sections(grid=grid(boundaries={"x-": "inflow", "x+": "inflow"}), sides=through))
    gap = {"shapes": [{"centre": [2.0, 0.0], "radii": [0.6, 2.4]}]}
    from_dict(sections(grid=grid(boundaries=CHANNEL), sides=ENTERS, obstacle=gap))


def test_a_file_of_another_shape_is_reported_with_the_required_one(tmp_path: Path) -> None:
    np.save(tmp_path / "start.npy", np.zeros((2, 8, 6)))
    file = {"velocity": {"file": str(tmp_path / "start.npy")}}
    with pytest.raises(ConfigError) as raised:
        from_dict(sections(grid=grid(boundaries="closed"), state=file))
    assert "state.velocity.file" in str(raised.value) and "[2, 9, 7]" in str(raised.value)


def test_cells_are_connected_through_faces_and_through_periodic_sides() -> None:
    free = np.array([[1, 0, 1], [1, 0, 0], [0, 1, 1]], bool)
    closed, periodic = ("closed",) * 4, ("periodic",) * 4
    np.testing.assert_array_equal(connected(free, closed), [[1, 0, 2], [1, 0, 0], [0, 3, 3]])
    np.testing.assert_array_equal(connected(free, periodic), [[1, 0, 1], [1, 0, 0], [0, 1, 1]])
    assert connected(np.zeros((2, 2), bool), closed).tolist() == [[0, 0], [0, 0]]


def test_a_channel_of_a_million_cells_is_searched_in_one_pass() -> None:
    """Cell by cell along the channel, it would take hours."""
    winding = np.ones((2, 500_000), bool)
    assert connected(winding, ["closed"] * 4).max() == 1


def recording() -> ModuleType:
    """Load the script that made the recording, with the true value."""
    spec = importlib.util.spec_from_file_location("make_recordings_of_flows", FOLDER / "make_recordings.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_the_shipped_recording_and_pictures_are_those_that_the_script_makes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(FOLDER / "make_recordings.py"), str(tmp_path)], check=True)
    assert {made.name for made in tmp_path.iterdir()} == {"taylor_green.txt", "picture.png", "picture_start.png"}
    rows = [np.loadtxt(folder / "taylor_green.txt", comments="%") for folder in (tmp_path, FOLDER)]
    np.testing.assert_allclose(rows[0], rows[1], rtol=0, atol=1.1e-5)  # another processor may round the last digit
    for name in ("picture.png", "picture_start.png"):
        made, shipped = (read_field(folder / name, [(110, 110)]) for folder in (tmp_path, FOLDER))
        assert abs(made - shipped).mean() < 0.01  # versions of matplotlib draw edges a little differently


def test_viscosity_is_identified_from_decaying_vortices(tmp_path: Path) -> None:
    true = recording()
    scene = simphys.load_scene(FOLDER / "taylor_green.toml", ['runtime.precision="f64"'])
    assert scene.params.viscosity.item() == 0.5 * true.VISCOSITY
    fit = simphys.identify(scene, folder=tmp_path / "run")
    (found,) = fit.unknowns
    assert fit.result.success
    assert found.value == pytest.approx(true.VISCOSITY, rel=0.01)
    assert abs(found.value - true.VISCOSITY) < 3 * found.standard_error < 0.01 * true.VISCOSITY
    assert list(fit.rmse.values())[-1] == pytest.approx(true.NOISE, rel=0.05)
