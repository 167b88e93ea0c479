"""Smoothed particle hydrodynamics. Start with step.py, the nested step."""

from simphys.rollout.engine import engine_of

from .model import SPH, Params, State, check_params
from .step import step

__all__ = ["SPH", "Params", "State", "step"]

SPH.bind(step=step, engine=engine_of(step), check=check_params)
