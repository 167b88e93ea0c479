"""Functions of declared sub-steps: nodes of the graph whose loops follow from the declaration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from simphys.autograd import Context, Function, Tensor, runtime
from simphys.autograd.errors import InputError
from simphys.simulator import Array

from .launch import Arrays, run_pass
from .pattern import Pattern
from .program import Value
from .trace import Recording, Symbol


def declare(pattern: Pattern) -> type[Substep]:
    """Make the Function of a pattern."""
    parts: dict[str, Any] = {"pattern": pattern, "__doc__": f"Sub-step declared by {pattern.source}."}
    if pattern.element.tangent is None:
        parts["jvp"] = None
    return type(pattern.name, (Substep,), parts)


class Substep(Function):
    """Base of the Functions of declared sub-steps. They are applied to the model, and then to the arrays in order."""

    pattern: Pattern

    @classmethod
    def apply(cls, *inputs: Any) -> Any:
        """Apply the sub-step to Tensors; while a step is recorded, to symbols."""
        pattern, names = cls.pattern, list(cls.pattern.sources)
        if len(inputs) != 1 + len(pattern.arguments):
            constraint = f"it takes the model, and {', '.join(pattern.arguments)}"
            raise InputError(pattern.name, constraint, f"{len(inputs)} arguments", "Pass these.")
        model, *values = inputs
        recording = next((value.recording for value in values if isinstance(value, Symbol)), None)
        if recording is None:
            return super().apply(*inputs)
        taken = _by_parameter(pattern, values)
        made = {n: _as_input(pattern, n, given, recording) for n, given in zip(names, taken, strict=True)}
        outputs = recording.add(pattern.make_op(model, made))
        return outputs if len(outputs) > 1 else outputs[0]

    @staticmethod
    def forward(ctx: Context, model: Any, *inputs: Any) -> Any:
        pattern: Pattern = ctx.function.pattern
        values: dict[str, Value | float] = {}
        for name, given in zip(pattern.sources, _by_parameter(pattern, inputs), strict=True):
            varies = name in pattern.varying
            if isinstance(given, Tensor | np.ndarray):
                runtime.require_precision(f"{pattern.name}, {pattern.sources[name].field}", given)
                values[name] = Value(name, given.shape, "local" if varies else "constant")
            elif varies:
                raise InputError(pattern.name, f"{pattern.sources[name].field} is a Tensor", repr(given), "Pass one.")
            else:
                values[name] = float(given)
        ctx.op = pattern.make_op(model, values)
        results = run_pass(ctx.op, "forward", _arrays(ctx, "value", inputs))
        ctx.save_for_backward(*inputs, *(results if pattern.reads_results else ()))
        return _as_result(results)

    @staticmethod
    def backward(ctx: Context, *adjoints: Tensor) -> tuple[Any, ...]:
        given = _arrays(ctx, "value", ctx.saved_tensors)
        given |= {("adjoint", number): adj.data for number, adj in enumerate(adjoints)}
        found = dict(zip(ctx.op.pattern.varying, run_pass(ctx.op, "adjoint", given), strict=True))
        pattern: Pattern = ctx.op.pattern
        adj: list[Any] = [None] * len(pattern.arguments)
        for name, place in zip(pattern.sources, pattern.places, strict=True):
            if name in found and place is not None:
                adj[place] = found[name] if adj[place] is None else adj[place] + found[name]
        return None, *adj

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Any) -> Any:
        given = _arrays(ctx, "value", ctx.saved_tensors) | _arrays(ctx, "tangent", tangents)
        return _as_result(run_pass(ctx.op, "tangent", given))


def _as_input(pattern: Pattern, name: str, given: Any, recording: Recording) -> Value | float:
    """Make the value of an argument while a step is recorded."""
    field = pattern.sources[name].field
    if isinstance(given, Symbol):
        if name not in pattern.varying:
            raise InputError(pattern.name, f"{field} is a constant", given.value.name, "Declare it as an array.")
        return given.value
    if isinstance(given, Tensor):
        given = given.data
    if isinstance(given, np.ndarray):
        return recording.constant(field, given)
    return float(given)


def _by_parameter(pattern: Pattern, arguments: Sequence[Any]) -> list[Any]:
    """Return what belongs to each parameter: several may take one array, and 0 stands for one that takes none."""
    return [0.0 if place is None else arguments[place] for place in pattern.places]


def _arrays(ctx: Context, kind: str, values: Any) -> Arrays:
    """Collect the arrays of the inputs, and of results that follow them, by kind and name or number."""
    pattern: Pattern = ctx.op.pattern
    count = len(pattern.arguments)
    found: Arrays = {(kind, number): _data(given) for number, given in enumerate(values[count:])}
    for (name, value), given in zip(ctx.op.inputs.items(), _by_parameter(pattern, values[:count]), strict=True):
        if isinstance(value, Value) and given is not None and (kind == "value" or value.varies):
            found[kind, name] = _data(given)
    return found


def _data(given: Any) -> Array:
    return given.data if isinstance(given, Tensor) else np.asarray(given)


def _as_result(arrays: list[Array]) -> Any:
    return tuple(arrays) if len(arrays) > 1 else arrays[0]
