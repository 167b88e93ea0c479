"""Incompressible flow. Start with step.py, the nested step."""

from simphys.rollout.engine import engine_of

from .model import Params, Smoke, State
from .stability import step_limits
from .step import step

__all__ = ["Params", "Smoke", "State", "step"]

Smoke.bind(step=step, engine=engine_of(step), step_limits=step_limits)
