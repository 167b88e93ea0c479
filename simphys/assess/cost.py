"""Cost of a fit: memory for backward, disk and time, from one evaluation of each kind at the start."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

from simphys import rollout
from simphys.experiment.objective import SceneObjective
from simphys.experiment.setup import Setup
from simphys.rollout.budget import format_size

from .criteria import Criterion

LONG_FIT = 3600.0
"""Time of a fit [s] that is worth a word."""
LARGE_RUN = 10 << 30
"""Size of a run on disk [B] that is worth a word."""
STAGES = 8
"""Stages of a growing horizon in this estimate; a chaotic motion may take more."""


@dataclass(frozen=True)
class Cost:
    """Cost of a fit that uses all of its iterations."""

    memory: int
    """Memory for the states of one motion and their adjoints [B]."""
    disk: int
    """States along time and their adjoints, and the residuals and Jacobians of all iterations while it runs [B]."""
    seconds: float
    """Time of its evaluations [s], without compilation."""


def estimate_cost(objective: SceneObjective[Any]) -> Cost:
    """Estimate the cost of a fit; evaluates residuals and Jacobian twice, first to compile.

    Errors: optimize.FailedTrial for a start that blows up.
    """
    chosen = objective.scene.config.optimizer
    least_squares = chosen.method == "least_squares"
    for _ in range(2):
        began = time.perf_counter()
        if least_squares:
            objective.residuals(objective.start)
            objective.jacobian(objective.start)
        else:
            objective.value_and_gradient(objective.start)
        once = time.perf_counter() - began
    stages = len(objective.scene.config.loss.lowpass or [0]) * (STAGES if chosen.horizon == "growing" else 1)
    iterations = chosen.iterations * stages
    rows = sum([part.observations.values.size for part in objective.scene.parts if part.observations is not None])
    states = sum([_state_bytes(part) for part in objective.scene.parts])
    evaluations = 8 * iterations * rows * (1 + objective.start.size) if least_squares else 0
    memory = sum([_memory(part) for part in objective.scene.parts])
    return Cost(memory, 2 * states + evaluations, iterations * once)


def judge_cost(found: Cost) -> Criterion:
    """Judge the cost of a fit."""
    words = (
        f"memory {format_size(found.memory)}, disk up to {format_size(found.disk)}, time {found.seconds:.2g} s "
        "if all iterations are used"
    )
    if found.seconds > LONG_FIT or found.disk > LARGE_RUN:
        remedy = "Raise time.dt or output.every, fit fewer samples, or lower optimizer.iterations."
        return Criterion("cost", found.seconds, "doubtful", words, remedy)
    return Criterion("cost", found.seconds, "passed", words)


def _state_bytes(part: Setup) -> int:
    """Size of the recorded states of one experiment [B]."""
    number = part.state.tensors()[0].dtype.itemsize
    chosen = part.config.output.fields
    sizes = [math.prod(shape) for name, shape in part.moving_shapes().items() if chosen is None or name in chosen]
    return int(number * sum(sizes) * (part.steps // part.config.output.every + 1))


def _memory(part: Setup) -> int:
    found = rollout.plan(
        part.model,
        part.params,
        part.state,
        steps=part.steps,
        control=part.control(),
        memory=part.config.runtime.memory,
        deterministic=part.config.runtime.deterministic,
    )
    return found.predicted_bytes
