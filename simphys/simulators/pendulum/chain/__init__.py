"""A chain of pendulums in the plane: start reading at step.py, the nested step; engine.py is the fast way."""

from .model import Chain, Params, State

__all__ = ["Chain", "Params", "State"]
