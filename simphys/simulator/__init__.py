"""The contract between a simulator and the machinery that all simulators share."""

from .contract import Array, Arrays, Engine, Frugal, Model, Record, Shape

__all__ = ["Array", "Arrays", "Engine", "Frugal", "Model", "Record", "Shape"]
