"""Shallow water. Start with step.py, the nested step."""

from simphys.rollout.engine import engine_of

from .model import Params, ShallowWater, State
from .stability import advice, step_limits
from .step import step

__all__ = ["Params", "ShallowWater", "State", "step"]

ShallowWater.bind(step=step, engine=engine_of(step), advice=advice, step_limits=step_limits)
