"""The scalar wave equation. Start with step.py, the nested step; engine.py runs the same physics in fused loops."""

from .engine import WaveEngine
from .model import Params, State, Wave
from .step import step

__all__ = ["Params", "State", "Wave", "step"]

Wave.bind(step=step, engine=WaveEngine)
