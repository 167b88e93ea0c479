"""Engines that are generated from a nested step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simphys.autograd import runtime
from simphys.simulator import Array, Arrays, Engine, Model
from simphys.simulator.memo import memo
from simphys.substep.draft import NotDeclared
from simphys.substep.read_step import read_step

from .carry import share_layouts
from .generated_engine import GeneratedEngine
from .nested_engine import NestedEngine
from .plan import StepProgram
from .prologue import split_prologue

__all__ = ["GeneratedEngine", "NestedEngine", "engine_of", "program_of"]


def engine_of(step: Callable[..., Any]) -> Callable[..., Engine]:
    """Return what makes engines of a step, for `Model.bind`.

    The engine of a step that is made of declared sub-steps is generated. That of any other runs the nested step.
    """

    def make_engine(model: Model, params: Arrays, control: Array | None, **options: Any) -> Engine:
        try:
            step_program = program_of(model, step, controlled=control is not None)
        except NotDeclared:
            return NestedEngine(model, step, params, control, **options)
        return GeneratedEngine(model, step_program, params, control, **options)

    return make_engine


def program_of(model: Model, step: Callable[..., Any], *, controlled: bool) -> StepProgram:
    """Read a model's step as a program, once. Errors: NotDeclared for a step that is not made of declared sub-steps."""
    table = memo(model).setdefault("programs of steps", {})
    key = (step, controlled, runtime.real_dtype())  # constant arrays have the precision in force
    if key not in table or not table[key].program.is_current:
        prologue, program = split_prologue(read_step(model, step, controlled=controlled))
        share_layouts(program)
        table[key] = StepProgram(type(model).__name__, prologue, program)
    found: StepProgram = table[key]
    return found
