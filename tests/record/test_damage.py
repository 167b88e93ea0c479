"""Lost bytes, lost segments and a lost run.h5 are noticed; files of others stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from simphys.autograd.errors import InputError, StorageError
from simphys.record import Recorder, Recording


def record(folder: Path, *, resume: bool = False, overwrite: bool = False) -> Recorder:
    return Recorder(folder, kind="run", provenance={}, scene={"title": "x"}, resume=resume, overwrite=overwrite)


def suspended_run(folder: Path) -> Path:
    """Record one row, as a run that can be resumed; return the segment of the row."""
    run = record(folder)
    run.append("t", x=1.0)
    run.suspend()
    return folder / "segments" / "000002.h5"


def chunks(file: Path, path: str) -> list[tuple[int, int]]:
    """List (offset, size) of the chunks of a dataset."""
    with h5py.File(file) as opened:
        stored = opened[path].id
        found = [stored.get_chunk_info(i) for i in range(stored.get_num_chunks())]
    return [(chunk.byte_offset, chunk.size) for chunk in found]


def test_each_chunk_of_zeros_is_damage(tmp_path: Path) -> None:
    with record(tmp_path) as run:
        run.extend({"t": {"x": np.random.default_rng(0).normal(size=(3, 200_000))}})
        run.write("s", a=np.arange(6.0))
    file = tmp_path / "run.h5"
    whole = file.read_bytes()
    places = [(path, *place) for path in ("t/x", "s/a", "scene") for place in chunks(file, path)]
    assert len(places) == 5
    for path, offset, size in places:
        file.write_bytes(whole[:offset] + bytes(size) + whole[offset + size :])
        with pytest.raises(StorageError, match="the file is damaged"):
            Recording(tmp_path)[path]


@pytest.mark.parametrize("damaged", [7.0, np.array(["a", "b"], object), np.zeros((2, 3)), np.zeros(2, np.float32)])
def test_rows_of_another_kind_are_not_merged_with_new_ones(damaged: Any, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="the file is damaged"), record(tmp_path) as run:
        run.extend({"t": {"x": np.arange(2.0)}})
        run.flush()
        with h5py.File(next((tmp_path / "segments").glob("*.h5")), "a") as file:
            del file["t/x"]
            file["t/x"] = damaged
        run.extend({"t": {"x": np.arange(2000.0)}})  # more than the damaged segment, so that this is merged with them


def test_a_recording_of_zeros_is_read(tmp_path: Path) -> None:
    with record(tmp_path) as run:
        run.extend({"t": {"x": np.zeros((3, 1000))}})
    assert not Recording(tmp_path)["t/x"].any()


def test_a_run_with_a_missing_segment_is_not_resumed_until_it_is_back(tmp_path: Path) -> None:
    segment = suspended_run(tmp_path)
    away = segment.rename(tmp_path / "away")
    with pytest.raises(StorageError, match=r"000002\.h5 is missing, .* cannot be resumed\. Restore it from a copy"):
        record(tmp_path, resume=True)
    away.rename(segment)
    with record(tmp_path, resume=True) as run:
        run.append("t", x=2.0)
    assert Recording(tmp_path)["t/x"].tolist() == [1, 2]


@pytest.mark.parametrize("resume", [False, True])
def test_segments_without_their_run_are_not_deleted(tmp_path: Path, resume: bool) -> None:
    suspended_run(tmp_path)
    away = (tmp_path / "run.h5").rename(tmp_path / "away")
    with pytest.raises(InputError, match=r"must not hold a run already; found segments/ of a run there, whose run\.h5"):
        record(tmp_path, resume=resume)
    away.rename(tmp_path / "run.h5")
    assert Recording(tmp_path)["t/x"].tolist() == [1]
    away = (tmp_path / "run.h5").rename(tmp_path / "away")
    record(tmp_path, overwrite=True).close()
    assert not (tmp_path / "segments").exists()


def test_a_run_that_was_killed_before_its_first_index_is_begun_anew(tmp_path: Path) -> None:
    record(tmp_path).suspend()
    (tmp_path / "run.h5").unlink()
    with record(tmp_path) as run:
        run.append("t", x=1.0)
    assert Recording(tmp_path)["t/x"].tolist() == [1]


def test_files_of_the_user_among_the_segments_stay(tmp_path: Path) -> None:
    own = [tmp_path / "segments" / name for name in ("2024.h5", "notes.tmp", "2024.h5.tmp")]
    half_written = tmp_path / "segments" / "000007.h5.tmp"
    (tmp_path / "segments").mkdir()
    for path in (*own, half_written):
        path.write_text("mine")
    with record(tmp_path) as run:
        run.append("t", x=1.0)
    assert [path.read_text() for path in own] == ["mine"] * 3 and not half_written.exists()
