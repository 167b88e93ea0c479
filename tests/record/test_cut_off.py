"""Runs whose files are cut off, by a full disk or a copy that broke, are read as far as they are there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simphys.autograd.errors import StorageError
from simphys.record import Recorder, Recording
from simphys.record.cut_off import measure

ROWS = 40
PLACES = np.random.default_rng(0).normal(size=(ROWS, 60_000))  # three rows a chunk


def record(folder: Path, *, resume: bool = False) -> Recorder:
    return Recorder(folder, kind="run", provenance={}, scene={"title": "x"}, resume=resume)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The run.h5 of a complete run."""
    folder = tmp_path_factory.mktemp("whole")
    with record(folder) as run:
        run.write("motion", attrs={"status": "completed"})
        run.write("start", position=PLACES[0])
        run.extend({"particles/nodes/position": {"value": PLACES, "step": np.arange(ROWS)}})
        run.extend({"iterations": {"loss": np.arange(5.0)}})
    return (folder / "run.h5").read_bytes()


def cut(folder: Path, content: bytes, size: int) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "run.h5").write_bytes(content[:size])
    return folder


@pytest.mark.filterwarnings("ignore:.*is cut off")
def test_every_cut_leaves_what_lies_before_it(whole: bytes, tmp_path: Path) -> None:
    rows = []
    for share in np.linspace(0, 1, 41):
        folder = cut(tmp_path, whole, int(share * len(whole)))
        try:
            run = Recording(folder)
        except StorageError:
            assert share < 0.01
            continue
        path = "particles/nodes/position/value"
        rows.append(len(run[path]) if path in run else 0)
        assert run.scene == {"title": "x"} and run.kind == "run" and run.attrs("motion")["status"] == "completed"
        assert ("lost" in run.damage.lower()) == (share < 1)
        assert run["iterations/loss"].tolist() == [0, 1, 2, 3, 4]  # tables of few bytes stand first
        if rows[-1]:
            np.testing.assert_array_equal(run[path], PLACES[: rows[-1]])
            np.testing.assert_array_equal(run.thinned(path, 4), PLACES[: rows[-1] : 4])
            assert len(run["particles/nodes/position/step"]) == rows[-1] == run.shape(path)[0]
    assert rows == sorted(rows) and rows[-1] == ROWS and len(set(rows)) > 8


def test_what_is_lost_is_named_with_the_file_and_its_size(whole: bytes, tmp_path: Path) -> None:
    folder = cut(tmp_path, whole, len(whole) // 2)
    held = f"{len(whole) // 2:,} of {len(whole):,} bytes"
    message = rf"run\.h5 is cut off: it holds {held}. Lost: particles/nodes/position from row \d+ of 40 on"
    with pytest.warns(UserWarning, match=message):
        run = Recording(folder)
    assert run.damage in repr(run)


def test_a_cut_within_the_index_says_that_nothing_is_left(whole: bytes, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cut off: it holds 300 of .* bytes, too few to show anything"):
        Recording(cut(tmp_path, whole, 300))


def test_a_flipped_bit_of_the_size_is_no_cut(whole: bytes, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="the file is damaged or is no recording"):
        Recording(cut(tmp_path, whole[:33] + bytes([whole[33] ^ 1]) + whole[34:], len(whole)))


def test_rows_before_a_segment_that_is_cut_off_are_read(tmp_path: Path) -> None:
    run = record(tmp_path)
    for first, last in ((0, 30), (30, 40)):
        run.extend({"t": {"x": PLACES[first:last], "step": np.arange(first, last)}})
        run.flush()
    run.suspend()
    segments = sorted((tmp_path / "segments").glob("0*.h5"))
    assert len(segments) == 3  # the scene, and two of rows
    segments[1].write_bytes(segments[1].read_bytes()[:-4_000_000])
    assert measure(segments[1]).is_cut_off
    with pytest.warns(UserWarning, match=r"000002\.h5 is cut off: .* Lost: t from row \d+ of 40 on"):
        rows = Recording(tmp_path)["t/x"]
    assert 0 < len(rows) < 30
    np.testing.assert_array_equal(rows, PLACES[: len(rows)])


def test_a_run_that_is_cut_off_is_not_resumed(whole: bytes, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="the file is damaged"):
        record(cut(tmp_path, whole, len(whole) // 2), resume=True)
