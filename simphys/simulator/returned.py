"""Checks of what the functions of a simulator return, so that a mistake is told where it was made."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import MISSING, fields
from typing import Any

from simphys.autograd.errors import InputError

from .contract import Model
from .record import Record


def describe_kind(found: object) -> str:
    """Describe an object by its type: 'None', 'a tuple'."""
    kind = type(found).__name__
    return "None" if found is None else f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"


def require_kind(source: str, found: object, wanted: type[Any], what: str, remedy: str) -> None:
    """Raise InputError unless a function returned an object of the wanted class."""
    if not isinstance(found, wanted):
        raise InputError(source, f"must return {what}", describe_kind(found), remedy)


def require_fields(source: str, found: Collection[str], record: type[Any]) -> None:
    """Raise InputError unless a function gave each field of a record, but for those with a default, and no other."""
    needed = [each.name for each in fields(record) if each.default is MISSING and each.default_factory is MISSING]
    missing = [name for name in needed if name not in found]
    unknown = [name for name in found if name not in record.names()]
    if missing or unknown:
        parts = [f"no {', '.join(missing)}"] * bool(missing) + [f"unknown {', '.join(unknown)}"] * bool(unknown)
        constraint = f"must give each field of {record.__name__}: {', '.join(needed)}"
        raise InputError(source, constraint, " and ".join(parts), "Add what is missing, and drop what is unknown.")


def require_state(model: Model, found: Any) -> Any:
    """Return what a step returned. Errors: InputError unless it is a State with all fields of the model."""
    if type(found) is not model.State:
        source = f"step of {type(model).__name__}"
        remedy = f"End it with `return State({', '.join(f'{name}=...' for name in model.state_shapes())})`."
        require_kind(source, found, Record, "the State after the step", remedy)
        require_fields(source, found.names(), model.State)
    return found
