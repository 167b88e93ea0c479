"""Heat conduction. Start with step.py, the nested step."""

from simphys.rollout.engine import engine_of

from .model import Heat, Params, State
from .step import step

__all__ = ["Heat", "Params", "State", "step"]

Heat.bind(step=step, engine=engine_of(step))
