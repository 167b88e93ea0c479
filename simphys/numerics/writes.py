"""Variables that the calls in a function may write: those that the called one takes by reference (`ti.template()`)."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from simphys.autograd.kernels.runtime import ti

from .names import LOCAL, captured, local_names, resolve
from .places import base_name

_IN_PLACE = ("fill",)
"""Methods of vectors and matrices that change them."""


class Written(NamedTuple):
    """A variable, and the call that may write it."""

    name: str
    call: ast.Call


def find_written(function: Callable[..., Any], definition: ast.FunctionDef) -> tuple[Written, ...]:
    """List what the calls in a function may write. A function that cannot be found may write all its arguments."""
    names = {**captured(function), **dict.fromkeys(local_names(definition), LOCAL)}
    calls = [node for node in ast.walk(definition) if isinstance(node, ast.Call)]
    return tuple([Written(name, call) for call in calls for each in _targets(call, names) if (name := base_name(each))])


def _targets(call: ast.Call, names: Mapping[str, Any]) -> list[ast.expr]:
    """List the arguments of a call that it may write."""
    passed = [*call.args, *[keyword.value for keyword in call.keywords]]
    if isinstance(call.func, ast.Attribute) and _is_local(call.func.value, names):  # a method of a vector
        return [call.func.value] if call.func.attr in _IN_PLACE else []
    target = resolve(call.func, names)
    if target is None:
        return passed
    if getattr(target, "__name__", "").startswith("atomic_"):
        return passed[:1]
    try:
        parameters = list(inspect.signature(inspect.unwrap(target)).parameters.values())
    except (TypeError, ValueError):  # a type, or a function without a signature
        return []
    by_reference = [_is_reference(parameter.annotation) for parameter in parameters]
    positional = [value for value, written in zip(call.args, by_reference, strict=False) if written]
    named = {parameter.name for parameter, written in zip(parameters, by_reference, strict=True) if written}
    return positional + [keyword.value for keyword in call.keywords if keyword.arg in named]


def _is_local(value: ast.expr, names: Mapping[str, Any]) -> bool:
    """True for a local variable, or an expression such as a sum."""
    base = base_name(value)
    return not base or names.get(base) is LOCAL


def _is_reference(annotation: Any) -> bool:
    if isinstance(annotation, str):  # of a module with postponed annotations
        return "template" in annotation
    return annotation is ti.template or isinstance(annotation, ti.template)
