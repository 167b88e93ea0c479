"""Smoothed particle hydrodynamics. Start with step.py, the nested step."""

from simphys.rollout.engine import engine_of

from .model import SPH, Params, State
from .stability import advise, step_limits
from .step import step

__all__ = ["SPH", "Params", "State", "step"]

SPH.bind(step=step, engine=engine_of(step), advice=advise, step_limits=step_limits)
