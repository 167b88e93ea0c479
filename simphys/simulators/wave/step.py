"""The nested step, with one graph node for each sub-step. Read this first."""

from __future__ import annotations

from simphys.autograd import Tensor

from .advance import Advance
from .curvature import Curvature
from .model import Params, State, Wave
from .receive import Receive
from .source import SourceTerm


def step(model: Wave, params: Params, state: State, control: Tensor | None = None) -> State:
    """Advance `state` by one time step; `control` [S] holds the source strengths at the beginning of the step."""
    curvature, slope_memory, curvature_memory = Curvature.apply(
        model, state.height, state.slope_memory, state.curvature_memory
    )
    if control is not None:
        curvature = curvature + SourceTerm.apply(model, control, state.source_position)
    height = Advance.apply(model, state.height, state.previous, curvature, params.speed)
    return State(
        height=height,
        previous=state.height,
        slope_memory=slope_memory,
        curvature_memory=curvature_memory,
        source_position=state.source_position + params.source_velocity * model.dt,
        received=Receive.apply(model, height, params.receiver_position) if model.receivers else state.received,
    )
