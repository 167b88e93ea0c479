"""Engines that are generated from a nested step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simphys.simulator import Array, Arrays, Engine, Model
from simphys.substep.record import record_step

from .engine import GeneratedEngine
from .plan import Recorded
from .prologue import split_prologue

__all__ = ["GeneratedEngine", "engine_of", "record"]


def engine_of(step: Callable[..., Any]) -> Callable[..., Engine]:
    """Return what makes engines of a step that is made of declared sub-steps, for `Model.bind`."""

    def make_engine(model: Model, params: Arrays, control: Array | None, **options: Any) -> Engine:
        return GeneratedEngine(model, record(model, step, controlled=control is not None), params, control, **options)

    return make_engine


def record(model: Model, step: Callable[..., Any], *, controlled: bool) -> Recorded:
    """Record a model's step, once. Errors: NotDeclared for a step that is not made of declared sub-steps."""
    table = model.__dict__.setdefault("_recorded_steps", {})
    if controlled not in table:
        prologue, program = split_prologue(record_step(model, step, controlled=controlled))
        table[controlled] = Recorded(type(model).__name__, prologue, program)
    found: Recorded = table[controlled]
    return found
