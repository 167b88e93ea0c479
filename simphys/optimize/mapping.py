"""Functions of many arguments, computed one after another or by the workers of an engine.

Searches, recoveries, profiles and checks take a `Map`: by default Python's own `map`, which computes a value when it is
asked for. `simphys.app.mapping.map_on` makes one of any executor.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache
from typing import Any, Generic, TypeVar

T = TypeVar("T")

Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]
"""Function like `map` with one iterable, whose values come in order. Function, arguments and values can be pickled."""


class Carried(Generic[T]):
    """A value that many tasks share. It travels to another process as bytes, and is made of them once there.

    So what it remembers stays: kernels that belong to a model, results of earlier tasks.
    """

    def __init__(self, value: T) -> None:
        self.value = value

    @cached_property
    def _content(self) -> bytes:
        return pickle.dumps(self.value)

    def __reduce__(self) -> tuple[Any, ...]:
        return _carry, (self._content,)


@lru_cache(maxsize=4)
def _carry(content: bytes) -> Carried[Any]:
    return Carried(pickle.loads(content))
