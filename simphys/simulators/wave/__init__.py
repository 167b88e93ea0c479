"""The scalar wave equation. Start with step.py, the nested step; fused/ runs the same physics in fused loops."""

from typing import Any

from simphys.autograd import runtime
from simphys.rollout.engine import engine_of
from simphys.simulator import Array, Arrays, Engine

from .fused.engine import WaveEngine
from .model import Params, State, Wave
from .step import step

__all__ = ["Params", "State", "Wave", "step"]

_generated = engine_of(step)


def _make_engine(model: Wave, params: Arrays, control: Array | None, **options: Any) -> Engine:
    """On a GPU, make the generated engine, whose states lie there; the hand-made one is for the host's memory."""
    made = _generated if runtime.settings().on_gpu else WaveEngine
    return made(model, params, control, **options)


Wave.bind(step=step, engine=_make_engine)
