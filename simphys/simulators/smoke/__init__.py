"""Incompressible flow. Start with step.py, the nested step; engine.py runs the same physics in fused loops."""

from __future__ import annotations

from typing import Any

from .model import Params, Smoke, State
from .step import step

__all__ = ["Params", "Smoke", "State", "build", "step"]


def build(config: Any) -> tuple[Smoke, Params, State]:
    """Build model, parameters and initial state of a validated scene.

    Raises InputError if the time step exceeds the stability limit.
    """
    from simphys.autograd import tensor

    from . import scene
    from .stability import require_stable

    made = scene.fields(
        simulator=config.simulator,
        grid=config.grid,
        fluid=config.fluid,
        sides=config.sides,
        emitters=config.emitters,
        obstacle=config.obstacle,
        state=config.state,
    )
    model = scene.model_of(config)
    params = Params(**{name: tensor(values) for name, values in made.params.items()})
    require_stable(model, params)
    return model, params, State(**{name: tensor(values) for name, values in made.state.items()})
