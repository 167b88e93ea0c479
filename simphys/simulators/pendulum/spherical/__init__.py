"""The spherical pendulum. Start with step.py, the nested step; engine.py runs it in fused loops."""

from ..integrators import check_params
from .engine import SphericalEngine
from .model import Params, Spherical, State
from .step import step

__all__ = ["Params", "Spherical", "State", "step"]

Spherical.bind(step=step, engine=SphericalEngine, check=check_params)
