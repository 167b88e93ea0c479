"""A chain of pendulums in the plane. Start with step.py, the nested step; its engine is generated from it."""

from simphys.rollout.engine import engine_of

from .model import Chain, Params, State, check_params
from .step import step

__all__ = ["Chain", "Params", "State", "step"]

Chain.bind(step=step, engine=engine_of(step), check=check_params)
