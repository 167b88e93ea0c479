"""A kill, a full disk and a flipped bit: what was flushed stays readable, and what is wrong is said."""

from __future__ import annotations

import errno
import os
import random
import resource
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest

from simphys.autograd.errors import StorageError
from simphys.record import Recorder, Recording


def row(k: int) -> np.ndarray:
    return np.sin(k + np.arange(50.0))


def receive(reader: int) -> bytes:
    """Read a message of 8 bytes from a pipe, empty when all who write to it have ended."""
    ready, _, _ = select.select([reader], [], [], 120)
    assert ready, "neither a message nor an end"
    return os.read(reader, 8)


def open_run(folder: Path, **options: bool) -> Recorder:
    return Recorder(folder, kind="run", provenance={}, scene={"a": 1}, **options)


def write_rows_until_killed(folder: Path, flushed: int) -> None:
    """Continue the run; report on the pipe `flushed` every number of rows that a flush made durable."""
    with open_run(folder, resume=True) as run:
        recording = Recording(folder)
        k = len(recording["t/x"]) if "t" in recording else 0
        while True:
            k += 1
            run.append("t", x=row(k - 1))
            run.append("other", k=k - 1)
            if k % 3 == 0:
                run.flush()
                os.write(flushed, k.to_bytes(8))
            if k % 10 == 0:
                run.write("static", ones=np.full(100, k))


def test_a_killed_run_is_readable_holds_what_was_flushed_and_can_be_resumed(tmp_path: Path) -> None:
    random.seed(1)
    for _ in range(15):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                write_rows_until_killed(tmp_path, writer)
            finally:
                os._exit(1)
        os.close(writer)
        reported = receive(reader)
        time.sleep(random.uniform(0.0, 0.1))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while more := receive(reader):
            reported = more
        os.close(reader)
        recording = Recording(tmp_path)
        rows = len(recording["t/x"])
        assert rows >= int.from_bytes(reported)
        assert recording["t/x"].tobytes() == np.array([row(k) for k in range(rows)]).tobytes()
        assert recording["other/k"].tolist() == list(range(rows))
        assert recording.scene == {"a": 1}
        if "static" in recording:
            assert np.ptp(recording["static/ones"]) == 0
    assert rows >= 15


def write_until_the_nth_disk_call(folder: Path, number: int, flushed: int) -> None:
    """Exit without any cleaning up in place of the call; exit status 1 when there are fewer calls."""
    calls = iter(range(number))

    def dying(call: Callable[..., None]) -> Callable[..., None]:
        def counted(*args: object, **options: object) -> None:
            if next(calls, None) is None:
                os._exit(0)
            call(*args, **options)

        return counted

    with pytest.MonkeyPatch.context() as patch:
        for owner, name in ((os, "fsync"), (os, "replace"), (os, "link"), (Path, "unlink"), (Path, "rmdir")):
            patch.setattr(owner, name, dying(getattr(owner, name)))
        for k in range(3):
            with open_run(folder, resume=True) as run:  # what a complete run has as one file becomes its first segment
                run.append("t", x=row(k))
                run.flush()
                os.write(flushed, (k + 1).to_bytes(8))
                run.write("static", ones=np.ones(100))
    os._exit(1)


def test_a_kill_at_any_call_to_the_disk_is_survived(tmp_path: Path) -> None:
    for number in range(1000):
        folder = tmp_path / str(number)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                write_until_the_nth_disk_call(folder, number, writer)
            finally:
                os._exit(2)
        os.close(writer)
        reported = 0
        while message := receive(reader):
            reported = int.from_bytes(message)
        os.close(reader)
        _, status = os.waitpid(child, 0)
        if reported:  # readable as it was left
            assert len(Recording(folder)["t/x"]) in (reported, reported + 1)
        with open_run(folder, resume=True) as run:
            recording = Recording(folder)
            rows = len(recording["t/x"]) if "t" in recording else 0
            assert rows in (reported, reported + 1)
            for k in range(rows, 4):
                run.append("t", x=row(k))
        assert recording["t/x"].tobytes() == np.array([row(k) for k in range(4)]).tobytes()
        assert [path.name for path in folder.rglob("*")] == ["run.h5"]
        if os.waitstatus_to_exitcode(status) == 1:
            break
        assert status == 0
    assert 40 < number < 200


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of 400 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode == 0:
        yield disk
        subprocess.run(["umount", str(disk)], check=True)
        return
    # Without the right to mount: no file may grow past a size, which fails in the same call, by another number.
    earlier = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, earlier[1]))
    yield disk
    resource.setrlimit(resource.RLIMIT_FSIZE, earlier)


def test_a_full_disk_is_a_clean_error_and_what_came_before_stays(small_disk: Path) -> None:
    flushed = 0
    with pytest.raises(StorageError) as caught, open_run(small_disk / "run") as run:
        for k in range(1000):
            run.append("t", x=np.full(1000, k))
            run.flush()
            flushed = k + 1
    message = str(caught.value)
    assert str(small_disk / "run") in message
    assert f"safe in {small_disk / 'run' / 'run.h5'}: {flushed} rows of t" in message
    assert "Free some space there or choose another output.folder, then resume." in message
    assert 5 < flushed < 1000
    assert Recording(small_disk / "run")["t/x"][:, 0].tolist() == list(range(flushed))


def test_a_disk_that_fills_while_a_run_is_merged_leaves_it_whole_in_segments(small_disk: Path) -> None:
    run = open_run(small_disk / "run")
    for k in range(6):
        run.append("t", x=np.full(1200, k))
        run.flush()
    run.write("static", x=np.zeros(10_000))
    run.write("another", x=np.zeros(10_000))
    with pytest.warns(UserWarning, match=r"run\.h5 cannot be merged into one file: "):
        run.close()
    assert len(list((small_disk / "run/segments").glob("*.h5"))) > 3
    assert not list((small_disk / "run").glob("*.tmp"))
    assert Recording(small_disk / "run")["t/x"][:, 0].tolist() == list(range(6))
    with h5py.File(small_disk / "run/run.h5") as tree:  # HDF5 has survived it
        assert tree["t/x"].shape == (6, 1200)


def test_rows_that_found_no_room_are_kept_for_the_next_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_run(tmp_path) as run:
        run.append("t", x=0)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(StorageError, match=r"No space left on device\..* safe in .*run\.h5: no rows yet"):
                run.flush()
        run.append("t", x=1)
    assert Recording(tmp_path)["t/x"].tolist() == [0, 1]


def full(_: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(("complete", "name"), [(True, "run.h5"), (False, "run.h5"), (False, "segments/000002.h5")])
def test_a_flipped_bit_never_goes_unnoticed(tmp_path: Path, complete: bool, name: str) -> None:
    run = open_run(tmp_path)
    for k in range(5):
        run.append("t", x=row(k))
    run.close() if complete else run.suspend()
    expected = Recording(tmp_path)["t/x"]
    path = tmp_path / name
    content = path.read_bytes()
    errors = 0
    for place in range(0, len(content), 41):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            assert np.array_equal(Recording(tmp_path)["t/x"], expected)
        except StorageError as error:
            assert name in str(error)
            errors += 1
    assert errors > 10


@pytest.mark.parametrize("name", ["run.h5", "segments/000002.h5"])
def test_a_flipped_bit_in_the_rows_is_an_error_for_any_program_that_reads_hdf5(tmp_path: Path, name: str) -> None:
    run = open_run(tmp_path)
    run.append("t", x=row(0))
    run.close() if name == "run.h5" else run.suspend()
    path = tmp_path / name
    content = bytearray(path.read_bytes())
    content[content.index(row(0).tobytes()) + 11] ^= 4
    path.write_bytes(content)
    with pytest.raises(StorageError, match=rf"{Path(name).name} cannot be read: the file is damaged"):
        Recording(tmp_path)["t/x"]
    with h5py.File(tmp_path / "run.h5") as tree, pytest.raises(OSError):
        tree["t/x"][:]


def test_an_interrupt_loses_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), open_run(tmp_path) as run:
        run.append("t", x=1)
        raise KeyboardInterrupt
    assert Recording(tmp_path)["t/x"].tolist() == [1]
