"""A sweep from its file to its table."""

from __future__ import annotations

import hashlib
import json
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from simphys._version import __version__
from simphys.autograd.kernels.compiler import chosen as chosen_compiler
from simphys.scenefile import ConfigError, load, to_dict

from ..bars import bar_of_members
from .engines import Engine, InProcess, is_lost, open_engine, wait_for_some
from .member import Job, Row, Task, read_row
from .spec import SweepFile, Values, load_sweep, make_sweep, override_of
from .table import SweepTable
from .walltime import is_over
from .work import do_members

Progress = Callable[[int, int, int, int], None]
"""Function of the numbers of members: done, running, without a result at the end, and all."""


def sweep(
    sweep: str | Path | Mapping[str, Any],
    *,
    engine: Engine | None = None,
    in_flight: int | None = None,
    collect: bool = False,
    on_progress: Progress | None = None,
) -> SweepTable:
    """Do what is missing of a sweep, and return its table, which is written to its folder, too.

    Args:
        sweep: the path of a sweep file, or its content as nested tables.
        engine: any executor, in place of that of the file: a `concurrent.futures.Executor`, a dask client's
            `get_executor()`, `mpi4py.futures.MPIPoolExecutor()`.
        in_flight: number of members that are given to the engine at once; by default two for each of its workers.
        collect: do nothing, and only make the table of what there is.

    Errors: ConfigError for an invalid sweep, or one whose first member is no valid scene. A member that fails is a row.
    """
    spec = make_sweep(sweep) if isinstance(sweep, Mapping) else load_sweep(sweep)
    on_progress = on_progress or bar_of_members()
    return run_sweep(spec, engine=engine, in_flight=in_flight, collect=collect, on_progress=on_progress)


def run_sweep(
    spec: SweepFile,
    *,
    engine: Engine | None = None,
    in_flight: int | None = None,
    collect: bool = False,
    on_progress: Progress | None = None,
) -> SweepTable:
    """Do what is missing of a sweep that was read, see `sweep`."""
    members = list(spec.members())
    jobs = list_jobs(spec, members)
    ends = None if spec.engine.walltime is None else time.time() + spec.engine.walltime
    if ends is not None:
        jobs = [replace(job, ends=ends) for job in jobs]
    folder = Path(spec.folder)
    rows = [read_row(job.folder) for job in jobs]
    if not collect:
        folder.mkdir(parents=True, exist_ok=True)
        count = in_flight or 2 * spec.engine.workers
        if engine is not None:
            _do_missing(spec, jobs, rows, engine, count, on_progress)
        elif any([row is None for row in rows]):
            with open_engine(spec.engine, folder) as opened:
                _do_missing(spec, jobs, rows, opened, count, on_progress)
    table = SweepTable(tuple(spec.keys), tuple(members), tuple(rows), tuple([job.folder for job in jobs]))
    if folder.is_dir():
        table.write(folder)
    return table


def list_jobs(spec: SweepFile, members: list[Values]) -> list[Job]:
    """The jobs of all members. Errors: ConfigError if the first one is no valid scene."""
    valid = load(spec.scene, [*spec.overrides, *[override_of(key, value) for key, value in members[0].items()]])
    with suppress(ConfigError):  # of a scene that lacks what its members have
        valid = load(spec.scene, spec.overrides)
    shared = list(spec.overrides)
    if valid.runtime.threads == "auto":  # else results would depend on the cores of each machine
        shared.insert(0, override_of("runtime.threads", spec.engine.threads))
    common = _digest(_with_contents(to_dict(valid)), set(spec.keys))
    versions = [__version__, chosen_compiler(), spec.do, *shared]
    options: dict[str, Any] = {"time_limit": spec.time_limit, "scratch": spec.engine.scratch}
    jobs = []
    for values in members:
        overrides = [override_of(key, value) for key, value in values.items()]
        name = hashlib.sha256(json.dumps([common, versions, sorted(overrides)]).encode()).hexdigest()[:24]
        folder = str(Path(spec.folder, "members", name[:2], name))
        jobs.append(Job(spec.scene, (*shared, *overrides), spec.do, folder, **options))
    return jobs


def _digest(scene: dict[str, Any], varied: set[str]) -> str:
    """Hash of a scene without what members differ in, and without where its run goes."""
    scene = {**scene, "output": {k: v for k, v in scene.get("output", {}).items() if k != "folder"}}
    for key in varied:
        *path, last = key.split(".")
        table: Any = scene
        for part in path:
            table = table[int(part)] if isinstance(table, list) else table.get(part, {})
        if isinstance(table, dict):
            table.pop(last, None)
    return hashlib.sha256(json.dumps(scene, sort_keys=True).encode()).hexdigest()


def _with_contents(value: Any) -> Any:
    """Replace the paths of files by hashes of what they hold, so that a scene may move with its files."""
    if isinstance(value, dict):
        return {key: _with_contents(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_contents(item) for item in value]
    if isinstance(value, str) and value.startswith("/") and Path(value).is_file():
        return hashlib.sha256(Path(value).read_bytes()).hexdigest()
    return value


def _do_missing(
    spec: SweepFile,
    jobs: list[Job],
    rows: list[Row | None],
    engine: Engine,
    in_flight: int,
    on_progress: Progress | None,
) -> None:
    """Do the members without a result, at most `in_flight` tasks at once; those whose worker died are done again."""
    size = _task_size(spec, engine)
    missing = [number for number, row in enumerate(rows) if row is None]
    waiting = deque([_Given(tuple(missing[at : at + size])) for at in range(0, len(missing), size)])
    running: dict[Any, _Given] = {}
    done = len(rows) - len(missing)
    bad = sum([row is not None and row.status != "done" for row in rows])
    while waiting or running:
        if is_over(jobs[0].ends):
            waiting.clear()  # they are missing, and done when the sweep is run again
        while waiting and len(running) < in_flight:
            given = waiting.popleft()
            task = Task(tuple([jobs[number] for number in given.members]), waits=given.waits)
            running[engine.submit(do_members, task)] = given
        for future in wait_for_some(running):
            given = running.pop(future)
            found, again = _collect(future, given, spec.attempts)
            waiting.extend(again)
            for number, row in found.items():
                rows[number] = row
                bad += row.status != "done"
            done += len(found)
        if on_progress is not None:
            on_progress(done, sum([len(given.members) for given in running.values()]), bad, len(rows))


@dataclass(frozen=True, slots=True)
class _Given:
    """Members of a task, by their numbers."""

    members: tuple[int, ...]
    attempt: int = 1
    waits: bool = False


def _task_size(spec: SweepFile, engine: Engine) -> int:
    """Number of members of a task: many for this process, where they share launches, else one."""
    together = isinstance(engine, InProcess) and spec.do in ("run", "gradient") and spec.time_limit is None
    return spec.engine.together or (TOGETHER if together else 1)


def _collect(future: Any, given: _Given, attempts: int) -> tuple[dict[int, Row], list[_Given]]:
    """The rows of a task that is over, and what is to be given once more.

    Members of a worker that died go alone, so that one that kills its worker takes no other with it; members that
    somebody else is doing are waited for once there is nothing else to do.
    """
    try:
        rows = future.result()
    except Exception as error:
        lost = is_lost(error)
        if lost and given.attempt < attempts:
            return {}, [replace(given, members=(number,), attempt=given.attempt + 1) for number in given.members]
        reason = f"its worker died, {given.attempt} times" if lost else f"{type(error).__name__}: {error}"
        return dict.fromkeys(given.members, Row("lost" if lost else "error", reason)), []
    pairs = list(zip(given.members, rows, strict=True))
    busy = tuple([number for number, row in pairs if row is None])
    again = [replace(given, members=busy, waits=True)] if busy else []
    return {number: row for number, row in pairs if row is not None}, again


TOGETHER = 256
"""Number of members that this process takes at once, to simulate or differentiate them in one launch."""
