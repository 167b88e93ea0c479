"""The spherical pendulum. Start with step.py, the nested step; its engine is generated from it."""

from simphys.rollout.engine import engine_of

from .model import Params, Spherical, State, check_state
from .step import step

__all__ = ["Params", "Spherical", "State", "step"]

Spherical.bind(step=step, engine=engine_of(step), check_state=check_state)
