"""The section of a network that controls a simulator, its check, and the controller made of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from simphys.nn import Controller
from simphys.scenefile.control import PatternSection
from simphys.scenefile.section import NOTHING, Count, Index, Length, Positive, Problem, Section


class ControllerSection(Section):
    """A network that drives actuators or motors by the control, which is then a pattern, and the state of all bodies.

    hidden: number of hidden units. goal [m]: a point, which enters relative to the mean position of the bodies. scale
    [1/m or s/m]: factor on positions and velocities before they enter. seed: random seed of the initial
    weights; unknowns call the weights hidden_weight, hidden_bias, output_weight and output_bias.
    """

    hidden: Count = 32
    goal: Annotated[list[float], Field(min_length=1, max_length=3), Length("dim")]
    scale: Positive = 0.05
    seed: Index = 0

    def make(self, control: Any) -> Controller:
        """Make the controller, with as many waves as the control has."""
        waves = getattr(control, "waves", 0)
        return Controller(waves=waves, hidden=self.hidden, goal=tuple(self.goal), scale=self.scale)


def check_controller(control: Any, *, drives: bool, remedy: str) -> Iterator[Problem]:
    """Check that a controller has a pattern, and something to drive."""
    if not drives:
        yield Problem(("controller",), "needs something to drive", NOTHING, remedy)
    if not isinstance(control, PatternSection):
        remedy = 'Give [control] with kind = "pattern", waves and frequency.'
        yield Problem(("controller",), "needs a pattern as its control", NOTHING, remedy)
