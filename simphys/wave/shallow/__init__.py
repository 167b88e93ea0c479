"""Shallow water: start reading at step.py, the nested step; engine.py is the fast way through it."""

from __future__ import annotations

from typing import Any

from .model import Params, ShallowWater, State
from .step import step

__all__ = ["Params", "ShallowWater", "State", "build", "step"]


def build(config: Any) -> tuple[ShallowWater, Params, State]:
    """Model, parameters and initial state of a validated scene.

    Errors: InputError when the time step is beyond the stability limit, or the start is dry.
    """
    from ...autograd import tensor
    from . import scene
    from .stability import require_stable

    made = scene.fields(grid=config.grid, medium=config.medium, state=config.state)
    model = scene.model(config)
    params = Params(**{name: tensor(values) for name, values in made.params.items()})
    state = State(**{name: tensor(values) for name, values in made.state.items()})
    require_stable(model, params, state)
    return model, params, state
