"""The scalar wave equation: start reading at step.py, the nested step; engine.py is the fast way through it."""

from __future__ import annotations

from typing import Any

from .model import Params, State, Wave
from .step import step

__all__ = ["Params", "State", "Wave", "build", "step"]


def build(config: Any) -> tuple[Wave, Params, State]:
    """Model, parameters and initial state of a validated scene; receivers have read the start.

    Errors: InputError when the time step is beyond the stability limit.
    """
    from ..autograd import tensor
    from . import scene
    from .receive import Receive
    from .stability import require_stable

    made = scene.fields(
        grid=config.grid,
        medium=config.medium,
        state=config.state,
        sources=config.sources,
        receivers=config.receivers,
    )
    model = scene.model_of(config)
    params = Params(**{name: tensor(values) for name, values in made.params.items()})
    state = State(**{name: tensor(values) for name, values in made.state.items()})
    require_stable(model, params)
    return model, params, state.replace(received=Receive.apply(model, state.height, params.receiver_position))
