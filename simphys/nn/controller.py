"""What a simulator's model says of its controller; the weights are among the simulator's parameters."""

from __future__ import annotations

from dataclasses import dataclass

from ..autograd.errors import InputError
from .network import Network


@dataclass(frozen=True)
class Controller:
    """A network from a central pattern and what is sensed of the state to the control of a step.

    The pattern is what drives the simulator from outside, [T, waves]; what comes out drives it within.
    """

    waves: int
    """Of the pattern."""
    hidden: int
    """Units of the hidden layer."""
    goal: tuple[float, ...]
    """A point that is sensed relative to the middle of the body [m], one number for each axis."""
    scale: float = 0.05
    """By which positions and velocities are multiplied before they go in."""

    def __post_init__(self) -> None:
        for name in ("waves", "hidden"):
            if getattr(self, name) < 1:
                raise InputError(f"Controller.{name}", "at least 1", getattr(self, name), "Give at least one.")

    def network(self, *, senses: int, outputs: int) -> Network:
        """The network for so many numbers that are sensed, and so many that drive."""
        return Network(inputs=self.waves + senses, hidden=self.hidden, outputs=outputs)
