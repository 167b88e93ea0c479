"""The trajectory of a set-up: a rollout that holds what its loss and its observations need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from simphys import rollout
from simphys.autograd.errors import InputError
from simphys.rollout import Mode
from simphys.rollout.run import Progress

from . import misfits
from .setup import Setup
from .several import Trajectories, make_batch, split_batch

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
) -> Any:
    """Simulate the horizon: see `Scene.rollout`."""
    setup.start_runtime()
    chosen = setup.config.runtime
    budget: dict[str, Any] = {}
    if setup.experiments:
        return _compute_trajectories(setup, params, state, mode, only_seen, on_progress)
    if mode == "fused" and (chosen.limited or (only_seen and not misfits.terms_of(setup, "running_sum"))):
        budget = {
            "memory": chosen.memory,
            "keep": misfits.kept_steps(setup),
            "fields": misfits.seen_fields(setup),
            "running": misfits.running_loss(setup),
        }
    found = rollout.rollout(
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
    return replace(found, source=setup)


def _compute_trajectories(
    setup: Setup, params: Any, state: Any, mode: Mode, only_seen: bool, on_progress: Progress | None
) -> Trajectories:
    """Simulate several experiments, as a batch if they can run as one."""
    if params is not None or state is not None:
        remedy = "Simulate one of scene.experiments with them."
        raise InputError("Scene.rollout", "experiments have parameters and states of their own", "others", remedy)
    parts = setup.experiments
    batch = make_batch(parts)
    if batch is None:
        return tuple(
            [compute_trajectory(part, mode=mode, only_seen=only_seen, on_progress=on_progress) for part in parts]
        )
    budget: dict[str, Any] = {}
    if mode == "fused" and only_seen and not setup.config.loss.terms:
        kept = [steps for part in parts if not isinstance(steps := misfits.kept_steps(part), str)]
        fields = set().union(*[misfits.seen_fields(part) or set() for part in parts])
        budget = {"keep": np.unique(np.concatenate(kept)), "fields": fields} if kept else {}
    found = rollout.rollout(
        setup.model,
        mode=mode,
        deterministic=setup.config.runtime.deterministic,
        on_progress=on_progress,
        **batch,
        **budget,
    )
    return split_batch(found, parts)


def with_horizon(setup: S, steps: int) -> S:
    """Change the horizon of a set-up; observations beyond it are left out. Errors: InputError."""
    if np.asarray(steps).dtype.kind not in "iu" or steps < 1:
        raise InputError("Scene.rollout, steps", "is a number of time steps, at least 1", steps, "Pass such a number.")
    if setup.experiments:
        setup = replace(setup, experiments=tuple([with_horizon(part, steps) for part in setup.experiments]))
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
