"""Rigid bodies with contacts and joints. Start with step.py, the nested step; rows.py lists the arrays it passes on."""

from __future__ import annotations

from typing import Any

from .joint import WORLD, Joint, Spring
from .model import Params, RigidBodies, State
from .shapes import Box, Capsule, Plane, Sphere

__all__ = [
    "WORLD",
    "Box",
    "Capsule",
    "Joint",
    "Params",
    "Plane",
    "RigidBodies",
    "Sphere",
    "Spring",
    "State",
    "build",
]


def build(config: Any) -> tuple[RigidBodies, Params, State]:
    """Return the model, parameters and initial state of a validated scene.

    Errors: InputError if the time step exceeds the stability limit.
    """
    from simphys.autograd import tensor

    from . import scene
    from .stability import require_stable

    made = scene.fields_of(config)
    model = scene.model(config)
    params = Params(**{name: tensor(values) for name, values in made.params.items()})
    state = State(**{name: tensor(values) for name, values in made.state.items()})
    require_stable(model, params, state)
    return model, params, state
