"""Point charges: start reading at step.py, the nested step; engine.py is the fast way through the same physics."""

from __future__ import annotations

from .model import Charges, Params, State
from .step import step

__all__ = ["Charges", "Params", "State", "step"]
