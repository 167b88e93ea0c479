"""A sweep does each member once, on any engine and through any death of its workers, and its table is the same."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.app.sweep import SweepTable, member, sweep, work
from simphys.app.sweep.engines import Processes
from simphys.app.sweep.spec import load_sweep, make_sweep
from simphys.autograd import InputError
from simphys.experiment import batches
from simphys.experiment.scene import load_scene
from simphys.scenefile import ConfigError

from ...helpers.oscillator import SIMULATION, simphys
from ...helpers.oscillator import write as oscillator_file

STIFFNESSES = [20.0, 30.0, 45.0]


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    path = tmp_path / "swing.toml"
    path.write_text(SIMULATION)
    return path


def tables(scene: Path, folder: str = "sweep", **more: Any) -> dict[str, Any]:
    return {
        "scene": str(scene),
        "do": "run",
        "folder": str(scene.parent / folder),
        "grid": {"geometry.anchors.0.stiffness": STIFFNESSES, "material.drag": [0.0, 0.5]},
        "engine": {"kind": "serial"},
        **more,
    }


def table_of(spec: dict[str, Any]) -> bytes:
    return (Path(spec["folder"]) / "table.csv").read_bytes()


def assert_same_table(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Compare the tables of two sweeps: numbers but for rounding, reasons by their words, folders by their names."""
    one, other = [SweepTable.read(spec["folder"]) for spec in (found, expected)]
    assert one.names == other.names and len(one) == len(other)
    for name in one.names:
        ours, theirs = one.column(name), other.column(name)
        if name == "folder":
            assert [Path(each).name for each in ours] == [Path(each).name for each in theirs]
        elif name == "reason":
            for one_reason, other_reason in zip(ours, theirs, strict=True):
                assert re.findall("[a-z]{2,}", one_reason) == re.findall("[a-z]{2,}", other_reason)
        elif ours.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12, err_msg=name)
        else:
            assert ours.tolist() == theirs.tolist(), name


def test_members_are_all_combinations_and_rows_hold_what_came_out(scene: Path) -> None:
    spec = tables(scene)
    table = sweep(spec)
    assert len(table) == 6 and table.count("done") == 6
    np.testing.assert_array_equal(table.column("geometry.anchors.0.stiffness"), np.repeat(STIFFNESSES, 2))
    frequency = np.sqrt(table.column("geometry.anchors.0.stiffness"))
    still = table.column("material.drag") == 0
    expected = 0.2 * np.cos(frequency * 0.1)  # 50 steps of 2 ms
    np.testing.assert_allclose(table.column("position[0, 0]")[still], expected[still], rtol=0.01)
    lines = table_of(spec).decode().splitlines()
    assert lines[0].startswith('geometry.anchors.0.stiffness,material.drag,status,"position[0, 0]"')
    assert len(lines) == 7
    with pytest.raises(InputError, match="the columns are geometry"):
        table.column("speed")


def test_a_fit_and_a_gradient_have_the_unknowns_of_their_scene(tmp_path: Path) -> None:
    scene = oscillator_file(tmp_path)
    spec = tables(scene, do="optimize", grid={"geometry.anchors.0.stiffness": [30.0, 35.0]})
    table = sweep(spec)
    assert list(table.column("search")) == ["converged", "converged"]
    first, second = table.column("rate")
    assert first == pytest.approx(second, rel=1e-6) == pytest.approx(40.0, abs=4 * table.column("rate +-")[0])
    slopes = sweep({**spec, "do": "gradient"}).column("d loss / d rate")
    assert abs(slopes[0]) > abs(slopes[1]) > 0


def test_an_assessment_has_a_verdict_on_each_criterion_and_the_same_numbers_again(tmp_path: Path) -> None:
    spec = tables(oscillator_file(tmp_path), do="assess", grid={"geometry.anchors.0.stiffness": [30.0, 35.0]})
    table = sweep(spec)
    assert table.count("done") == 2 and list(table.column("verdict on misfit")) == ["passed", "passed"]
    assert "verdict on recovery" in table.results and "verdict on starts tried" in table.results
    again = {**spec, "folder": str(tmp_path / "again")}
    sweep(again)
    assert_same_table(again, spec)


def test_the_page_of_a_sweep_is_made_from_its_folder_alone(scene: Path) -> None:
    spec = tables(scene, grid={"geometry.anchors.0.stiffness": [*STIFFNESSES, -1.0], "material.drag": [0.0, 0.5]})
    table = sweep(spec)
    folder = Path(spec["folder"])
    read = SweepTable.read(folder)
    assert read.keys == table.keys and read.results == table.results and read.folders == table.folders
    for name in table.names:
        np.testing.assert_array_equal(read.column(name), table.column(name))
    result = simphys("report", folder)
    assert result.exit_code == 0 and result.stdout.strip() == str(folder / "report.html")
    page = (folder / "report.html").read_text()
    assert "8 members, over geometry.anchors.0.stiffness, material.drag" in page
    assert "failed: " in page and "must be" in page and page.count("<figure") == 3
    (folder / "table.csv").write_text("a,b\n1\n")
    broken = simphys("report", folder)
    assert broken.exit_code == 2 and "must be the table of a sweep" in broken.stderr


def test_a_member_that_was_done_is_not_done_again(scene: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = tables(scene)
    sweep(spec)
    before = table_of(spec)
    done: list[str] = []
    simulate = work.simulate_together

    def noted(*arguments: Any, **options: Any) -> Any:
        done.extend(arguments[1])
        return simulate(*arguments, **options)

    monkeypatch.setattr(work, "simulate_together", noted)
    sweep(spec)
    assert not done and table_of(spec) == before
    more = {**spec, "grid": {**spec["grid"], "geometry.anchors.0.stiffness": [*STIFFNESSES, 60.0]}}
    assert len(sweep(more)) == 8 and len(done) == 2
    (Path(done[0]) / member.RESULT).unlink()  # as if it had been killed
    sweep(more)
    assert done[2:] == done[:1]


def test_another_scene_has_other_members_but_another_comment_has_not(scene: Path) -> None:
    folders = sweep(tables(scene)).folders
    scene.write_text("# a comment\n" + SIMULATION)
    assert sweep(tables(scene)).folders == folders
    scene.write_text(SIMULATION.replace("[0.2]", "[0.25]"))
    assert not set(sweep(tables(scene)).folders) & set(folders)


def test_a_member_that_fails_is_a_row_with_its_reason(scene: Path) -> None:
    spec = tables(scene, grid={"time.dt": [2e-3, -1.0], "material.drag": [0.0]})
    table = sweep(spec)
    assert list(table.column("status")) == ["done", "failed"]
    assert "time.dt: must be greater than 0" in table.column("reason")[1]
    with pytest.raises(ConfigError, match=r"time\.dt: must be greater than 0"):
        sweep(tables(scene, grid={"time.dt": [-1.0]}))


def test_a_member_may_run_out_of_time_and_is_tried_again(scene: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = tables(scene, time_limit=1e-9)
    assert sweep(spec).count("out of time") == 6
    assert sweep({**spec, "time_limit": 60.0}).count("done") == 6


def test_samples_depend_on_their_seed_alone(scene: Path) -> None:
    box = {"material.drag": {"low": 0.01, "high": 1.0, "scale": "log"}}
    for method in ("sobol", "latin_hypercube", "random"):
        sample = {"method": method, "count": 5, "over": box}
        one, two = [
            sweep(tables(scene, grid={}, sample=sample), collect=True).column("material.drag") for _ in range(2)
        ]
        np.testing.assert_array_equal(one, two)
        assert len(one) == 5 and one.min() >= 0.01 and one.max() <= 1.0


@pytest.mark.parametrize("do", ["run", "gradient"])
def test_members_that_share_launches_have_the_results_that_they_have_alone(
    tmp_path: Path, do: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them has no drag, and other kernels; one is no valid scene; one blows up."""
    grid = {"material.drag": [0.0, 0.1, 0.2, 0.3, -1.0, 0.4], "environment.gravity": [[1.0], [1e300]]}
    path = oscillator_file(tmp_path)
    launches: list[int] = []
    stack = batches.stack

    def noted(setups: Any) -> Any:
        launches.append(len(setups))
        return stack(setups)

    monkeypatch.setattr(batches, "stack", noted)
    done = []
    for folder, together, most in (("alone", 1, 1), ("launch", None, 8), ("three", 3, 3)):
        spec = tables(path, folder, do=do, grid=grid, engine={"kind": "serial", "together": together})
        launches.clear()
        table = sweep(spec)
        assert table.count("done") == 5 and table.count("failed") == 7
        assert max(launches) == most
        done.append(spec)
    assert_same_table(done[1], done[0])
    assert_same_table(done[2], done[0])


def test_a_launch_has_as_many_members_as_fit_into_memory(scene: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = batches.launch_bytes(load_scene(scene))
    monkeypatch.setattr(work, "measure_free", lambda: int(2.5 * one / work.PART_OF_MEMORY))
    launches: list[int] = []
    together = work.simulate_together

    def noted(scenes: Any, *rest: Any, **options: Any) -> Any:
        launches.append(len(scenes))
        return together(scenes, *rest, **options)

    monkeypatch.setattr(work, "simulate_together", noted)
    sweep(tables(scene, grid={"material.drag": [0.1, 0.2, 0.3, 0.4, 0.5]}))
    assert launches == [2, 2, 1]


def test_a_member_with_many_slopes_has_their_norm_in_the_table_and_all_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "row.toml"
    text = SIMULATION.replace("[[0.2]]", str([[0.2 + 0.1 * place] for place in range(20)]))
    unknown = f'[unknowns.start]\nparameter = "position"\nentries = {list(range(20))}\n'
    loss = '[[loss.terms]]\nkind = "final_state"\nnodes = [0, 3]\naxis = 0\ntarget = 0.0\n'
    path.write_text(text + unknown + loss)
    table = sweep(tables(path, do="gradient", grid={"material.drag": [0.1, 0.2]}))
    gradient = np.load(Path(table.folders[1], work.GRADIENT))
    assert gradient.shape == (20,) and np.linalg.norm(gradient) == table.column("|d loss / d start|")[1] > 0


def test_processes_give_the_results_of_one_process(scene: Path) -> None:
    one, other = tables(scene), tables(scene, "others", engine={"kind": "processes", "workers": 2})
    sweep(one)
    sweep(other)
    assert_same_table(other, one)


def test_workers_that_are_killed_lose_no_member(scene: Path) -> None:
    """After every third member one of the two workers is killed, whatever it does."""
    spec = tables(scene, grid={"material.drag": {"low": 0.0, "high": 1.0, "count": 12}}, attempts=10)
    quiet = tables(scene, "quiet", grid=spec["grid"])
    sweep(quiet)
    engine, killed = Processes(2), 0

    def kill(done: int, running: int, bad: int, members: int) -> None:
        nonlocal killed
        if running and done // 3 > killed:
            for process in list(engine._pools[killed % 2]._processes.values()):
                assert process.pid is not None
                os.kill(process.pid, signal.SIGKILL)
            killed += 1

    try:
        table = sweep(spec, engine=engine, in_flight=2, on_progress=kill)
    finally:
        engine.shutdown()
    assert killed >= 3 and table.count("done") == 12
    assert_same_table(spec, quiet)


def test_two_sweeps_at_once_do_no_member_twice(scene: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads, whose members wait for each other's locks, stand for two processes."""
    done: list[str] = []
    lock = threading.Lock()

    def slow(jobs: list[member.Job]) -> Iterator[tuple[member.Job, member.Row]]:
        for job in jobs:
            with lock:
                done.append(job.folder)
            time.sleep(0.05)
            yield job, member.Row("done", values={"x": 1.0})

    monkeypatch.setattr(work, "do_jobs", slow)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(sweep, [tables(scene), tables(scene)]))
    assert [table.count("done") for table in found] == [6, 6]
    assert sorted(done) == sorted(set(done)) and len(done) == 6


@pytest.mark.parametrize(
    ("engine", "package"),
    [
        ({"kind": "dask", "workers": 1, "options": {"dashboard_address": None}}, "distributed"),
        ({"kind": "slurm", "options": {"cluster": "local", "timeout_min": 2}}, "submitit"),
    ],
)
def test_a_cluster_gives_the_same_table(scene: Path, engine: dict[str, Any], package: str) -> None:
    pytest.importorskip(package)
    grid = {"material.drag": [0.0, 0.5]}
    one, other = tables(scene, grid=grid), tables(scene, "cluster", grid=grid, engine=engine)
    sweep(one)
    sweep(other)
    assert_same_table(other, one)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[grid]\nx = []\n", "sweep.toml:4: grid.x: an axis has one value or more; found []"),
        ("[grid]\nx = {low = 2.0, high = 1.0}\n", "grid.x.high: must be more than low, 2; found 1.0"),
        ('[grid]\nx = {low = 0.0, high = 1.0, scale = "log"}\n', "grid.x.low: must be positive for equal factors"),
        ("[zip]\nx = [1, 2]\ny = [1]\n", 'zip: its axes have one length; found {"x": 2, "y": 1}'),
        ("[grid]\nx = [1]\n[zip]\nx = [2]\n", 'grid: a key varies in one place; found ["x"]'),
        ("", "grid: a sweep varies a key of its scene"),
        ("tasks = 3\n", "tasks: unknown section; found 3"),
        ('[engine]\nkind = "cloud"\n', "engine.kind: must be one of 'processes', 'serial', 'dask' or 'slurm'"),
    ],
)
def test_an_invalid_sweep_is_refused_with_line_and_key(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "sweep.toml"
    path.write_text(f'scene = "swing.toml"\nfolder = "out"\n{text}')
    with pytest.raises(ConfigError) as raised:
        load_sweep(path)
    assert message in str(raised.value)


def test_more_members_than_can_be_listed_are_refused(scene: Path) -> None:
    axis = {"low": 0.0, "high": 1.0, "count": 1000}
    with pytest.raises(ConfigError, match=r"grid\.a: a sweep has at most 100000 members, .* 1e\+06"):
        make_sweep(tables(scene, grid={"a": axis, "b": axis}))
    sample = {"count": 2**31 - 1, "over": {"a": {"low": 0.0, "high": 1.0}}}
    with pytest.raises(ConfigError, match=r"sample\.count: a sweep has at most 100000 members"):
        make_sweep(tables(scene, grid={}, sample=sample))


@pytest.mark.parametrize("name", ["swing\0.toml", "~nobody of this name/swing.toml"])
def test_a_scene_that_no_path_leads_to_is_refused_as_one_that_is_missing(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the scene file must"):
        sweep(tables(Path(name), str(tmp_path / "out")))


@pytest.mark.parametrize("content", ["[]", "1", '{"status": "done"}', '{"status": 1, "reason": "", "values": {}}'])
def test_a_damaged_result_of_a_member_is_no_result(tmp_path: Path, content: str) -> None:
    (tmp_path / member.RESULT).write_text(content)
    assert member.read_row(tmp_path) is None


def test_a_folder_that_cannot_have_its_name_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be a folder that can be read; found File name too long"):
        member.read_row(tmp_path / ("x" * 4000))
