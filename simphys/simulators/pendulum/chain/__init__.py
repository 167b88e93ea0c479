"""A chain of pendulums in the plane. Start with step.py, the nested step; engine.py runs it in fused loops."""

from .model import Chain, Params, State

__all__ = ["Chain", "Params", "State"]
