"""Billiards: start with step.py, the nested step."""

from simphys.rollout.engine import engine_of

from .events import explain_endless_impacts, find_events
from .model import Billiards, Params, State
from .placement import check_start
from .step import step

__all__ = ["Billiards", "Params", "State", "step"]

Billiards.bind(
    step=step,
    engine=engine_of(step),
    check_start=check_start,
    events=find_events,
    advice=explain_endless_impacts,
)
