"""The trajectory of a set-up: a rollout that holds what its loss and its observations need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from simphys import rollout
from simphys.autograd.errors import InputError
from simphys.rollout import Mode, Trajectory
from simphys.rollout.run import Progress

from . import misfits
from .setup import Setup

S = TypeVar("S", bound=Setup)


def compute_trajectory(
    setup: Setup,
    params: Any = None,
    state: Any = None,
    *,
    mode: Mode = "fused",
    keep_adjoint: bool = False,
    only_seen: bool = False,
    on_progress: Progress | None = None,
) -> Trajectory:
    """Simulate the horizon: see `Scene.rollout`."""
    setup.start_runtime()
    chosen = setup.config.runtime
    budget: dict[str, Any] = {}
    if mode == "fused" and (chosen.limited or (only_seen and not misfits.terms_of(setup, "running_sum"))):
        budget = {
            "memory": chosen.memory,
            "keep": misfits.kept_steps(setup),
            "fields": misfits.seen_fields(setup),
            "running": misfits.running_loss(setup),
        }
    return rollout.rollout(
        setup.model,
        params or setup.params,
        state or setup.state,
        steps=setup.steps,
        control=setup.control(),
        mode=mode,
        keep_adjoint=keep_adjoint,
        deterministic=chosen.deterministic,
        on_progress=on_progress,
        **budget,
    )


def with_horizon(setup: S, steps: int) -> S:
    """Change the horizon of a set-up; observations beyond it are left out. Errors: InputError."""
    if np.asarray(steps).dtype.kind not in "iu" or steps < 1:
        raise InputError("Scene.rollout, steps", "is a number of time steps, at least 1", steps, "Pass such a number.")
    seen = setup.observations
    if seen is not None and steps < setup.steps:
        seen = seen.until(steps * setup.dt)
    return replace(setup, steps=int(steps), observations=seen, partial=setup.partial or steps != setup.steps)


def stream_states(
    setup: Setup, *, block: int, on_progress: Progress | None = None
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Simulate the horizon without gradients, in blocks of steps: see `rollout.stream`."""
    setup.start_runtime()
    blocks = rollout.stream(
        setup.model,
        setup.params,
        setup.state,
        steps=setup.steps,
        block=block,
        control=setup.control(),
        deterministic=setup.config.runtime.deterministic,
        on_progress=on_progress,
    )
    return _in_its_settings(setup, blocks)


def _in_its_settings(setup: Setup, blocks: Iterator[Any]) -> Iterator[Any]:
    """Compute each block in the settings of the scene, whatever was put in force in between."""
    for block in blocks:
        yield block
        setup.start_runtime()
