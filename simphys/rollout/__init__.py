"""Rollouts: simulate a number of time steps and return a trajectory that is part of the graph.

`rollout` is the entry point. It runs the same physics in one of three modes:

- "fused": one node for the whole horizon; fast, and within a memory budget;
- "step": one fused node per step;
- "nested": one node per sub-step; easy to read and to check the others against.

`stream` runs a horizon forward whose states do not fit into memory.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any, Literal, get_args

from ..autograd import Tensor
from ..autograd.errors import InputError
from ..simulator import Model
from . import budget
from .engine import engine_of
from .fused import Request, run_fused
from .inputs import Keep, read_inputs, resolve_fields, resolve_keep
from .nested import run_nested
from .plan import Plan
from .run import Progress, require_numbers
from .stream import stream
from .trajectory import LIMIT, BlowUp, Running, StateAdjoint, Trajectory

__all__ = ["BlowUp", "Mode", "Plan", "StateAdjoint", "Trajectory", "engine_of", "plan", "rollout", "stream"]

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
    T = steps. All batch members run in one launch; gradients of values that they share are summed over the batch.

    - `keep`: the states in the trajectory: "all", "final", or a list of step numbers.
    - `fields`: the fields of these states, all by default. In mode "fused" the others have no rows, to save memory.
    - `running(states, steps)`: a scalar loss of a State with some rows along time. The trajectory's `running` is its
      sum over all steps except the start; for that sum no states have to be kept.
    - `memory`: the memory for backward: "all" (no limit), "2GB", a fraction of the free memory (0.5), or bytes. States
      that do not fit are computed again: see `plan`. (In the other modes the graph holds everything.)
    - `keep_adjoint`: store the adjoint of the state at every step during backward.
    - `deterministic`: make results independent of the number of threads.
    - `limit`: the largest magnitude of a sound state.
    - `on_progress(step, steps)`: called now and then.

    Errors: InputError for shapes, steps and budgets that do not fit; BlowUp if the motion exceeds +-`limit`.
    """
    if mode not in get_args(Mode):
        raise InputError("rollout, mode", "it is fused, step or nested", mode, "Pass one of these.")
    inputs = read_inputs(model, params, state, control, steps)
    require_numbers(inputs)
    kept = resolve_keep(keep, steps)
    if mode == "fused":
        request = Request(
            inputs=inputs,
            keep=kept,
            fields=resolve_fields(fields, inputs),
            memory=budget.parse(memory),
            running=running,
            adjoint=StateAdjoint() if keep_adjoint else None,
            deterministic=deterministic,
            limit=limit,
            on_progress=on_progress,
        )
        return run_fused(request)
    if keep_adjoint or budget.parse(memory) is not None:
        raise InputError("rollout", "memory budgets and stored adjoints need mode 'fused'", mode, "Use mode='fused'.")
    step = model.step if mode == "nested" else partial(_fused_step, model, deterministic)
    return run_nested(inputs, step, kept, running, limit, on_progress)


def _fused_step(model: Model, deterministic: bool, params: Any, state: Any, control: Tensor | None) -> Any:
    """Run one step as one node. The caller checks that the new state is sound."""
    one = None if control is None else control.reshape(1, *control.shape)
    inputs = read_inputs(model, params, state, one, 1)
    keep, fields = resolve_keep("final", 1), resolve_fields(None, inputs)
    return run_fused(Request(inputs=inputs, keep=keep, fields=fields, deterministic=deterministic, limit=None)).final


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
    """Predict the cost of the same call of `rollout`: its peak memory [B] and the steps that backward computes again.

    Nothing is simulated. Gradients are those of the inputs that require one, or of all inputs if none does.
    Errors: InputError if the rollout does not fit into the budget, with the smallest budget that would do.
    """
    inputs = read_inputs(model, params, state, control, steps)
    request = Request(
        inputs=inputs,
        keep=resolve_keep(keep, steps),
        fields=resolve_fields(fields, inputs),
        memory=budget.parse(memory),
        running=running,
        adjoint=StateAdjoint() if keep_adjoint else None,
        deterministic=deterministic,
    )
    needs = [x.requires_grad for x in inputs.tensors()]
    return request.make_plan(needs if any(needs) else [True] * len(needs))[1]
