"""Pendulums in generalized coordinates: chain/, links in the plane, and spherical/, one pendulum in space.

Start with chain/step.py or spherical/step.py, the nested steps; each engine.py runs the same physics in fused loops.
"""

from . import chain, spherical
from .chain import Chain
from .spherical import Spherical

__all__ = ["Chain", "Spherical", "chain", "spherical"]
