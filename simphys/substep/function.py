"""Functions of declared sub-steps: nodes of the graph whose loops follow from the declaration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from simphys.autograd import Context, Function, Tensor, runtime
from simphys.autograd.errors import InputError
from simphys.numerics.outside import Outside
from simphys.simulator import Array, Model
from simphys.simulator.arrays import locked
from simphys.simulator.memo import memo

from .draft import Draft, Symbol
from .fit import list_outside
from .launch import KeyedArrays, run_pass
from .pattern import ELSEWHERE, FIXED, Pattern
from .program import Op, Value


def declare(pattern: Pattern) -> type[Substep]:
    """Make the Function of a pattern."""
    return type(pattern.name, (Substep,), {"pattern": pattern, "__doc__": f"Sub-step declared by {pattern.source}."})


class Substep(Function):
    """Base of the Functions of declared sub-steps. They are applied to the model, and then to the arrays in order."""

    pattern: Pattern

    @classmethod
    def apply(cls, *inputs: Any) -> Any:
        """Apply the sub-step to Tensors; while a step is read, to symbols."""
        pattern, names = cls.pattern, list(cls.pattern.sources)
        if len(inputs) != 1 + len(pattern.arguments):
            constraint = f"it takes the model, and {', '.join(pattern.arguments)}"
            raise InputError(pattern.name, constraint, f"{len(inputs)} arguments", "Pass these.")
        model, *values = inputs
        draft = next((value.draft for value in values if isinstance(value, Symbol)), None)
        if draft is None:
            return super().apply(*inputs)
        taken = _by_parameter(pattern, values)
        made = {n: _as_input(pattern, n, given, draft) for n, given in zip(names, taken, strict=True)}
        made = _apart(pattern, made, draft)
        outputs = _visible(pattern, draft.add(pattern.bind(model, made)))
        return tuple(outputs) if len(outputs) > 1 else outputs[0]

    @classmethod
    def require_jvp(cls, name: str) -> None:
        """Raise MissingJvp, which names the element and why it has no tangent, if it has none."""
        cls.pattern.require_tangent()

    @staticmethod
    def forward(ctx: Context, model: Any, *inputs: Any) -> Any:
        pattern: Pattern = ctx.function.pattern
        ctx.model, ctx.applied = model, _apply(pattern, model, inputs)  # which does not keep the model alive
        given = _arrays(ctx, "value", inputs)
        results = run_pass(ctx.applied.op, "forward", given)
        pattern.check_results(ctx.applied.op, list(given.values()), results)
        ctx.save_for_backward(*inputs, *(results if pattern.reads_results else ()))
        visible = _visible(pattern, results)
        for number in pattern.fixed_results:
            visible[number] = Tensor(visible[number])
        ctx.mark_non_differentiable(*[visible[number] for number in pattern.fixed_results])
        return _as_result(visible)

    @staticmethod
    def backward(ctx: Context, *adjoints: Tensor) -> tuple[Any, ...]:
        given = _arrays(ctx, "value", ctx.saved_tensors)
        given |= {("adjoint", number): adj.data for number, adj in enumerate(adjoints)}
        pattern: Pattern = ctx.function.pattern
        found = dict(zip(pattern.varying, run_pass(ctx.applied.op, "adjoint", given), strict=True))
        adj: list[Any] = [None] * len(pattern.arguments)
        for name, place in zip(pattern.sources, pattern.places, strict=True):
            if name in found and place is not None:
                adj[place] = found[name] if adj[place] is None else adj[place] + found[name]
        return None, *adj

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Any) -> Any:
        given = _arrays(ctx, "value", ctx.saved_tensors) | _arrays(ctx, "tangent", tangents)
        pattern: Pattern = ctx.applied.op.pattern
        found = run_pass(ctx.applied.op, "tangent", given)
        return _as_result([None if number in pattern.fixed_results else dy for number, dy in enumerate(found)])


class _Applied(NamedTuple):
    """A sub-step applied to arrays of certain shapes."""

    op: Op
    arrays: tuple[tuple[str, int, bool], ...]
    """Parameters that take arrays: name, place among the arguments, True if gradients flow to it."""
    captured: tuple[Outside, ...]
    """Names that the compiled functions capture."""


_APPLIED_LIMIT = 100
"""Applications that a model keeps. Numbers that change with time would add more and more."""


def _apply(pattern: Pattern, model: Any, inputs: Sequence[Any]) -> _Applied:
    """Apply a sub-step, or find it applied to arrays of the same shapes and the same numbers before."""
    if not isinstance(model, Model):  # of a test, say: not sure to stay the same
        return _apply_anew(pattern, model, inputs)
    table = memo(model).setdefault("applied sub-steps", {})
    kinds = [(given.shape, given.dtype) if isinstance(given, Tensor | np.ndarray) else given for given in inputs]
    key = (pattern, runtime.real_dtype(), *kinds)
    if key not in table:
        applied = _apply_anew(pattern, model, inputs)
        if len(table) >= _APPLIED_LIMIT:
            table.clear()
        table[key] = applied
    found: _Applied = table[key]
    for outside in found.captured:
        outside.require_same()
    return found


def _apply_anew(pattern: Pattern, model: Any, inputs: Sequence[Any]) -> _Applied:
    """Apply a sub-step. Errors: InputError for arrays in another precision, of wrong shapes, or none."""
    values: dict[str, Value | float] = {}
    arrays = []
    for (name, source), place in zip(pattern.sources.items(), pattern.places, strict=True):
        varies = name in pattern.varying
        given = 0.0 if place is None else inputs[place]
        if place is not None and isinstance(given, Tensor | np.ndarray):
            runtime.require_precision(f"{pattern.name}, {source.field}", given)
            values[name] = Value(name, given.shape, "local" if varies else "constant")
            arrays.append((name, place, varies))
        elif varies:
            raise InputError(pattern.name, f"{source.field} is a Tensor", repr(given), "Pass one.")
        else:
            values[name] = float(given)
    op = pattern.bind(model, values)
    return _Applied(op, tuple(arrays), tuple(list_outside(op)))


def _visible(pattern: Pattern, results: Sequence[Any]) -> list[Any]:
    """Leave out the results that only the sub-step itself reads."""
    return list(results[: len(results) - pattern.hidden_results])


def _as_input(pattern: Pattern, name: str, given: Any, draft: Draft) -> Value | float:
    """Make the value of an argument while a step is read."""
    field = pattern.sources[name].field
    if isinstance(given, Symbol):
        if pattern.sources[name].kind in FIXED:
            raise InputError(pattern.name, f"{field} is a constant", given.value.name, "Declare it as an array.")
        return given.value
    if isinstance(given, Tensor):
        if given.requires_grad:
            constraint = f"a Tensor that a step takes from outside, as {field} here, requires no gradient"
            raise InputError(pattern.name, constraint, repr(given), "Make it a field of Params, or pass x.detach().")
        given = draft.outside(given)
    if isinstance(given, np.ndarray):
        return draft.constant(field, locked(given))
    return float(given)


def _apart(pattern: Pattern, made: dict[str, Value | float], draft: Draft) -> dict[str, Value | float]:
    """Copy a value that a loop reads both at its own index and elsewhere, since it holds the adjoint of the first."""
    own = [made[name] for name, source in pattern.sources.items() if source.kind == "own"]
    copies: dict[int, Value] = {}
    for name, source in pattern.sources.items():
        value = made[name]
        if source.kind in ELSEWHERE and isinstance(value, Value) and any([value is other for other in own]):
            if id(value) not in copies:
                copies[id(value)] = draft.arithmetic["copy"](draft, Symbol(draft, value), None).value
            made[name] = copies[id(value)]
    return made


def _by_parameter(pattern: Pattern, arguments: Sequence[Any]) -> list[Any]:
    """Return what belongs to each parameter: several may take one array, and 0 stands for one that takes none."""
    return [0.0 if place is None else arguments[place] for place in pattern.places]


def _arrays(ctx: Context, kind: str, values: Any) -> KeyedArrays:
    """Collect the arrays of the inputs, and of results that follow them, by kind and name or number."""
    every, count = kind == "value", len(ctx.function.pattern.arguments)
    found: KeyedArrays = {(kind, number): _data(given) for number, given in enumerate(values[count:])}
    for name, place, varies in ctx.applied.arrays:
        if (every or varies) and values[place] is not None:
            found[kind, name] = _data(values[place])
    return found


def _data(given: Any) -> Array:
    return given.data if isinstance(given, Tensor) else np.asarray(given)


def _as_result(arrays: list[Any]) -> Any:
    return tuple(arrays) if len(arrays) > 1 else arrays[0]
