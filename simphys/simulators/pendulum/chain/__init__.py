"""A chain of pendulums in the plane. Start with step.py, the nested step; engine.py runs it in fused loops."""

from ..integrators import check_params
from .engine import ChainEngine
from .model import Chain, Params, State
from .step import step

__all__ = ["Chain", "Params", "State", "step"]

Chain.bind(step=step, engine=ChainEngine, check=check_params)
