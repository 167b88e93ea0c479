"""Results that are kept beside an object, such as a model, for as long as it lives."""

from __future__ import annotations

import weakref
from typing import Any

from simphys.autograd import runtime

from .arrays import Array

_tables: dict[int, dict[Any, Any]] = {}
"""Tables by the identity of their objects."""


def memo(owner: Any) -> dict[Any, Any]:
    """Return the table of an object, empty at first.

    Objects that are equal have tables of their own, and copies begin with an empty one. A table ends with its object.
    """
    key = id(owner)
    if key not in _tables:
        _tables[key] = {}
        weakref.finalize(owner, _tables.pop, key, None)
    return _tables[key]


def cast(owner: Any, name: str, values: Array) -> Array:
    """Bring numbers of an object to the precision in force, once for each name."""
    found: Array = memo(owner).setdefault(("cast", name, runtime.real_dtype()), values.astype(runtime.real_dtype()))
    return found
