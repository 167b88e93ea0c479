"""The work of a worker: members of a sweep, each by itself, or those of one shape in one launch."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from simphys.app.assessment import assess
from simphys.app.identification import Identification
from simphys.app.workflow import identify, simulate_together
from simphys.autograd.errors import InputError
from simphys.experiment import batches
from simphys.experiment.family import Family
from simphys.experiment.objective import SceneObjective
from simphys.experiment.scene import Scene
from simphys.optimize import FailedTrial
from simphys.record import Recording
from simphys.rollout import BlowUp
from simphys.rollout.budget import measure_free

from .member import RESULT, Job, Row, Task, locked, read_row, replace_text
from .scratch import in_scratch
from .table import ERROR, TRUTH
from .walltime import is_over

FEW = 16
"""Largest number of entries of a field, or of an unknown, that are listed one by one."""
GRADIENT = "gradient.npy"
"""File in the folder of a member with the whole gradient, where the table has norms."""
MOST_TOGETHER = 256
"""Largest number of members in a launch."""
PART_OF_MEMORY = 0.25
"""Part of the free memory that a launch may take."""

Values = dict[str, float | str]
Array = np.ndarray[Any, Any]


class OutOfTime(Exception):
    """A member takes longer than it may; a fit goes on from there when the sweep is run again."""


def do_members(task: Task) -> list[Row | None]:
    """Do what is asked with members, or return the results of whoever has done them.

    Those of one shape share a launch, where they are simulated or differentiated. None for a member that somebody else
    is doing, unless the task waits for it.
    """
    rows: dict[str, Row | None] = {job.folder: None for job in task.jobs}
    with ExitStack() as locks:
        missing = set()
        for folder in sorted(rows):  # in one order, so that no two wait for each other
            os.makedirs(folder, exist_ok=True)
            if locks.enter_context(locked(folder, wait=task.waits)):
                rows[folder] = read_row(folder)
                if rows[folder] is None:
                    missing.add(folder)
        for job, row in do_jobs([job for job in task.jobs if job.folder in missing]):
            rows[job.folder] = row
            if row.is_final:
                content = {"status": row.status, "reason": row.reason, "values": row.values, "overrides": job.overrides}
                replace_text(Path(job.folder, RESULT), json.dumps({**content, "seconds": row.seconds}, indent=1))
    return list(rows.values())


def do_jobs(jobs: Sequence[Job]) -> Iterator[tuple[Job, Row]]:
    """Do what is asked with members, and yield the row of each as soon as it is known."""
    loaded: dict[Any, list[tuple[Job, Scene]]] = {}
    family: Family | None = None
    for job in jobs:
        try:
            if family is None:
                family = Family(job.scene, job.overrides)
            scene = family.load(job.overrides)
            shares = job.do in _LAUNCHES and job.time_limit is None and batches.is_batchable(scene)
            key = (job.do, batches.shape_key(scene)) if shares else job.folder
        except (InputError, MemoryError) as error:
            yield job, _row_of_error(error, job)
            continue
        loaded.setdefault(key, []).append((job, scene))
    for group in loaded.values():
        size = _launch_size(group[0][1]) if len(group) > 1 else 1
        for first in range(0, len(group), size):
            yield from _do_together(group[first : first + size])


def _launch_size(scene: Scene) -> int:
    """Largest number of members like this one in a launch, by the memory that is free."""
    try:
        room = PART_OF_MEMORY * measure_free()
    except InputError:  # unknown
        return MOST_TOGETHER
    return int(np.clip(room // max(batches.launch_bytes(scene), 1), 1, MOST_TOGETHER))


def _do_together(group: Sequence[tuple[Job, Scene]]) -> Iterator[tuple[Job, Row]]:
    """Do members in one launch; if one of them fails, each by itself, which gives the same bits."""
    jobs, scenes = [job for job, _ in group], [scene for _, scene in group]
    began = time.perf_counter()
    try:
        _watch(jobs[0])()
        with in_scratch(jobs) as local:
            if jobs[0].do in _LAUNCHES:
                found = _LAUNCHES[jobs[0].do](scenes, local)
            else:
                found = [_JOBS[jobs[0].do](scenes[0], local[0])]
    except (BlowUp, InputError, FailedTrial, MemoryError, OutOfTime) as error:
        if len(group) == 1:
            yield jobs[0], replace(_row_of_error(error, jobs[0]), seconds=time.perf_counter() - began)
            return
        for one in group:
            yield from _do_together([one])
        return
    seconds = (time.perf_counter() - began) / len(group)
    for job, values in zip(jobs, found, strict=True):
        yield job, Row("done", values=values, seconds=seconds)


def _row_of_error(error: Exception, job: Job) -> Row:
    if isinstance(error, OutOfTime):
        return Row("out of time", str(error))
    return Row("out of memory" if isinstance(error, MemoryError) else "failed", str(error))


def _optimize(scene: Scene, job: Job) -> Values:
    watch = _watch(job)
    return _describe(identify(scene, folder=job.folder, resume=True, on_iteration=lambda _: watch()))


def _assess(scene: Scene, job: Job) -> Values:
    """Assess with the least number of starts and of recoveries: more would depend on the time that there is."""
    watch = _watch(job)
    fit = assess(
        scene,
        folder=job.folder,
        resume=True,
        seconds=0.0,
        on_progress=lambda part, until: watch(),
        on_iteration=lambda _: watch(),
    )
    return _describe(fit) | {f"verdict on {each.name}": each.verdict for each in fit.criteria}


def _describe(fit: Identification) -> Values:
    found: Values = {
        "search": fit.result.status,
        "verdict": fit.verdict,
        "loss": float(fit.result.loss),
        "iterations": fit.result.iterations,
    }
    for row in fit.unknowns:
        found[row.label] = row.value
        found[row.label + ERROR] = row.standard_error
    for known in fit.truth_errors:
        labels = [known.label] if len(known.truth) == 1 else [f"{known.label}[{i}]" for i in range(len(known.truth))]
        found |= {label + TRUTH: value for label, value in zip(labels, known.truth, strict=True)}
    return found | {f"RMSE of {name}": float(value) for name, value in fit.rmse.items()}


def _run(scenes: Sequence[Scene], jobs: Sequence[Job]) -> list[Values]:
    watch = _watch(jobs[0])
    folders = [job.folder for job in jobs]
    recordings = simulate_together(scenes, folders, on_progress=lambda step, steps: watch())
    return [_last_state(recording) for recording in recordings]


def _last_state(recording: Recording) -> Values:
    found: Values = {}
    for group in ("particles/nodes", "fields"):
        for name in recording.keys(group):
            path = f"{group}/{name}/value"
            if path not in recording:
                continue
            last = np.asarray(recording.row(path, recording.shape(path)[0] - 1), float)
            if last.size <= FEW:
                found |= {f"{name}{list(at) if at else ''}": float(x) for at, x in np.ndenumerate(last)}
            else:
                found[f"mean of {name}"], found[f"rms of {name}"] = float(last.mean()), float(np.sqrt((last**2).mean()))
    return found


def _gradient(scenes: Sequence[Scene], jobs: Sequence[Job]) -> list[Values]:
    objectives = batches.make_objectives(scenes)
    if batches.is_batchable(scenes[0]):
        found = batches.values_and_gradients(objectives)
    else:
        found = [objectives[0].value_and_gradient(objectives[0].start)]
    pairs = zip(objectives, found, jobs, strict=True)
    return [_describe_gradient(objective, *values, Path(job.folder)) for objective, values, job in pairs]


def _describe_gradient(objective: SceneObjective[Scene], loss: float, gradient: Array, folder: Path) -> Values:
    """List loss and slopes; of an unknown with many values the norm, and the whole gradient in a file."""
    found: Values = {"loss": loss}
    for block in objective.unknowns.blocks:
        slopes = gradient[block.where]
        if slopes.size > FEW:
            found[f"|d loss / d {block.label}|"] = float(np.linalg.norm(slopes))
        else:
            labels = [block.label] if slopes.size == 1 else [f"{block.label}[{at}]" for at in range(slopes.size)]
            found |= {f"d loss / d {label}": float(slope) for label, slope in zip(labels, slopes, strict=True)}
    if any([block.entries.size > FEW for block in objective.unknowns.blocks]):
        np.save(folder / GRADIENT, gradient)
    return found


_JOBS: dict[str, Callable[[Scene, Job], Values]] = {"optimize": _optimize, "assess": _assess}
"""What is done with one member at a time."""
_LAUNCHES: dict[str, Callable[[Sequence[Scene], Sequence[Job]], list[Values]]] = {"run": _run, "gradient": _gradient}
"""What is done with members of one shape in one launch."""


def _watch(job: Job) -> Callable[[], None]:
    """A function that raises OutOfTime once a member has taken as long as it may, or the sweep has to stop."""
    end = None if job.time_limit is None else time.monotonic() + job.time_limit

    def look() -> None:
        if end is not None and time.monotonic() > end:
            raise OutOfTime(f"longer than {job.time_limit:g} s")
        if is_over(job.ends):
            raise OutOfTime("the sweep had to stop")

    return look
