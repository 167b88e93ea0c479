"""MLS-MPM: start reading at step.py, the nested step; engine.py is the fast way through the same physics."""

from __future__ import annotations

from typing import Any

from .collider import Collider
from .model import MPM, Params, State
from .step import step

__all__ = ["MPM", "Collider", "Params", "State", "build", "step"]


def build(config: Any) -> tuple[MPM, Params, State]:
    """Model, parameters and initial state of a validated scene.

    Errors: InputError when the time step is beyond the stability limit.
    """
    from simphys.autograd import tensor

    from . import scene
    from .stability import require_stable

    made = scene.fields(
        grid=config.grid, bodies=config.bodies, environment=config.environment, colliders=config.colliders
    )
    model = scene.model(config)
    params = Params(**{name: tensor(values) for name, values in made.params.items()})
    state = State(**{name: tensor(values) for name, values in made.state.items()})
    require_stable(model, params, state)
    return model, params, state
