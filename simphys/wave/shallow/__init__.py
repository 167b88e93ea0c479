"""Shallow water: start reading at step.py, the nested step; engine.py is the fast way through it."""

from __future__ import annotations

from typing import Any

from .model import Params, ShallowWater, State
from .step import step

__all__ = ["Params", "ShallowWater", "State", "build", "step"]


def build(config: Any) -> tuple[ShallowWater, Params, State]:
    """Model, parameters and initial state of a validated scene."""
    from ...autograd import tensor
    from . import scene

    made = scene.fields(grid=config.grid, medium=config.medium, state=config.state)
    params = Params(**{name: tensor(values) for name, values in made.params.items()})
    return scene.model(config), params, State(**{name: tensor(values) for name, values in made.state.items()})
