"""Sizes that a scene asks for, judged before anything is allocated; numbers that nothing can compute with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from simphys.autograd.errors import InputError
from simphys.rollout.budget import format_size, measure_free
from simphys.scenefile.section import EACH, Key, Problem, Words

Sizes = Sequence[tuple[Key, int]]
"""Keys of counts, each a number or a list of factors, and the bytes that one counted thing takes at least.

A key that ends in (..., EACH, SQUARE) counts the entries of square matrices, one for each number.
"""
SQUARE = "square"

_NUMERICAL = (MemoryError, ArithmeticError, ValueError, TypeError, IndexError, RecursionError, RuntimeError)


def find_size_problems(sections: Mapping[str, Any], sizes: Sizes) -> list[Problem]:
    """Find the counts whose things do not fit into the free memory."""
    found = [(key, count * each) for pattern, each in sizes for key, count in _counts(sections, pattern, ())]
    if not found:
        return []
    free = measure_free()
    return [
        Problem(
            key,
            f"what it counts must fit into the free memory, {format_size(free)}",
            Words(f"{format_size(size)} or more" if size < 1e15 else "more than any machine has"),
            "Give smaller numbers.",
        )
        for key, size in found
        if size > free
    ]


def _counts(value: Any, rest: Key, key: Key) -> Iterator[tuple[Key, int]]:
    """Yield the places of a pattern with the product of the numbers there, as exact integers."""
    if value is None:
        return
    if rest == (SQUARE,):
        yield key, value**2
    elif not rest:
        factors = value if isinstance(value, list) else [value]
        if all(isinstance(factor, int) for factor in factors):
            yield key, math.prod(factors)
    elif rest[0] == EACH:
        for place, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _counts(inner, rest[1:], (*key, place))
    else:
        inner = value.get(rest[0]) if isinstance(value, Mapping) else getattr(value, str(rest[0]), None)
        yield from _counts(inner, rest[1:], (*key, rest[0]))


@contextmanager
def numerical_errors_as_input_errors(source: str | Callable[[], str]) -> Iterator[None]:
    """Turn an error of arithmetic or of memory into an InputError: numbers of the scene that no check foresees.

    `source` may be a function, for a name that takes long to find.
    """
    try:
        yield
    except InputError:
        raise
    except _NUMERICAL as error:
        constraint = "its numbers must be such that the simulator can compute with them"
        found = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        remedy = "Correct numbers that are very large or small, or sizes of 0; `simphys --debug` shows where it fails."
        raise InputError(source if isinstance(source, str) else source(), constraint, found, remedy) from error
