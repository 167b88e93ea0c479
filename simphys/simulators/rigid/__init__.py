"""Rigid bodies with contacts and joints. Start with step.py, the nested step; rows.py lists the arrays it passes on."""

from simphys.rollout.engine import engine_of

from .checks import check_params, check_state
from .events import find_events
from .joints.joint import WORLD, Joint, Spring
from .model import Params, RigidBodies, State
from .shapes import Box, Capsule, Plane, Sphere
from .stability import step_limits
from .step import step

__all__ = [
    "WORLD",
    "Box",
    "Capsule",
    "Joint",
    "Params",
    "Plane",
    "RigidBodies",
    "Sphere",
    "Spring",
    "State",
    "step",
]

RigidBodies.bind(
    step=step,
    engine=engine_of(step),
    check=check_params,
    check_state=check_state,
    events=find_events,
    step_limits=step_limits,
)
