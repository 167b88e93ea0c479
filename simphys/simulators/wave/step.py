"""The nested step, with one graph node for each sub-step. Read this first."""

from __future__ import annotations

from simphys.autograd import Tensor

from .advance import advance
from .curvature import compute_curvature
from .model import Params, State, Wave
from .receive import receive
from .source import drive


def step(model: Wave, params: Params, state: State, control: Tensor | None = None) -> State:
    """Advance `state` by one time step; `control` [S] holds the source strengths at the beginning of the step."""
    curvature, slope_memory, curvature_memory = compute_curvature(
        model, state.height, state.slope_memory, state.curvature_memory
    )
    if control is not None:
        curvature = curvature + drive(model, control, state.source_position)
    height = advance(model, state.height, state.previous, curvature, params.speed)
    return State(
        height=height,
        previous=state.height,
        slope_memory=slope_memory,
        curvature_memory=curvature_memory,
        source_position=state.source_position + params.source_velocity * model.dt,
        received=receive(model, height, params.receiver_position) if model.receivers else state.received,
    )
