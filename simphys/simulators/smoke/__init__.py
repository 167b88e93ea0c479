"""Incompressible flow. Start with step.py, the nested step; engine.py runs the same physics in fused loops."""

from .engine import SmokeEngine
from .model import Params, Smoke, State
from .step import step

__all__ = ["Params", "Smoke", "State", "step"]

Smoke.bind(step=step, engine=SmokeEngine)
