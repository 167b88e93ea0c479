"""Incompressible flow: start reading at step.py, the nested step; engine.py is the fast way through it."""

from __future__ import annotations

from typing import Any

from .model import Params, Smoke, State
from .step import step

__all__ = ["Params", "Smoke", "State", "build", "step"]


def build(config: Any) -> tuple[Smoke, Params, State]:
    """Model, parameters and initial state of a validated scene.

    Errors: InputError when the time step is beyond the stability limit.
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
