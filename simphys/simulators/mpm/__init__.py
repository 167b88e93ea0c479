"""MLS-MPM: start reading at step.py, the nested step, from which the engine is generated."""

from simphys.rollout.engine import engine_of

from .collider import Collider
from .model import MPM, Params, State
from .stability import advice, step_limits
from .step import step
from .stress import stresses

__all__ = ["MPM", "Collider", "Params", "State", "step"]

MPM.bind(
    step=step,
    engine=engine_of(step),
    advice=advice,
    stresses=stresses,
    step_limits=step_limits,
)
