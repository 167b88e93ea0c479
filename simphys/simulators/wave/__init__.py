"""The scalar wave equation. Start with step.py, the nested step; engine.py runs the same physics in fused loops."""

from __future__ import annotations

from typing import Any

from .model import Params, State, Wave
from .step import step

__all__ = ["Params", "State", "Wave", "build", "step"]


def build(config: Any) -> tuple[Wave, Params, State]:
    """Build model, parameters and initial state of a validated scene, including the first reading of each receiver.

    Raises InputError if the time step exceeds the stability limit.
    """
    from simphys.autograd import tensor

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
