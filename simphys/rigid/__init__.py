"""Rigid bodies with contacts and joints: start reading at step.py, the nested step; rows.py tells what it passes on."""

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
    """Model, parameters and initial state of a validated scene."""
    from ..autograd import tensor
    from . import scene

    made = scene.fields_of(config)
    params = Params(**{name: tensor(values) for name, values in made.params.items()})
    return scene.model(config), params, State(**{name: tensor(values) for name, values in made.state.items()})
