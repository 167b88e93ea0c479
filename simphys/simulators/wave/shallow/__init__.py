"""Shallow water. Start with step.py, the nested step; engine.py runs the same physics in fused loops."""

from __future__ import annotations

from typing import Any

from .model import Params, ShallowWater, State
from .step import step

__all__ = ["Params", "ShallowWater", "State", "build", "step"]


def build(config: Any) -> tuple[ShallowWater, Params, State]:
    """Build model, parameters and initial state of a validated scene.

    Raises InputError if the time step exceeds the stability limit, or if a cell is dry initially.
    """
    from simphys.autograd import tensor

    from . import scene
    from .stability import require_stable

    made = scene.fields(grid=config.grid, medium=config.medium, state=config.state)
    model = scene.model(config)
    params = Params(**{name: tensor(values) for name, values in made.params.items()})
    state = State(**{name: tensor(values) for name, values in made.state.items()})
    require_stable(model, params, state)
    return model, params, state
