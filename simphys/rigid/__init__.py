"""Rigid bodies with contacts and joints: start reading at step.py, the nested step; rows.py tells what it passes on."""

from __future__ import annotations

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
]
