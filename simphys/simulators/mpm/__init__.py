"""MLS-MPM: start reading at step.py, the nested step; engine.py is the fast way through the same physics."""

from .collider import Collider
from .engine import MPMEngine
from .model import MPM, Params, State
from .stability import advice
from .step import step

__all__ = ["MPM", "Collider", "Params", "State", "step"]

MPM.bind(step=step, engine=MPMEngine, advice=advice)
