"""Columns come out of text and HDF5 as they stand there, or an error says where and why not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import h5py
import numpy as np
import pytest

from simphys.autograd.errors import InputError
from simphys.files.columns import open_table


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "seen.txt"


def error(file: Path, key: int | str) -> str:
    with pytest.raises(InputError) as caught:
        open_table(file).column(key)
    assert str(file) in str(caught.value)
    return str(caught.value).replace(str(file), "FILE")


@pytest.mark.parametrize(
    "text",
    [
        "0 1.5\n1 -2e-3\n",
        "% t x\n# more\n\n  0.0e+000   1.5 \n\t1\t-2e-3",
        "0,1.5\n# more\n1,-2e-3\n",
        "time,x\r\n0,1.5\r\n1,-2e-3\r\n",
        "\ufefftime, x\n0, 1.5\n1, -2e-3\n",
        'time,"x, measured"\n0,1.5\n"1","-2e-3"\n',
        ",x\n0,1.5\n1,-2e-3\n",
        "time x\n0 1.5\n1 -2e-3\n",
    ],
)
def test_text_is_read_by_column_number(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8", newline="")
    assert open_table(file).column(0).tolist() == [0.0, 1.0]
    assert open_table(file).column(1).tolist() == [1.5, -2e-3]


def test_a_line_of_names_names_the_columns(file: Path) -> None:
    file.write_text("# from the lab\nt,x\n0,1\n")
    assert open_table(file).column("x").tolist() == [1.0]
    assert open_table(file).label(1) == "x"


def test_columns_that_are_not_asked_for_may_hold_anything(file: Path) -> None:
    file.write_text("t,note,x\n0,start,1\n1,inf,2\n")
    assert open_table(file).column("x").tolist() == [1.0, 2.0]


def test_empty_cells_nan_and_na_are_missing(file: Path) -> None:
    file.write_text("0,\n1,NaN\n2,NA\n3,4\n")
    assert np.isnan(open_table(file).column(1)).tolist() == [True, True, True, False]


@pytest.mark.parametrize("cell", ["1.2.3", "inf", "-infinity", "1;2"])
def test_a_cell_that_is_no_number_is_named(file: Path, cell: str) -> None:
    file.write_text(f"% t x\n0 1\n1 {cell}\n")
    assert error(file, 1) == (
        f"FILE, line 3, column 1: must be a finite number; found '{cell}'. "
        "Correct the cell; a missing sample is an empty cell, NaN or NA."
    )


def test_a_ragged_line_is_named(file: Path) -> None:
    file.write_text("0,1\n\n1,2,3\n")
    assert error(file, 0).startswith("FILE, line 3: every line must have as many cells as the first, 2; found 3. ")
    file.write_text("t,x\n0,1,0,2\n")
    assert "if commas are decimal ones, divide the cells by semicolons" in error(file, 0)


def test_a_wrong_column_is_answered_with_those_that_exist(file: Path) -> None:
    file.write_text("time,left,right\n0,1,2\n")
    assert error(file, 3).startswith("observations.file FILE: has columns 0 to 2; found column 3. ")
    assert error(file, -1).startswith("observations.file FILE: has columns 0 to 2; found column -1. ")
    assert error(file, "rigth").endswith("found column 'rigth'. Did you mean 'right'? It has time, left, right.")
    file.write_text("0,1,2\n")
    assert "has no line of names, so its columns go by number; found column 'x'. Give the number" in error(file, "x")


@pytest.mark.parametrize("text", ["", "\n\n", "% t x\n", "t,x\n"])
def test_a_file_without_samples_is_named(file: Path, text: str) -> None:
    file.write_text(text)
    assert "must hold samples; found" in error(file, 0)


def test_a_file_that_cannot_be_read_is_named(file: Path) -> None:
    assert "must be a file that can be read; found No such file or directory. " in error(file, 0)
    file.write_bytes(b"0 1\n1 \xff\n")
    assert "must be text in UTF-8, or HDF5; found byte 0xff at 6. " in error(file, 0)
    file.unlink()
    file.mkdir()
    assert "must be a file that can be read; found Is a directory. " in error(file, 0)


def write(file: Path, **datasets: object) -> None:
    with h5py.File(file, "w") as tree:
        for name, data in datasets.items():
            tree[f"track/{name}"] = data


def test_datasets_of_hdf5_are_read_by_path(file: Path) -> None:
    write(file, time=np.arange(3), x=np.array([1.0, np.nan, 2.0], np.float32))
    table = open_table(file)
    assert table.column("/track/time").tolist() == [0.0, 1.0, 2.0]
    np.testing.assert_equal(table.column("track/x"), [1.0, np.nan, 2.0])
    assert table.label("track/x") == "track/x"


@pytest.mark.parametrize(
    ("datasets", "key", "message"),
    [
        ({"x": [1.0]}, 0, "is HDF5, whose columns go by the paths of datasets; found column 0. "),
        ({"x": [1.0]}, "track/y", "found dataset 'track/y'. Did you mean 'track/x'? It has track/x."),
        ({"x": [1.0]}, "track", "found dataset 'track'. "),
        (
            {"x": [[1.0]]},
            "track/x",
            "must be a one-dimensional array of numbers; found shape (1, 1) of ",
        ),
        ({"x": b"text"}, "track/x", "must be a one-dimensional array of numbers; found shape () of "),
        ({"x": []}, "track/x", "dataset 'track/x': must hold samples; found none. "),
        ({"x": [0.0, np.inf]}, "track/x", "row 1, dataset 'track/x': must be a finite number; found inf. "),
    ],
)
def test_a_wrong_dataset_is_named(file: Path, datasets: Mapping[str, object], key: int | str, message: str) -> None:
    write(file, **datasets)
    assert message in error(file, key)


def test_datasets_of_different_lengths_are_named(file: Path) -> None:
    write(file, time=[0.0, 1.0], x=[1.0])
    table = open_table(file)
    table.column("track/time")
    with pytest.raises(InputError, match=r"'track/x': must be as long as dataset 'track/time', 2; found 1\. "):
        table.column("track/x")


def test_a_truncated_hdf5_file_is_named(file: Path) -> None:
    write(file, x=np.zeros(100))
    file.write_bytes(file.read_bytes()[:-200])
    assert "must be a readable HDF5 file; found " in error(file, "track/x")


@pytest.mark.parametrize("cell", ["inf", "-inf", "1e999", "1_000"])
def test_a_first_line_of_numbers_that_are_not_finite_is_no_line_of_names(file: Path, cell: str) -> None:
    file.write_text(f"{cell} {cell}\n1 2\n")
    with pytest.raises(InputError, match=rf"line 1, column 0: must be a finite number; found '{cell}'"):
        open_table(file).column(0)


def test_an_underscore_is_no_part_of_a_number(file: Path) -> None:
    file.write_text("1 2\n1_000 2\n")
    with pytest.raises(InputError, match=r"line 2, column 0: must be a finite number; found '1_000'"):
        open_table(file).column(0)


@pytest.mark.parametrize(
    "text",
    [
        "t;x\n0,5;-1,25e2\n1;2,0\n",
        "t;x\n0.5;-125\n1;2\n",
        "0,5\t-1,25e2\n1\t2,0\n",
        "t\tx\n0,5\t-1,25e2\n1\t2,0\n",
        "0.5, -125\n1,\t2\n",
        "0.5\t-125\n1  2\n",
        "t,\tx\n0.5,\t-125\n1,\t2\n",
    ],
)
def test_semicolons_tabs_and_decimal_commas_are_read(text: str, tmp_path: Path) -> None:
    (tmp_path / "seen.txt").write_text(text)
    table = open_table(tmp_path / "seen.txt")
    np.testing.assert_array_equal(table.column(0), [0.5, 1.0])
    np.testing.assert_array_equal(table.column(1), [-125.0, 2.0])
