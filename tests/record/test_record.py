"""A recording returns what was written to it, whether it was flushed, resumed, merged or moved."""

from __future__ import annotations

import errno
import shutil
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from simphys.autograd.errors import InputError, StorageError
from simphys.record import Recorder, Recording, merging, recorder
from simphys.record.index import load_index

SCENE = {"title": "über", "time": {"dt": 1e-3}}


def record(folder: Path, **options: Any) -> Recorder:
    provenance = {"seed": 3, "arch": "cpu", "versions": {"numpy": "2"}}
    return Recorder(folder, kind="run", provenance=provenance, scene=SCENE, **options)


def segments(folder: Path) -> list[Path]:
    return sorted((folder / "segments").glob("*.h5"))


@st.composite
def tables(draw: st.DrawFn) -> tuple[dict[str, np.ndarray], list[bool]]:
    """Columns of one length, and after which of their rows to flush."""
    rows = draw(st.integers(1, 12))
    dtypes = st.sampled_from([np.float64, np.float32, np.int64, np.int32, np.uint8, np.bool_, np.complex128])
    shapes = hnp.array_shapes(min_dims=0, max_dims=3, max_side=3)
    column = st.builds(lambda d, s: (d, s), dtypes, shapes).flatmap(lambda c: hnp.arrays(c[0], (rows, *c[1])))
    return draw(st.dictionaries(st.sampled_from("abc"), column, min_size=1)), draw(
        st.lists(st.booleans(), min_size=rows, max_size=rows)
    )


@settings(max_examples=25, deadline=None)
@given(tables())
def test_what_was_appended_is_read_back_bitwise(
    tmp_path_factory: pytest.TempPathFactory, table: tuple[dict[str, np.ndarray], list[bool]]
) -> None:
    columns, flushes = table
    folder = tmp_path_factory.mktemp("run")
    recording = None
    with record(folder) as run:
        for row, flush in enumerate(flushes):
            run.append("deep/table", **{name: column[row] for name, column in columns.items()})
            if flush:
                run.flush()
        run.flush()
        recording = Recording(folder)
        assert_holds(recording, columns)
    assert_holds(recording, columns)  # of the one file now


def assert_holds(recording: Recording, columns: dict[str, np.ndarray]) -> None:
    """Read by us, and by any program that reads HDF5."""
    assert recording.folder is not None
    with h5py.File(recording.folder / "run.h5") as tree:
        for name, column in columns.items():
            for found in (recording[f"deep/table/{name}"], tree[f"deep/table/{name}"][()]):
                assert found.dtype == column.dtype
                assert found.shape == column.shape
                assert found.tobytes() == column.tobytes()


def test_the_layout_is_that_of_h5md(tmp_path: Path) -> None:
    with record(tmp_path) as run:
        run.write("particles/nodes/box", attrs={"dimension": 1, "boundary": ["none"]})
        for k in range(3):
            units = {"value": "px", "time": "s"}
            run.append("particles/nodes/position", units=units, step=k, time=0.1 * k, value=[[float(k)]])
    with h5py.File(tmp_path / "run.h5") as tree:
        assert tree["h5md"].attrs["version"].tolist() == [1, 1]
        assert tree["h5md/creator"].attrs["name"] == b"simphys"
        assert set(tree["particles/nodes/position"]) == {"step", "time", "value"}
        assert tree["particles/nodes/position/value"].shape == (3, 1, 1)
        assert tree["particles/nodes/position/value"].attrs["unit"] == b"px"
        assert tree["particles/nodes/box"].attrs["dimension"] == 1
        assert tree.attrs["seed"] == 3


def test_many_rows_are_appended_at_once_to_several_tables(tmp_path: Path) -> None:
    x = np.arange(30.0).reshape(10, 3)
    with record(tmp_path) as run:
        run.append("one", units={"x": "m"}, x=x[0])
        run.extend({"one": {"x": x[1:4]}, "two": {"y": x[:4, 0]}}, units={"two": {"y": "s"}})
        run.flush()
        run.extend({"one": {"x": x[4:]}, "two": {"y": x[4:, 0]}})
        run.extend({"one": {"x": x[:0]}, "two": {"y": x[:0, 0]}})
    recording = Recording(tmp_path)
    np.testing.assert_array_equal(recording["one/x"], x)
    np.testing.assert_array_equal(recording["two/y"], x[:, 0])
    assert (recording.attrs("one/x"), recording.attrs("two/y")) == ({"unit": "m"}, {"unit": "s"})


def test_rows_for_several_tables_come_into_all_or_none(tmp_path: Path) -> None:
    with record(tmp_path) as run:
        run.extend({"one": {"x": np.zeros((2, 3))}, "two": {"y": np.zeros(2)}})
        with pytest.raises(InputError, match="every row is like the first"):
            run.extend({"one": {"x": np.zeros((2, 3))}, "two": {"y": np.zeros((2, 5))}})
        with pytest.raises(InputError, match="every row is like the first"):
            run.extend({"one": {"x": np.zeros((2, 3)), "z": np.zeros(2)}})
    recording = Recording(tmp_path)
    assert recording.shape("one/x") == (2, 3) and recording.shape("two/y") == (2,)


@pytest.mark.parametrize("end", [Recorder.suspend, Recorder.close])
@pytest.mark.parametrize("every", [1, 2, 3, 7, 50])
def test_long_tables_are_read_in_part(every: int, end: Callable[[Recorder], None], tmp_path: Path) -> None:
    run = record(tmp_path)
    for k in range(23):
        run.append("table", x=[k, k])
        if k in (3, 4, 12):
            run.flush()
    run.write("static", x=np.arange(23))
    end(run)
    recording = Recording(tmp_path)
    assert recording.shape("table/x") == (23, 2) and recording.shape("static/x") == (23,)
    np.testing.assert_array_equal(recording.thinned("table/x", every)[:, 0], np.arange(0, 23, every))
    np.testing.assert_array_equal(recording.thinned("static/x", every), np.arange(0, 23, every))


@pytest.mark.parametrize("end", [Recorder.suspend, Recorder.close])
def test_rows_are_read_one_by_one(end: Callable[[Recorder], None], tmp_path: Path) -> None:
    run = record(tmp_path)
    for row in range(7):
        run.append("motion", value=np.arange(3) + 10 * row)
        if row % 3 == 2:
            run.flush()
    run.write("adjoint", value=np.arange(6).reshape(2, 3))
    end(run)
    found = Recording(tmp_path)
    for row in range(7):
        np.testing.assert_array_equal(found.row("motion/value", row), np.arange(3) + 10 * row)
    np.testing.assert_array_equal(found.row("adjoint/value", 1), [3, 4, 5])
    for row in (-1, 7):
        with pytest.raises(IndexError, match=f"motion/value of .* has 7 rows, no row {row}"):
            found.row("motion/value", row)


def test_what_is_discarded_can_be_recorded_anew(tmp_path: Path) -> None:
    with record(tmp_path) as run:
        run.append("a/one", x=1.0)
        run.append("a/one/deeper", x=1.0)
        run.append("ab", x=1.0)
        run.write("a/static", x=1.0)
        run.flush()
        run.append("a/one", x=2.0)
        run.discard("a")
        run.append("a/one", x=[5, 6])
    recording = Recording(tmp_path)
    assert recording["a/one/x"].tolist() == [[5, 6]] and recording["ab/x"].tolist() == [1.0]
    assert recording.keys("a") == ["one"]


def test_rows_are_chunked_and_checksummed(tmp_path: Path) -> None:
    with record(tmp_path) as run:
        run.append("table", x=np.zeros(3))
        run.flush()
        with h5py.File(segments(tmp_path)[-1]) as segment:
            assert segment["table/x"].fletcher32
            assert segment["table/x"].chunks == (1, 3)


def test_scene_kind_and_provenance_come_back(tmp_path: Path) -> None:
    record(tmp_path).close()
    recording = Recording(tmp_path)
    assert recording.scene == SCENE
    assert recording.kind == "run"
    assert recording.provenance == {"seed": 3, "arch": "cpu", "versions": {"numpy": "2"}}


def test_static_data_text_attributes_and_units_come_back(tmp_path: Path) -> None:
    with record(tmp_path) as run:
        run.write(
            "/unknowns",
            attrs={"rank": 2, "names": ["ä", "b"]},
            units={"start": "1/s²"},
            label=["rate", "größe"],
            start=np.array([1.0, 2.0]),
            rmse=0.5,
            none=np.zeros((0, 2)),
        )
    recording = Recording(tmp_path)
    assert recording["unknowns/label"].tolist() == ["rate", "größe"]
    assert recording["/unknowns/start"].tolist() == [1.0, 2.0]
    assert recording["unknowns/rmse"] == 0.5
    assert recording["unknowns/none"].shape == (0, 2)
    assert recording.attrs("unknowns") == {"rank": 2, "names": ["ä", "b"]}
    assert recording.attrs("unknowns/start") == {"unit": "1/s²"}


def test_a_write_replaces_the_earlier_one_and_leaves_the_tables(tmp_path: Path) -> None:
    run = record(tmp_path)
    run.append("fit", loss=1.0)
    run.write("fit", old=np.arange(3))
    run.write("fit", new=np.arange(4))
    run.suspend()
    recording = Recording(tmp_path)
    assert recording.keys("fit") == ["loss", "new"]
    assert recording["fit/loss"].tolist() == [1.0]
    assert len(segments(tmp_path)) == 3  # the scene, the rows, `new`


def test_keys_and_in_describe_the_tree(tmp_path: Path) -> None:
    with record(tmp_path) as run:
        run.append("a/b", x=1.0)
    recording = Recording(tmp_path)
    assert recording.keys() == ["a", "h5md", "scene"]
    assert recording.keys("a") == ["b"]
    assert recording.keys("a/b/x") == recording.keys("nowhere") == []
    assert "a/b/x" in recording
    assert "/a" in recording
    assert recording.attrs("a/b") == {}
    assert "a/c" not in recording
    with pytest.raises(KeyError, match="holds no dataset 'a/c'; it holds a/b/x, scene"):
        recording["a/c"]


def test_resuming_equals_not_having_stopped(tmp_path: Path) -> None:
    with record(tmp_path / "whole") as run:
        for k in range(20):
            run.append("t", units={"x": "m"}, x=[k, 0.5 * k])
    for start in (0, 7, 14):
        with record(tmp_path / "parts", resume=True) as run:
            for k in range(start, min(start + 7, 20)):
                run.append("t", units={"x": "m"}, x=[k, 0.5 * k])
    whole, parts = Recording(tmp_path / "whole"), Recording(tmp_path / "parts")
    assert whole["t/x"].tobytes() == parts["t/x"].tobytes()
    assert whole.attrs("t/x") == parts.attrs("t/x") == {"unit": "m"}
    assert whole.keys() == parts.keys()


def test_a_run_can_be_moved(tmp_path: Path) -> None:
    with record(tmp_path / "here") as run:
        for k in range(5):
            run.append("t", x=k)
            run.flush()
    (tmp_path / "far").mkdir()
    shutil.move(tmp_path / "here", tmp_path / "far" / "there")
    assert Recording(tmp_path / "far/there")["t/x"].tolist() == [0, 1, 2, 3, 4]
    with h5py.File(tmp_path / "far/there/run.h5") as tree:
        assert tree["t/x"][:].tolist() == [0, 1, 2, 3, 4]
        assert b"time" in tree["scene"][0]


def test_a_recording_can_be_followed_while_it_grows(tmp_path: Path) -> None:
    with record(tmp_path) as run:
        recording = Recording(tmp_path)
        for k in range(40):
            run.append("t", x=k)
            run.flush()
            assert recording["t/x"].tolist() == list(range(k + 1))


def test_the_number_of_segments_grows_with_the_logarithm_of_the_flushes(tmp_path: Path) -> None:
    with record(tmp_path) as run:
        for k in range(64):
            run.append("t", x=np.full(1000, k))
            run.flush()
            assert len(segments(tmp_path)) <= 9


def test_rows_go_to_disk_by_themselves_when_they_are_many_or_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "SEGMENT_BYTES", 1000)
    with record(tmp_path) as run:
        recording = Recording(tmp_path)
        run.append("t", x=np.zeros(100))
        assert "t" not in recording
        run.append("t", x=np.zeros(100))
        assert len(recording["t/x"]) == 2
        monkeypatch.setattr(recorder, "FLUSH_SECONDS", 0.0)
        run.append("t", x=np.zeros(100))
        assert len(recording["t/x"]) == 3


def test_a_row_is_copied(tmp_path: Path) -> None:
    state = np.zeros(2)
    with record(tmp_path) as run:
        run.append("t", x=state)
        state += 1.0
        run.append("t", x=state)
    assert Recording(tmp_path)["t/x"].tolist() == [[0.0, 0.0], [1.0, 1.0]]


@pytest.mark.parametrize(
    "row", [{"x": np.zeros(3)}, {"x": np.zeros(2, complex)}, {"y": np.zeros(2)}, {"x": np.zeros(2), "y": 1}]
)
def test_a_row_unlike_the_first_is_refused_and_the_others_kept(tmp_path: Path, row: dict[str, Any]) -> None:
    with record(tmp_path) as run:
        run.append("t", x=np.zeros(2))
        with pytest.raises(InputError, match=r"table t: every row is like the first \(x float64\[2\]\); found "):
            run.append("t", **row)
        run.append("t", x=np.ones(2, np.float32))
    assert Recording(tmp_path)["t/x"].tolist() == [[0.0, 0.0], [1.0, 1.0]]


def test_text_in_a_table_is_refused(tmp_path: Path) -> None:
    with record(tmp_path) as run, pytest.raises(InputError, match=r"table t: .* found note of shape \(\), "):
        run.append("t", note="text")


def test_an_existing_run_is_only_replaced_when_told_so(tmp_path: Path) -> None:
    (tmp_path / "picture.png").touch()
    with record(tmp_path) as run:
        run.append("t", x=1)
    with pytest.raises(InputError, match=r"must not hold a run already; found run\.h5 there\. Pass --overwrite"):
        record(tmp_path)
    assert not (tmp_path / "segments").exists()
    assert Recording(tmp_path)["t/x"].tolist() == [1]
    record(tmp_path, overwrite=True).suspend()
    assert "t" not in Recording(tmp_path)
    assert len(segments(tmp_path)) == 1
    assert (tmp_path / "picture.png").exists()


def test_a_run_of_another_kind_is_not_resumed(tmp_path: Path) -> None:
    record(tmp_path).close()
    with pytest.raises(InputError, match="must hold a run of kind 'optimize' to resume; found kind 'run'"):
        Recorder(tmp_path, kind="optimize", provenance={}, scene={}, resume=True)


def test_a_second_writer_is_kept_out_until_the_first_is_done(tmp_path: Path) -> None:
    with (
        record(tmp_path),
        pytest.raises(InputError, match="must not be in use by another run"),
    ):
        record(tmp_path, overwrite=True)
    record(tmp_path, overwrite=True).close()


def test_a_folder_that_cannot_be_written_is_named_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"output folder .*file/run: must be a folder that can be written; .*=PATH"):
        record(tmp_path / "file" / "run")
    with pytest.raises(InputError, match=r"must be a folder that can be written"):
        record(Path("/proc/run"))


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must be the folder of a run; found no run\.h5 there"):
        Recording(tmp_path)
    with pytest.raises(InputError, match="must be the folder of a run; found no such folder"):
        Recording(tmp_path / "nowhere")


def test_a_truncated_index_and_a_missing_segment_are_errors(tmp_path: Path) -> None:
    run = record(tmp_path)
    run.append("t", x=1)
    run.suspend()
    recording = Recording(tmp_path)
    segments(tmp_path)[-1].unlink()
    with pytest.raises(StorageError, match=r"000002\.h5 is missing, though .*run\.h5 refers to it"):
        recording["t/x"]
    assert recording.scene == SCENE
    index = tmp_path / "run.h5"
    index.write_bytes(index.read_bytes()[:40])
    with pytest.raises(StorageError, match=r"run\.h5 cannot be read: the file is damaged"):
        Recording(tmp_path)


def test_a_lock_that_another_program_holds_does_not_matter(tmp_path: Path) -> None:
    with record(tmp_path) as run:
        run.append("t", x=1)
    with h5py.File(tmp_path / "run.h5", "r+"):
        assert Recording(tmp_path)["t/x"].tolist() == [1]
    with h5py.File(tmp_path / "run.h5"), record(tmp_path, resume=True) as run:
        run.append("t", x=2)
    assert Recording(tmp_path)["t/x"].tolist() == [1, 2]


# --- a complete run


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def record_some(folder: Path) -> np.ndarray:
    """A complete run with rows in several segments, and static datasets; returns the rows."""
    rows = np.random.default_rng(0).normal(size=(40, 500))
    with record(folder) as run:
        for k, row in enumerate(rows):
            run.append("t", units={"x": "m"}, x=row)
            if k in (20, 30, 35):
                run.flush()
        run.write("s", attrs={"status": "done"}, units={"a": "px"}, a=np.arange(6).reshape(2, 3), t=["ä", "bc"], n=3.5)
        assert len(segments(folder)) > 2
    return rows


def test_a_complete_run_is_one_file_that_can_be_moved_alone(tmp_path: Path) -> None:
    rows = record_some(tmp_path / "run")
    assert files(tmp_path / "run") == ["run.h5"]
    alone = shutil.move(tmp_path / "run/run.h5", tmp_path / "glider.h5")
    with h5py.File(alone) as tree:
        assert np.array_equal(tree["t/x"], rows) and tree["t/x"].attrs["unit"] == b"m"
        assert tree["t/x"].fletcher32 and tree["t/x"].chunks == (40, 500)
        assert tree["s/t"].asstr()[:].tolist() == ["ä", "bc"]
        assert tree["s/n"][()] == 3.5 and tree["s/a"][:].tolist() == [[0, 1, 2], [3, 4, 5]]
        assert tree["s/a"].attrs["unit"] == b"px" and tree["s"].attrs["status"] == b"done"
        assert "note" not in tree.attrs
    run = Recording(alone)
    assert run["t/x"].tobytes() == rows.tobytes() and run["s/t"].tolist() == ["ä", "bc"]
    assert run.scene == SCENE and run.kind == "run" and run.attrs("s") == {"status": "done"}
    assert (run.attrs("t/x"), run.attrs("s/a")) == ({"unit": "m"}, {"unit": "px"})
    assert (run.name, run.folder) == (str(alone), tmp_path)


def test_an_interrupted_run_keeps_its_segments_and_says_so(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), record(tmp_path) as run:
        run.append("t", x=1)
        raise KeyboardInterrupt
    assert len(segments(tmp_path)) == 2
    with h5py.File(tmp_path / "run.h5") as tree:
        assert tree.attrs["note"].startswith(b"Incomplete run: its arrays lie in the folder segments/.")
    assert "note" not in Recording(tmp_path).attrs()
    record(tmp_path, resume=True).close()
    assert files(tmp_path) == ["run.h5"]
    assert Recording(tmp_path)["t/x"].tolist() == [1]


@pytest.mark.parametrize("linked", [True, False])
def test_a_complete_run_can_be_resumed_and_is_one_file_again(
    linked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object) -> None:
        raise PermissionError

    rows = record_some(tmp_path)
    if not linked:
        monkeypatch.setattr("os.link", no_links)
    reader = Recording(tmp_path)
    with record(tmp_path, resume=True) as run:
        assert reader["t/x"].tobytes() == rows.tobytes()
        assert reader["s/t"].tolist() == ["ä", "bc"] and reader.attrs("s/a") == {"unit": "px"}
        run.append("t", x=rows[0])
        run.flush()
        assert len(reader["t/x"]) == 41
        run.write("s", a=[7])
    assert files(tmp_path) == ["run.h5"]
    assert reader["t/x"].tobytes() == np.concatenate([rows, rows[:1]]).tobytes()
    assert reader["s/a"].tolist() == [7] and reader.keys("s") == ["a"]


@pytest.mark.parametrize("path", ["t/x", "s/a"])
def test_a_reader_follows_when_a_complete_run_is_resumed(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the index that it reads and the rows, run.h5 is replaced."""
    record_some(tmp_path)
    reader = Recording(tmp_path)
    expected, earlier = reader[path], iter([load_index(tmp_path / "run.h5")])
    run = record(tmp_path, resume=True)
    monkeypatch.setattr(
        "simphys.record.remains.load_index", lambda file, **options: next(earlier, None) or load_index(file, **options)
    )
    np.testing.assert_array_equal(reader[path], expected)
    assert next(earlier, None) is None
    run.suspend()


def test_merging_reads_a_block_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "SEGMENT_BYTES", 1 << 20)
    run = record(tmp_path)
    for k in range(40):
        run.append("t", x=np.full((100, 1000), float(k)))  # 0.8 MB
    run.write("s", a=np.zeros((4000, 1000)))  # 32 MB
    run.flush()
    read, blocks, held = h5py.Dataset.__getitem__, list[weakref.ref[np.ndarray]](), [0]

    def read_counted(self: h5py.Dataset, *arguments: Any) -> Any:
        block = read(self, *arguments)
        if isinstance(block, np.ndarray):
            blocks.append(weakref.ref(block))
            held.append(sum([each.nbytes for each in [found() for found in blocks] if each is not None]))
        return block

    with monkeypatch.context() as patch:
        patch.setattr(h5py.Dataset, "__getitem__", read_counted)
        run.close()
    assert files(tmp_path) == ["run.h5"]
    assert len(blocks) > 64 // 4 and max(held) <= 2 * merging.BLOCK_BYTES  # a block, and the one before it
    assert np.array_equal(Recording(tmp_path)["t/x"][:, 0, 0], np.arange(40.0))


def test_without_room_for_one_file_the_run_is_whole_in_segments_and_a_warning_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    run = record(tmp_path)
    run.append("t", x=1)
    run.flush()
    with monkeypatch.context() as patch:
        patch.setattr("simphys.record.recorder.merge", no_room)
        with pytest.warns(
            UserWarning, match=r"cannot be merged into one file: No space left on device\. The run is rec"
        ):
            run.close()
    assert Recording(tmp_path)["t/x"].tolist() == [1]
    record(tmp_path, resume=True).close()
    assert files(tmp_path) == ["run.h5"]
