"""Molecular dynamics. Start with step.py, the nested step."""

from simphys.rollout.engine import engine_of

from .model import Molecular, Params, State
from .stability import step_limits
from .step import step

__all__ = ["Molecular", "Params", "State", "step"]

Molecular.bind(step=step, engine=engine_of(step), step_limits=step_limits)
