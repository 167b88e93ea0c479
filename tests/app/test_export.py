"""Exported runs, read back by the programs that they are for: vtk, NumPy, the csv module."""

from __future__ import annotations

import csv
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from simphys.app.workflow import simulate
from simphys.autograd.errors import InputError, StorageError
from simphys.experiment.scene import load_scene
from simphys.plot import all_figures
from simphys.record import MemoryRecorder, Recording, list_parts
from simphys.runs.export import export_run
from simphys.runs.to_xarray import to_xarray

SCENES = Path(__file__).resolve().parents[2] / "scenes"


@pytest.fixture(scope="module")
def jelly() -> Recording:
    return simulate(load_scene(SCENES / "mass_spring" / "jelly.toml", ["time.steps=40", "output.every=10"]))


def read_vtk(path: Path, step: int) -> Any:
    reader_of: Any = pytest.importorskip("vtkmodules.vtkIOHDF", reason="needs the package vtk (pip install vtk)")
    reader = reader_of.vtkHDFReader()
    reader.SetFileName(str(path))
    reader.UpdateInformation()
    reader.SetStep(step)
    reader.Update()
    return reader, reader.GetOutputDataObject(0)


def test_vtk_reads_bodies_springs_and_velocities_at_each_time(jelly: Recording, tmp_path: Path) -> None:
    (path,) = export_run(jelly, tmp_path, "vtkhdf")
    from_vtk: Any = pytest.importorskip("vtkmodules.util.numpy_support", reason="needs the package vtk")
    position, velocity = (jelly[f"particles/nodes/{name}/value"] for name in ("position", "velocity"))
    for step in (0, 3):
        reader, data = read_vtk(path, step)
        assert reader.GetNumberOfSteps() == len(position)
        assert from_vtk.vtk_to_numpy(data.GetPoints().GetData()) == pytest.approx(position[step])
        assert from_vtk.vtk_to_numpy(data.GetPointData().GetArray("velocity")) == pytest.approx(velocity[step])
        assert data.GetNumberOfVerts() == 125 and data.GetNumberOfLines() == len(jelly["particles/nodes/springs"])


def test_vtk_reads_a_field_on_its_grid(tmp_path: Path) -> None:
    recording = simulate(load_scene(SCENES / "heat" / "conductivity.toml", ["output.every=100"]))
    (path,) = export_run(recording, tmp_path, "vtkhdf")
    from_vtk: Any = pytest.importorskip("vtkmodules.util.numpy_support", reason="needs the package vtk")
    reader, data = read_vtk(path, 1)
    values = recording["fields/temperature/value"]
    found = from_vtk.vtk_to_numpy(data.GetCellData().GetArray("temperature")).reshape(20, 30)
    assert pytest.approx(values[1]) == found.T
    assert data.GetSpacing() == pytest.approx((0.01,) * 3)
    assert reader.GetNumberOfSteps() == len(values)


def test_numpy_reads_every_dataset_by_its_path(jelly: Recording, tmp_path: Path) -> None:
    (path,) = export_run(jelly, tmp_path, "npz")
    arrays = np.load(path)
    np.testing.assert_array_equal(arrays["particles/nodes/position/value"], jelly["particles/nodes/position/value"])
    assert "scene" in arrays


def test_csv_has_a_column_for_each_number_with_its_unit(jelly: Recording, tmp_path: Path) -> None:
    paths = export_run(jelly, tmp_path, "csv")
    (path,) = [path for path in paths if path.name == "particles_nodes_position.csv"]
    head, *rows = list(csv.reader(path.open()))
    assert head[:2] == ["time [s]", "position x of node 0 [m]"] and len(head) == 1 + 125 * 3
    values = np.array(rows, float)
    np.testing.assert_array_equal(values[:, 1:], jelly["particles/nodes/position/value"].reshape(len(values), -1))


def test_an_unknown_format_a_run_without_motion_and_a_bad_folder_say_so(jelly: Recording, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="vtkhdf, csv, npz"):
        export_run(jelly, tmp_path, "xls")
    bare = MemoryRecorder(kind="run", provenance={}, scene={"title": "Nothing"}).recording
    with pytest.raises(InputError, match="needs a recorded motion"):
        export_run(bare, tmp_path, "vtkhdf")
    two = MemoryRecorder(kind="run", provenance={}, scene={"title": "Nothing"})
    two.write("experiments/up/observations", value=np.zeros(3))
    for kind in ("vtkhdf", "xarray"):
        with pytest.raises(InputError, match=r"needs a recorded motion; found none"):
            export_run(two.recording, tmp_path, kind)
    two.write("experiments/down/particles/nodes/position", time=np.zeros(1), value=np.zeros((1, 2, 3)))
    assert [path.name for path in export_run(two.recording, tmp_path, "vtkhdf")] == ["experiments_down_bodies.vtkhdf"]
    if find_spec("xarray"):  # of the experiment that was recorded before a run was stopped
        assert [path.name for path in export_run(two.recording, tmp_path, "xarray")] == ["experiments_down_run.nc"]
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="Name another folder"):
        export_run(jelly, tmp_path / "file", "npz")


@pytest.mark.parametrize("name", ["mass_spring/jelly", "heat/conductivity"])
def test_xarray_reads_quantities_with_axes_and_units(name: str, tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray", reason="needs the extra 'xarray' (pip install 'simphys[xarray]')")
    overrides = ["output.every=100"] if name.startswith("heat") else ["time.steps=40", "output.every=10"]
    recording = simulate(load_scene(SCENES / f"{name}.toml", overrides))
    (path,) = export_run(recording, tmp_path, "xarray")
    with xarray.open_dataset(path) as found:
        assert found.time.units == "s" and found.title == recording.scene["title"]
        if name.startswith("heat"):
            assert found.temperature.dims == ("time", "x", "y") and found.temperature.units == "deg C"
            near = found.temperature.sel(x=0.045, y=0.065, method="nearest")
            assert near.values == pytest.approx(recording["fields/temperature/value"][:, 4, 6])
            assert found.measured.dims == ("time_measured", "channel")
        else:
            assert found.position.dims == ("time", "body", "axis")
            heights = recording["particles/nodes/position/value"][..., 2]
            assert found.position.sel(axis="z").values == pytest.approx(heights)


@pytest.fixture(scope="module")
def heights() -> Recording:
    return simulate(load_scene(SCENES / "rigid" / "three_heights.toml", ["output.every=20"]))


def test_vtk_has_a_file_for_each_experiment(heights: Recording, tmp_path: Path) -> None:
    parts = list_parts(heights)
    paths = export_run(heights, tmp_path, "vtkhdf")
    assert [path.name for path in paths] == [f"experiments_{name}_bodies.vtkhdf" for name in parts]
    assert len(paths) == 3
    for path, own in zip(paths, parts.values(), strict=True):
        position = own["particles/nodes/position/value"]
        with h5py.File(path) as file:
            np.testing.assert_array_equal(file["VTKHDF/Points"][:, :2].reshape(position.shape), position)


def test_xarray_has_a_file_for_each_experiment(heights: Recording, tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray", reason="needs the extra 'xarray' (pip install 'simphys[xarray]')")
    parts = list_parts(heights)
    paths = export_run(heights, tmp_path, "xarray")
    assert [path.name for path in paths] == [f"experiments_{name}_run.nc" for name in parts]
    for path, own in zip(paths, parts.values(), strict=True):
        with xarray.open_dataset(path) as found:
            np.testing.assert_array_equal(found.position.values, own["particles/nodes/position/value"])
    with pytest.raises(InputError, match=r"needs one motion; found those of .*list_parts"):
        to_xarray(heights)


def test_the_angles_of_a_pendulum_are_refused_by_vtk_and_taken_by_the_others(tmp_path: Path) -> None:
    pytest.importorskip("xarray", reason="needs the extra 'xarray' (pip install 'simphys[xarray]')")
    recording = simulate(load_scene(SCENES / "pendulum" / "double.toml", ["output.every=10"]))
    with pytest.raises(InputError, match=r"found only angle, rate\. .*: --to csv, npz or xarray"):
        export_run(recording, tmp_path, "vtkhdf")
    for kind in ("csv", "npz", "xarray"):
        assert export_run(recording, tmp_path, kind)


def test_a_run_without_its_states_says_which_and_gives_the_others(tmp_path: Path) -> None:
    folder, missing = tmp_path / "run", "particles/nodes/position/value"
    simulate(load_scene(SCENES / "mass_spring" / "jelly.toml", ["time.steps=20"]), folder=folder)
    with h5py.File(folder / "run.h5", "r+") as file:
        del file[missing]
    recording = Recording(folder)
    with pytest.raises(StorageError, match=f"{missing} is missing.*Written all the same: .*velocity.csv"):
        export_run(recording, tmp_path / "csv", "csv")
    with pytest.raises(StorageError, match=f"{missing} is missing.*Written all the same: run.npz"):
        export_run(recording, tmp_path / "npz", "npz")
    with np.load(tmp_path / "npz" / "run.npz") as arrays:
        assert "particles/nodes/velocity/value" in arrays and missing not in arrays
    for kind in ("vtkhdf", "xarray"):
        with pytest.raises(StorageError, match=f"{missing} is missing.*--to csv"):
            export_run(recording, tmp_path / kind, kind)
    with pytest.raises(StorageError, match=f"{missing} is missing.*simphys plot RUN"):
        recording.animate()
    with pytest.raises(StorageError, match=f"{missing} is missing.*Drawn all the same"):
        all_figures(recording, tmp_path / "pictures")


def test_columns_say_what_they_hold(tmp_path: Path) -> None:
    """Bodies by their names, channels by their labels, cells by their indices."""

    def heads(name: str, *overrides: str) -> dict[str, list[str]]:
        paths = export_run(simulate(load_scene(SCENES / f"{name}.toml", overrides)), tmp_path / name, "csv")
        return {path.stem: next(csv.reader(path.open())) for path in paths}

    arm = heads("rigid/filmed_arm", "time.steps=20")
    assert arm["particles_nodes_position"][1:3] == ["position x of upper [m]", "position y of upper [m]"]
    assert arm["observations"][1] == "marker x of upper at 0.2, 0 [m]"
    assert arm["observations_weight"][1] == "weight of marker x of upper at 0.2, 0"
    assert heads("pendulum/double", "time.duration=0.1")["fields_angle"][1:] == [
        "angle of link 0 [rad]",
        "angle of link 1 [rad]",
    ]
    wave = heads("wave/drop", "time.steps=2", "grid.cells=[16, 16]", "loss.terms=[]")
    assert wave["fields_height"][:3] == ["time [s]", "height at 0, 0", "height at 0, 1"]
