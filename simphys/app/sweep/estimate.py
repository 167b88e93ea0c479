"""Memory and time of a sweep before it is done, from what is done of it or from a trial of its first member."""

from __future__ import annotations

import statistics
import time
from collections import deque
from dataclasses import dataclass

from simphys.assess.cost import estimate_cost
from simphys.autograd.errors import InputError
from simphys.experiment import batches
from simphys.experiment.scene import Scene, load_scene
from simphys.optimize import FailedTrial
from simphys.runs.motion import count_block_steps

from .member import Job, Row


@dataclass(frozen=True)
class Estimate:
    """Cost of the members of a sweep that are not done yet."""

    memory: int | None
    """States and adjoints of a member [B]; None where that is not known."""
    seconds: float | None
    """Time of a member [s]; None where the first one fails."""
    basis: str
    """Source of the time."""


def estimate(jobs: list[Job], rows: list[Row | None]) -> Estimate:
    """Estimate the cost of a member. Without a member that is done, the first is tried, and its kernels compiled."""
    known = [row.seconds for row in rows if row is not None and row.status == "done" and row.seconds is not None]
    memory = seconds = None
    fits = jobs[0].do in ("optimize", "assess")
    try:
        scene = load_scene(jobs[0].scene, jobs[0].overrides)
        if fits and not known:
            cost = estimate_cost(scene.objective())
            memory, seconds = cost.memory, cost.seconds
        elif batches.is_batchable(scene):
            memory = batches.launch_bytes(scene)
        if not fits and not known:
            seconds = _try(scene, jobs[0].do)
    except (InputError, FailedTrial):  # the sweep makes a row of it
        pass
    if known:
        return Estimate(memory, statistics.fmean(known), f"the mean of {len(known)} that are done")
    basis = "if all iterations are used" if fits else "of the first, computed alone"
    return Estimate(memory, seconds, basis)


def _try(scene: Scene, do: str) -> float:
    """Time of a gradient, or of a motion, the second time."""
    objective = scene.objective() if do == "gradient" else None
    for _ in range(2):  # the first compiles
        began = time.perf_counter()
        if objective is not None:
            objective.value_and_gradient(objective.start)
        else:
            deque(scene.stream(block=count_block_steps(scene)), maxlen=0)
    return time.perf_counter() - began
