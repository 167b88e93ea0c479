"""Read a step as a program: it runs once on symbols."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.errors import InputError
from simphys.numerics.outside import Outside
from simphys.simulator import Model
from simphys.simulator.returned import require_state

from .arithmetic import RULES, copy
from .draft import Draft, NotDeclared, Symbol
from .fit import list_outside
from .operation import whole_view
from .program import Op, Program, Value


def read_step(model: Model, step: Callable[..., Any], *, controlled: bool) -> Program:
    """Read a step of a model as a program. Errors: NotDeclared for a step that is not made of declared sub-steps."""
    draft, names = Draft(RULES), Outside(step)
    _require_names(model, controlled=controlled)

    def symbols(record: Any, shapes: Mapping[str, tuple[int, ...]], role: Any) -> tuple[Any, dict[str, Value]]:
        values = {name: Value(draft.name(name), tuple(shape), role) for name, shape in shapes.items()}
        return record(**{name: Symbol(draft, value) for name, value in values.items()}), values

    params, param_values = symbols(model.Params, model.param_shapes(), "param")
    state, state_values = symbols(model.State, model.state_shapes(), "state")
    control, shape = None, model.control_shape()
    if controlled and shape is not None:
        control = Value(draft.name("control"), shape, "control")
    given = None if control is None else Symbol(draft, control)
    result = require_state(model, step(model, params, state, given))
    results = _results(result, draft)
    for value in state_values.values():
        if not value.size:  # it takes no part: nothing moves it, and what is computed from it alone is empty, too
            value.role, value.data = "constant", np.zeros(value.shape, runtime.real_dtype())
    state_values = {name: value for name, value in state_values.items() if value.size}
    results = {name: results[name] for name in state_values}
    ops = tuple([op for op in draft.ops if any([value.size for value in op.outputs])])
    for name, value in state_values.items():  # they share their memory
        _share_view(value, results[name])
        value.by_component = results[name].by_component = value.by_component or results[name].by_component
        results[name].adjoint_by_component = False
        value.is_flat = results[name].is_flat = value.is_flat or results[name].is_flat
    _require_rows(ops)
    captured = tuple(dict.fromkeys([outside for op in ops for outside in list_outside(op)]))
    for outside in captured:
        outside.require_same()
    return Program(ops, state_values, param_values, control, results, draft.tensors(), names, captured)


def _require_names(model: Model, *, controlled: bool) -> None:
    """Raise InputError for names of fields that stand for something else in the generated engine, too."""
    control = ["control"] if controlled and model.control_shape() is not None else []
    known = Draft({})
    for name in [*model.param_shapes(), *model.state_shapes(), *control]:
        other = known.clash(name)
        if other is not None:
            constraint = f"`{name}` is no name of `{other}`, of its tangent (d...) or its adjoint (adj_...)"
            if other == name:
                constraint = "fields of State and of Params have different names"
            found = f"fields {other} and {name}"
            raise InputError(f"{type(model).__name__}.{name}", constraint, found, "Rename one of them.")
        known.name(name)


def _share_view(old: Value, new: Value) -> None:
    """See the old and the new state as the same elements, where only one of them is seen by a loop."""
    new.view = new.view or old.view or whole_view(new)
    old.view = old.view or new.view
    if old.view.element != new.view.element:
        raise NotDeclared(f"{old.name} has elements of shape {old.view.element}, {new.name} of {new.view.element}")


def _require_rows(ops: Sequence[Op]) -> None:
    """Raise NotDeclared if an operation takes an array whose vectors lie component by component."""
    for op in ops:
        if op.pattern.on_host:
            for value in (*op.values(), *op.outputs):
                if value.by_component or value.adjoint_by_component:
                    raise NotDeclared(f"an operation takes {value.name}, which lies component by component")


def _results(result: Any, draft: Draft) -> dict[str, Value]:
    """Collect the fields of the new state; a value that is no fresh result is copied."""
    found: dict[str, Value] = {}
    for name in result.names():
        symbol = getattr(result, name)
        if not isinstance(symbol, Symbol):
            found_as, remedy = f"{name}: {symbol!r}", "Compute it by declared sub-steps."
            raise InputError("step", "each field of the new state comes from a sub-step", found_as, remedy)
        value = symbol.value
        if not value.size:  # an empty field takes no part
            found[name] = value
            continue
        if value.role != "local" or any([value is other for other in found.values()]):
            value = copy(draft, symbol).value
        found[name] = value
    return found
