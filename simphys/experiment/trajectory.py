"""The trajectory of a set-up: a rollout that holds what its loss and its observations need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from simphys import rollout
from simphys.rollout import Mode, Trajectory
from simphys.rollout.run import Progress

from . import misfits
from .setup import Setup


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


def stream_states(
    setup: Setup, *, block: int, on_progress: Progress | None = None
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Simulate the horizon without gradients, in blocks of steps: see `rollout.stream`."""
    return rollout.stream(
        setup.model,
        setup.params,
        setup.state,
        steps=setup.steps,
        block=block,
        control=setup.control(),
        deterministic=setup.config.runtime.deterministic,
        on_progress=on_progress,
    )
