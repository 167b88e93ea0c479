"""The engine of a model: generated from the step, or the hand-made one of systems under a controller."""

from __future__ import annotations

from typing import Any

from simphys.rollout.generated import engine_of
from simphys.simulator import Array, Arrays, Engine

from .controlled_engine import ControlledEngine
from .model import MassSpring
from .step import step

make_generated = engine_of(step)


def make_engine(model: MassSpring, params: Arrays, control: Array | None, **options: Any) -> Engine:
    """Make the engine of one rollout."""
    make = make_generated if model.controller is None else ControlledEngine
    return make(model, params, control, **options)
