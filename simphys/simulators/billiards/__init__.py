"""Billiards: start with step.py, the nested step; engine.py runs the same physics in fused loops."""

from __future__ import annotations

from typing import Any

from .model import Billiards, Params, State
from .step import step

__all__ = ["Billiards", "Params", "State", "build", "step"]


def build(config: Any) -> tuple[Billiards, Params, State]:
    """Return the model, parameters and initial state of a validated scene."""
    from simphys.autograd import tensor

    from . import scene

    made = scene.fields(geometry=config.geometry, material=config.material, table=config.table, state=config.state)
    params = Params(**{name: tensor(values) for name, values in made.params.items()})
    return scene.model(config), params, State(**{name: tensor(values) for name, values in made.state.items()})
