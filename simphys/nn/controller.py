"""The controller of a simulator's model; its weights are among the simulator's parameters."""

from __future__ import annotations

from dataclasses import dataclass

from ..simulator.model_checks import require_counts
from .network import Network


@dataclass(frozen=True)
class Controller:
    """A network that computes the control of a step from a central pattern and the sensed state.

    The pattern [T, waves] is the control of the simulator; the outputs of the network drive its actuators.
    """

    waves: int
    """Number of waves in the pattern."""
    hidden: int
    """Number of units in the hidden layer."""
    goal: tuple[float, ...]
    """Target point [m], one number per axis; it is sensed relative to the centre of the body."""
    scale: float = 0.05
    """Factor on positions and velocities before they enter the network."""

    def __post_init__(self) -> None:
        require_counts(self, waves=1, hidden=1)

    def network(self, *, senses: int, outputs: int) -> Network:
        """Build the network for given numbers of sensed inputs and of outputs."""
        return Network(inputs=self.waves + senses, hidden=self.hidden, outputs=outputs)
