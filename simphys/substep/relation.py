"""Relations between index sets: for each element of one, such as a spring, an element of another, such as a node."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from simphys.autograd.errors import InputError
from simphys.simulator import Array, Model, Shape
from simphys.simulator.memo import memo


class Inverse(NamedTuple):
    """Entries of a relation by the element that they name: element i has `entries[start[i]:start[i + 1]]`.

    Entries ascend, so that a sum over them has the order of a loop over all entries.
    """

    start: Array
    entries: Array


def read_relation(
    model: Any, name: str, shape: Shape, limit: int, source: str, *, given: Array | None = None, gaps: bool = True
) -> Array:
    """Read an index array of the model, or one that is given. Errors: InputError for what does not fit.

    With `gaps`, the index -1 names no element.
    """
    given = find_attribute(model, name) if given is None else given
    array = np.asarray(given)
    if given is None or array.shape != shape or array.dtype.kind not in "iu":
        found = "none" if given is None else f"{array.dtype} of shape {array.shape}"
        raise InputError(source, f"`{name}` of the model is integers of shape {shape}", found, "Correct the model.")
    if array.size and not (array.min() >= (-1 if gaps else 0) and array.max() < limit):
        allowed = f"0 ... {limit - 1}" + (", or is -1 for none" if gaps else "")
        found = f"{array.min()} ... {array.max()}"
        raise InputError(source, f"`{name}` of the model lies in {allowed}", found, "Correct the indices.")
    return cached(model, name, lambda: np.ascontiguousarray(array, np.int32))


def find_attribute(model: Any, path: str) -> Any:
    """Return an attribute of the model, or of one of its attributes; None if there is none."""
    return functools.reduce(lambda found, name: getattr(found, name, None), path.split("."), model)


def invert(model: Any, name: str, relation: Array, size: int) -> Inverse:
    """Invert a relation onto an index set of this size; negative indices name no element."""

    def build() -> Inverse:
        flat = relation.reshape(-1)
        order = np.argsort(flat, kind="stable").astype(np.int32)
        order = np.ascontiguousarray(order[np.count_nonzero(flat < 0) :])
        start = np.zeros(size + 1, np.int32)
        np.cumsum(np.bincount(flat[flat >= 0], minlength=size), out=start[1:])
        return Inverse(start, order if len(order) else np.zeros(1, np.int32))

    return cached(model, f"{name} inverted onto {size}", build)


def with_inverse(model: Any, name: str, relation: Array, size: int, *, key: str = "") -> dict[str, Array]:
    """Return a relation onto an index set of this size, and its inverse, by name; `key` if the model has several."""
    inverse = invert(model, key or name, relation, size)
    return {name: relation, f"{name}_start": inverse.start, f"{name}_entries": inverse.entries}


def cached(model: Any, name: str, build: Callable[[], Any]) -> Any:
    """Build once for each model, which never changes; anew for any other object, whose arrays may be replaced."""
    if not isinstance(model, Model):
        return build()
    table = memo(model).setdefault("relations", {})
    if name not in table:
        table[name] = build()
    return table[name]
