"""Point charges. Start with step.py, the nested step; engine.py runs the same physics in fused loops."""

from __future__ import annotations

from typing import Any

from .model import Charges, Params, State
from .step import step

__all__ = ["Charges", "Params", "State", "build", "step"]


def build(config: Any) -> tuple[Charges, Params, State]:
    """Build the model, the parameters and the initial state of a validated scene."""
    from simphys.autograd import tensor

    from . import scene

    made = scene.fields(geometry=config.geometry, material=config.material, state=config.state)
    params = Params(**{name: tensor(values) for name, values in made.params.items()})
    return scene.model(config), params, State(**{name: tensor(values) for name, values in made.state.items()})
