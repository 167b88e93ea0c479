"""Mass-spring systems. Start with step.py, the nested step."""

from .engine_choice import make_engine
from .ground_events import find_events
from .model import MassSpring, Params, State, check_params
from .stability import advice
from .step import step

__all__ = ["MassSpring", "Params", "State", "step"]

MassSpring.bind(step=step, engine=make_engine, check=check_params, events=find_events, advice=advice)
