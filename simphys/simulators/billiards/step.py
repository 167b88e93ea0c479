"""The nested step: one node of the graph, for the balls roll from impact to impact. Read this first, then roll.py."""

from __future__ import annotations

import numpy as np

from simphys.autograd import Tensor
from simphys.autograd.errors import InputError

from .legs import describe_endless_impacts, trace_legs
from .model import Billiards, Params, State
from .roll import Roll, arguments


def step(model: Billiards, params: Params, state: State, control: Tensor | None = None) -> State:
    """Advance `state` by one time step, from impact to impact. Raise InputError if there are more than the limit."""
    found = State(*Roll.apply(*arguments(model, params, state, model.dt)))
    if isinstance(found.position, Tensor):  # not while the step is recorded: an engine gives what is not finite
        _require_end(model, params, state, found)
    return found


def _require_end(model: Billiards, params: Params, state: State, found: State) -> None:
    """Raise InputError if impacts did not end."""
    if np.isfinite(found.position.data).all() or not np.isfinite(state.position.data).all():
        return
    endless = describe_endless_impacts(model, params, trace_legs(model, params, state))
    if endless is not None:
        raise InputError("billiards", *endless)
