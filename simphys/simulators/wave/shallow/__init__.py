"""Shallow water. Start with step.py, the nested step; engine.py runs the same physics in fused loops."""

from .engine import ShallowEngine
from .model import Params, ShallowWater, State
from .stability import advice
from .step import step

__all__ = ["Params", "ShallowWater", "State", "step"]

ShallowWater.bind(step=step, engine=ShallowEngine, advice=advice)
