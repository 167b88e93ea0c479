"""MLS-MPM. Start with step.py, the nested step; engine.py runs the same physics in fused loops."""

from __future__ import annotations

from typing import Any

from .collider import Collider
from .model import MPM, Params, State
from .step import step

__all__ = ["MPM", "Collider", "Params", "State", "build", "step"]


def build(config: Any) -> tuple[MPM, Params, State]:
    """Build model, parameters and initial state of a validated scene.

    Raises InputError if the time step exceeds the stability limit.
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
