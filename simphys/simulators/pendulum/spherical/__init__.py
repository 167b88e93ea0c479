"""The spherical pendulum. Start with step.py, the nested step; engine.py runs it in fused loops."""

from .model import Params, Spherical, State

__all__ = ["Params", "Spherical", "State"]
