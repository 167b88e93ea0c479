"""A run in memory reads like the same run on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simphys.autograd.errors import InputError
from simphys.record import MemoryRecorder, Recorder, Recording, RunRecorder

OPTIONS = {"kind": "run", "provenance": {"seed": 3, "versions": {"numpy": "2"}}, "scene": {"title": "über"}}


def record(run: RunRecorder) -> None:
    run.append("t", units={"x": "m"}, x=[1.0, 2.0], k=np.int32(0))
    run.flush()
    run.extend({"t": {"x": np.ones((3, 2)), "k": np.arange(3, dtype=np.int32)}, "/u/v": {"y": np.arange(4)}})
    run.write("s", attrs={"status": "done", "sizes": [1, 2]}, units={"a": "px"}, a=np.eye(2), t=["ä", "bc"], n=3.5)
    run.write("gone/below", x=1)
    run.append("gone", x=1)
    run.discard("gone")
    run.write("again", attrs={"old": 1}, old=1)
    run.write("again", new=[2])


def paths(run: Recording, group: str = "") -> list[str]:
    below = [f"{group}/{name}".lstrip("/") for name in run.keys(group)]
    return below + [path for each in below for path in paths(run, each)]


def test_a_run_in_memory_reads_like_one_on_disk(tmp_path: Path) -> None:
    with Recorder(tmp_path, **OPTIONS) as on_disk, MemoryRecorder(**OPTIONS) as in_memory:  # type: ignore[arg-type]
        record(on_disk)
        record(in_memory)
    one, other = on_disk.recording, in_memory.recording
    names = [path for path in paths(one) if not path.startswith("h5md")]
    assert paths(other) == names and "again/new" in names and "u/v/y" in names and "gone" not in names
    for name in names:
        assert one.attrs(name) == other.attrs(name), name
        if not one.keys(name):
            assert one[name].dtype == other[name].dtype and one[name].tolist() == other[name].tolist()
            assert one.shape(name) == other.shape(name)
    assert one.attrs() == other.attrs()
    for run in (one, other):
        assert (run.kind, run.scene, run.provenance) == ("run", OPTIONS["scene"], OPTIONS["provenance"])
        assert run.thinned("t/x", 2).tolist() == [[1, 2], [1, 1]] and run.row("t/x", 0).tolist() == [1, 2]
        assert "t/x" in run and "/t" in run and "t/y" not in run
        with pytest.raises(KeyError, match=r"holds no dataset 't/y'; it holds again/new, s/a, "):
            run["t/y"]
        with pytest.raises(IndexError, match="has 4 rows, no row 4"):
            run.row("t/x", 4)
        with pytest.raises(KeyError, match="holds no 'nowhere'"):
            run.attrs("nowhere")
    assert (other.folder, other.name) == (None, "a run in memory")


def test_rows_in_memory_are_copies_and_like_the_first() -> None:
    state = np.zeros(2)
    run = MemoryRecorder(**OPTIONS)  # type: ignore[arg-type]
    run.append("t", x=state)
    state += 1.0
    assert run.recording["t/x"].tolist() == [[0.0, 0.0]]
    run.recording["t/x"][:] = 7.0
    run.append("t", x=state)
    assert run.recording["t/x"].tolist() == [[0.0, 0.0], [1.0, 1.0]]
    with pytest.raises(InputError, match="every row is like the first"):
        run.append("t", x=[1.0])
