"""Point charges. Start with step.py, the nested step."""

from simphys.rollout.engine import engine_of

from .model import Charges, Params, State, check_params
from .step import step

__all__ = ["Charges", "Params", "State", "step"]

Charges.bind(step=step, engine=engine_of(step), check=check_params)
