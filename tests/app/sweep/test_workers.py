"""Workers have an environment, a disk and an end; a table has views; a dry run tells what a sweep costs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.app.sweep import member, sweep, walltime, work
from simphys.app.sweep.engines import DEVICES, THREADS, Processes
from simphys.record import Recording

from ...helpers.oscillator import SIMULATION, assert_same_fit, simphys
from ...helpers.oscillator import write as oscillator_file
from .test_sweep import assert_same_table

GRID = {"geometry.anchors.0.stiffness": [30.0, 35.0]}


def tables(folder: Path, name: str, engine: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    scene = folder / "scene.toml"
    if not scene.exists():
        oscillator_file(folder)
    chosen = {"kind": "serial", **(engine or {})}
    return {"scene": str(scene), "folder": str(folder / name), "grid": GRID, "engine": chosen, **more}


def test_each_process_sees_its_gpu_and_has_the_threads_that_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in THREADS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(DEVICES, "4,7")
    monkeypatch.syspath_prepend(Path(__file__).parents[3])  # where a new process finds the function below
    engine = Processes(3, threads=2, gpus=2)
    try:
        futures: list[Future[Any]] = [engine.submit(_read_environment, tmp_path / "start") for _ in range(3)]
        (tmp_path / "start").touch()
        assert [future.result() for future in futures] == [["4", "2"], ["7", "2"], ["4", "2"]]
    finally:
        engine.shutdown(kill=True)
    assert os.environ[DEVICES] == "4,7" and THREADS[0] not in os.environ


def _read_environment(start: Path) -> list[str]:
    while not start.exists():  # so that all are busy
        time.sleep(0.01)
    return [os.environ[name] for name in (DEVICES, THREADS[0])]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked up in /proc")
def test_processes_end_with_the_one_that_started_them_even_if_it_is_killed() -> None:
    code = """import time
from simphys.app.sweep.engines import Processes
engine = Processes(1)
print(engine.submit(eval, "__import__('os').getpid()").result(), flush=True)
time.sleep(600)"""
    root = Path(__file__).parents[3]
    with subprocess.Popen([sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = Path(f"/proc/{int(parent.stdout.readline())}/stat")
        assert worker.exists()
        parent.kill()
        end = time.monotonic() + 120
        while worker.exists() and worker.read_text().rpartition(") ")[2][0] != "Z":
            assert time.monotonic() < end
            time.sleep(0.02)


def test_a_fit_on_a_disk_of_the_worker_is_that_of_the_sweeps_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first attempt of each member ends after some iterations; what it has found goes along."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    plain = tables(tmp_path, "plain")
    moved = tables(tmp_path, "moved", {"scratch": str(scratch)})
    sweep(plain)
    asked: list[int] = []
    monkeypatch.setattr(work, "is_over", lambda ends: asked.append(1) or len(asked) % 5 == 0)  # type: ignore[func-returns-value]
    assert set(sweep(moved).column("status")) == {"out of time"}
    monkeypatch.undo()
    table = sweep(moved)
    assert_same_table(moved, plain)
    assert not list(scratch.iterdir())
    assert_same_fit(Path(table.folders[1]), Path(sweep(plain, collect=True).folders[1]))
    assert not [path for path in Path(table.folders[0]).iterdir() if path.name.startswith(".") and "." in path.name[1:]]


def test_a_sweep_stops_before_its_walltime_and_goes_on_when_run_again(tmp_path: Path) -> None:
    spec = tables(tmp_path, "sweep", {"walltime": 1e-6})
    table = sweep(spec)
    assert table.count("missing") + table.count("out of time") == 2
    assert sweep({**spec, "engine": {"kind": "serial"}}).count("done") == 2


def test_a_member_stops_a_minute_before_the_end_of_its_slurm_job(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not walltime.is_over(None) and walltime.is_over(time.time() - 1)
    monkeypatch.setenv("SLURM_JOB_END_TIME", str(int(time.time()) + 30))
    assert walltime.is_over(None)
    monkeypatch.setenv("SLURM_JOB_END_TIME", str(int(time.time()) + 300))
    assert not walltime.is_over(None)


def test_members_have_one_thread_whatever_the_machine_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMPHYS_THREADS", "2")

    def threads(name: str, **more: Any) -> int:
        scene: Any = Recording(sweep(tables(tmp_path, name, do="run", **more)).folders[0]).scene
        return int(scene["runtime"]["threads"])

    assert (threads("one"), threads("two", engine={"threads": 2})) == (1, 2)
    assert threads("scene", overrides=["runtime.threads=3"]) == 3


def test_a_table_is_a_dataset_with_the_axes_of_its_grid(tmp_path: Path) -> None:
    pytest.importorskip("xarray")
    (tmp_path / "scene.toml").write_text(SIMULATION)
    grid = {"geometry.anchors.0.stiffness": [45.0, 20.0, 30.0], "material.drag": [0.5, 0.0]}
    table = sweep(tables(tmp_path, "grid", do="run", grid=grid))
    found = table.to_xarray()
    assert dict(found.sizes) == {"geometry.anchors.0.stiffness": 3, "material.drag": 2}
    one = found["position[0, 0]"].sel({"geometry.anchors.0.stiffness": 30.0, "material.drag": 0.5})
    assert one == table.column("position[0, 0]")[4]
    loose = sweep(
        tables(tmp_path, "zip", do="run", grid={}, zip={"material.drag": [0.1, 0.2], "time.dt": [1e-3, 2e-3]})
    )
    assert dict(loose.to_xarray().sizes) == {"member": 2}


def test_a_table_is_a_file_of_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    table = sweep(tables(tmp_path, "parquet", do="run"))
    read = parquet.read_table(tmp_path / "parquet" / "table.parquet")
    assert read.column_names == table.names
    np.testing.assert_array_equal(read.column("position[0, 0]").to_numpy(), table.column("position[0, 0]"))


def test_a_table_is_a_frame_of_pandas(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    frame = sweep(tables(tmp_path, "frame", do="gradient")).to_pandas()
    assert len(frame) == 2 and np.isfinite(frame["d loss / d rate"]).all()


@pytest.mark.parametrize("do", ["optimize", "run", "gradient"])
def test_a_dry_run_tells_memory_and_time_and_does_nothing(tmp_path: Path, do: str) -> None:
    oscillator_file(tmp_path)
    file = tmp_path / "sweep.toml"
    lines = [
        'scene = "scene.toml"',
        f'do = "{do}"',
        f'folder = "{tmp_path}/out"',
        "[grid]",
        '"material.drag" = [0.1, 0.2]',
    ]
    file.write_text("\n".join([*lines, '[engine]\nkind = "serial"\n']))
    result = simphys("sweep", file, "--dry-run")
    assert "2 members" in result.stdout and "memory: " in result.stdout and "time: " in result.stdout
    assert not (tmp_path / "out").exists()
    sweep(file)
    (member_folder, *_) = (tmp_path / "out" / "members").glob("*/*")
    (member_folder / member.RESULT).unlink()
    assert "the mean of 1 that are done" in simphys("sweep", file, "--dry-run").stdout
    if do == "run":
        assert Recording(member_folder).attrs("motion")["status"] == "completed"
