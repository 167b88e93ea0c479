"""Point charges. Start with step.py, the nested step; engine.py runs the same physics in fused loops."""

from .engine import ChargesEngine
from .model import Charges, Params, State
from .step import step

__all__ = ["Charges", "Params", "State", "step"]

Charges.bind(step=step, engine=ChargesEngine)
