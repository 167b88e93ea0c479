"""Mass-spring systems. Start with step.py, the nested step."""

from simphys.rollout.engine import engine_of

from .ground_events import find_events
from .model import MassSpring, Params, State
from .stability import step_limits
from .step import step
from .stress import stresses

__all__ = ["MassSpring", "Params", "State", "step"]

MassSpring.bind(
    step=step,
    engine=engine_of(step),
    events=find_events,
    stresses=stresses,
    step_limits=step_limits,
)
