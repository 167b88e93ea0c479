"""The spherical pendulum: start reading at step.py, the nested step; engine.py is the fast way."""

from .model import Params, Spherical, State

__all__ = ["Params", "Spherical", "State"]
