"""Rollouts: a simulator's steps over a horizon, as a trajectory that is part of the graph.

`rollout` is the one entry. Three ways lead through the same physics: `fused`, one node for the horizon, fast, within a
memory budget; `step`, one fused node a step; `nested`, one node a sub-step, to read and to check against. `stream` runs
a horizon forward whose states do not fit into memory.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any, Literal, get_args

from ..autograd import Tensor
from ..autograd.errors import InputError
from ..simulator import Model
from . import budget
from .fused import Request, fused
from .inputs import Keep, kept_fields, kept_steps, read_inputs
from .nested import nested
from .plan import Plan
from .run import Progress
from .stream import stream
from .trajectory import LIMIT, BlowUp, Running, StateAdjoint, Trajectory

__all__ = ["BlowUp", "Mode", "Plan", "StateAdjoint", "Trajectory", "plan", "rollout", "stream"]

Mode = Literal["fused", "step", "nested"]


def rollout(
    model: Model,
    params: Any,
    state: Any,
    *,
    steps: int,
    control: Tensor | None = None,
    mode: Mode = "fused",
    memory: str | float = "all",
    keep: Keep = "all",
    fields: Collection[str] | None = None,
    running: Running | None = None,
    keep_adjoint: bool = False,
    deterministic: bool = False,
    limit: float = LIMIT,
    on_progress: Progress | None = None,
) -> Trajectory:
    """Advance `state` by `steps` time steps of `model`; gradients flow to state, parameters and control.

    Every field of `params` and `state` may have a leading batch axis B; `control` is [T, *shape] or [B, T, *shape],
    T = steps. All members run in one launch, and gradients of what they share are summed.
    `keep` says which states the trajectory holds: "all", "final", or step numbers, and `fields` which fields of these,
    all by default; the others have no rows there (in mode "fused"), which saves memory where little is looked at.
    `running(states, steps)` gives a scalar from the State of some rows along time; the trajectory's `running` is its
    sum over all steps but the start, for which nothing has to be kept.
    `memory` is what backward's storage may take: "all" (no limit), "2GB", a fraction of what is free (0.5), or bytes.
    What does not fit is computed again: see `plan`. (In the other modes the graph holds everything.)
    `keep_adjoint` stores the adjoint of the state at every step at backward. `deterministic`: results do not depend on
    the number of threads. `on_progress(step, steps)` is called now and then.
    Errors: InputError for shapes, steps and budgets that do not fit; BlowUp where the motion leaves +-`limit`.
    """
    if mode not in get_args(Mode):
        raise InputError("rollout, mode", "it is fused, step or nested", mode, "Pass one of these.")
    inputs = read_inputs(model, params, state, control, steps)
    kept = kept_steps(keep, steps)
    if mode == "fused":
        adjoint = StateAdjoint() if keep_adjoint else None
        memory_bytes = budget.parse(memory)
        request = Request(inputs, kept, memory_bytes, running, adjoint, deterministic, limit, on_progress)
        request.fields = kept_fields(fields, inputs)
        return fused(request)
    if keep_adjoint or budget.parse(memory) is not None:
        remedy = "Use mode='fused'."
        raise InputError("rollout", "memory budgets and kept adjoints are the fused rollout's", mode, remedy)
    step = model.step if mode == "nested" else partial(_fused_step, model, deterministic)
    return nested(inputs, step, kept, running, limit, on_progress)


def _fused_step(model: Model, deterministic: bool, params: Any, state: Any, control: Tensor | None) -> Any:
    """One step as one node; whether it is sound is for the caller to see."""
    one = None if control is None else control.reshape(1, *control.shape)
    inputs = read_inputs(model, params, state, one, 1)
    return fused(Request(inputs, kept_steps("final", 1), None, None, None, deterministic, None, None)).final


def plan(
    model: Model,
    params: Any,
    state: Any,
    *,
    steps: int,
    control: Tensor | None = None,
    memory: str | float = "all",
    keep: Keep = "all",
    fields: Collection[str] | None = None,
    running: Running | None = None,
    keep_adjoint: bool = False,
    deterministic: bool = False,
) -> Plan:
    """What the same call of `rollout` would take: its peak memory [B] and the steps that backward computes again.

    Nothing is simulated. The gradients are those of the inputs that require one; of all, if none does.
    Errors: InputError for a budget in which the rollout does not fit, with the least that would.
    """
    inputs = read_inputs(model, params, state, control, steps)
    adjoint = StateAdjoint() if keep_adjoint else None
    request = Request(
        inputs, kept_steps(keep, steps), budget.parse(memory), running, adjoint, deterministic, LIMIT, None
    )
    request.fields = kept_fields(fields, inputs)
    needs = [x.requires_grad for x in inputs.tensors()]
    return request.planned(needs if any(needs) else [True] * len(needs))[1]
