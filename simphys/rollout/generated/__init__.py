"""Engines that are generated from a nested step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simphys.simulator import Array, Arrays, Engine, Model
from simphys.substep.program import Program
from simphys.substep.trace import record_step

from .engine import GeneratedEngine
from .prologue import Prologue, split_prologue

__all__ = ["GeneratedEngine", "engine_of"]


def engine_of(step: Callable[..., Any]) -> Callable[..., Engine]:
    """Return what makes engines of a step that is made of declared sub-steps, for `Model.bind`."""

    def make_engine(model: Model, params: Arrays, control: Array | None, **options: Any) -> Engine:
        prologue, program = program_of(model, step, controlled=control is not None)
        return GeneratedEngine(model, program, prologue, params, control, **options)

    return make_engine


def program_of(model: Model, step: Callable[..., Any], *, controlled: bool) -> tuple[Prologue, Program]:
    """Return the program of a model's step, recorded once, and its prologue."""
    table = model.__dict__.setdefault("_programs", {})
    if controlled not in table:
        table[controlled] = split_prologue(record_step(model, step, controlled=controlled))
    return table[controlled]
