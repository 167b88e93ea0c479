"""Files of runs under right checksums, but with contents that no recorder writes, are errors that name the file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from simphys.autograd.errors import InputError, StorageError
from simphys.record import Recorder, Recording
from simphys.record.storage import to_storable


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A complete run of two rows and a static array."""
    with Recorder(tmp_path, kind="run", provenance={"simphys": "1"}, scene={"title": "x"}) as run:
        run.extend({"t": {"x": np.arange(6.0).reshape(2, 3)}})
        run.write("s", a=np.arange(4.0))
    return tmp_path


def exchange(folder: Path, path: str, make: Callable[[h5py.File], None]) -> None:
    with h5py.File(folder / "run.h5", "r+") as file:
        del file[path]
        make(file)


def change_index(folder: Path, change: Callable[[Any], None]) -> None:
    with h5py.File(folder / "run.h5", "r+") as file:
        text = json.loads(file["segments"][0])
        change(text)
        del file["segments"]
        file["segments"] = to_storable([json.dumps(text)])


def test_a_declared_size_that_the_file_does_not_hold_is_refused_before_memory_is_asked_for(folder: Path) -> None:
    exchange(folder, "s/a", lambda file: file.create_dataset("s/a", shape=(2**50,), dtype="f8", chunks=(1024,)))
    with pytest.raises(StorageError, match=r"run\.h5 cannot be read: .*/s/a declares the shape \[1125899906842624\]"):
        Recording(folder)["s/a"]
    assert Recording(folder)["t/x"].shape == (2, 3)


def test_chunks_that_are_missing_are_not_read_as_zeros(folder: Path) -> None:
    exchange(folder, "t/x", lambda file: file.create_dataset("t/x", shape=(2, 3), dtype="f8", chunks=(1, 3)))
    with pytest.raises(StorageError, match=r"/t/x declares the shape \[2, 3\], of which the file holds a part"):
        Recording(folder)["t/x"]


@pytest.mark.parametrize(
    "rows", [np.arange(3.0)[None], np.zeros((2, 2)), np.zeros((2, 3), complex)], ids=["fewer", "narrow", "complex"]
)
def test_rows_other_than_the_index_says_are_damage(folder: Path, rows: np.ndarray) -> None:
    exchange(folder, "t/x", lambda file: file.create_dataset("t/x", data=rows))
    with pytest.raises(StorageError, match=r"/t/x has the shape .*, not 2 rows of \[3\], float64"):
        Recording(folder)["t/x"]


@pytest.mark.parametrize("name", ["s", "s/a"])
def test_links_to_other_files_are_not_followed(folder: Path, tmp_path: Path, name: str) -> None:
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["s/a"] = np.arange(4.0)
    exchange(folder, name, lambda file: file.__setitem__(name, h5py.ExternalLink("secret.h5", f"/{name}")))
    with pytest.raises(StorageError, match=r"to which s/a of .* is a link"):
        Recording(folder)["s/a"]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda text: text["statics"].update({"s/a": "../../secret.h5"}), "'../../secret.h5' in the index"),
        (lambda text: text["statics"].update({"../a": "."}), "'../a' in the index"),
        (lambda text: text["columns"]["t/x"].update(shape=[2**80]), "in the index, where a size should be"),
        (lambda text: text["columns"]["t/x"].update(dtype="O"), "a column of type object"),
        (lambda text: text.update(attrs=[]), "'[]' in the index, where a table should be"),
        (lambda text: text.update(attrs={"": {"": 1}}), "'' = '1' in the index, where an attribute should be"),
        (lambda text: text.update(attrs={"s": {"unit": None}}), "'unit' = 'None' in the index, where an attribute"),
        (
            lambda text: text["columns"]["t/x"]["attrs"].update({"a\0b": 1}),
            "in the index, where an attribute should be",
        ),
        (lambda text: text.pop("columns"), "'columns'"),
    ],
)
def test_an_index_of_nonsense_is_damage(folder: Path, change: Callable[[Any], None], found: str) -> None:
    change_index(folder, change)
    with pytest.raises(StorageError) as caught:
        Recording(folder)
    assert found in str(caught.value) and str(folder / "run.h5") in str(caught.value)


def test_more_rows_than_the_segments_can_hold_are_refused_before_memory_is_asked_for(tmp_path: Path) -> None:
    run = Recorder(tmp_path, kind="run", provenance={}, scene={})
    for rows in (1000, 10):
        run.extend({"t": {"x": np.zeros(rows)}})
        run.flush()
    run.suspend()

    def grow(text: Any) -> None:
        for source in text["columns"]["t/x"]["sources"]:
            source["rows"] = 2**40

    change_index(tmp_path, grow)
    with pytest.raises(StorageError, match=r"t/x has 2199023255552 rows there, more than its segments can hold"):
        Recording(tmp_path)["t/x"]


def test_a_scene_that_is_no_table_names_the_run(folder: Path) -> None:
    exchange(folder, "scene", lambda file: file.create_dataset("scene", data=to_storable(["[1, 2]"])))
    with pytest.raises(InputError, match=r"the scene of .*: needs the data that simphys records; found ValueError"):
        _ = Recording(folder).scene


def test_a_pipe_in_place_of_a_run_is_not_waited_for(folder: Path) -> None:
    segments = folder / "segments"
    segments.mkdir()
    change_index(folder, lambda text: text["statics"].update({"s/a": "000001.h5"}))
    os.mkfifo(segments / "000001.h5")
    with pytest.raises(StorageError, match=r"000001\.h5 cannot be read: .*not a file"):
        Recording(folder)["s/a"]
