"""Records, which are dataclasses of Tensors, as arguments and results of functions in torch: field by field."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from ..compose.replay import Step, name_of
from ..tensor import Tensor


def holds_tensors(value: Any, kind: type) -> bool:
    """True for a record, some of whose fields are tensors of this kind."""
    return _is_record(value) and any([isinstance(getattr(value, each), kind) for each in _names(value)])


class FlatArguments:
    """Arguments, of which records are replaced by their fields that are tensors of torch."""

    def __init__(self, inputs: Sequence[Any], kind: type) -> None:
        self._inputs, self._fields = inputs, [_tensor_fields(x, kind) for x in inputs]
        parts = [[x] if fields is None else [getattr(x, each) for each in fields] for x, fields in self._pairs()]
        self.values = [value for part in parts for value in part]
        """The arguments one by one."""

    def rebuild(self, values: Sequence[Any]) -> list[Any]:
        """Put values in their places in the records."""
        left = iter(values)
        return [
            next(left) if fields is None else dataclasses.replace(x, **{each: next(left) for each in fields})
            for x, fields in self._pairs()
        ]

    def _pairs(self) -> list[tuple[Any, list[str] | None]]:
        return list(zip(self._inputs, self._fields, strict=True))


class flattened:
    """A function that returns the fields of a record as a tuple, and then makes the record of them again."""

    def __init__(self, fn: Step, arguments: Callable[[Sequence[Any]], Sequence[Any]] | None = None) -> None:
        self.__name__ = name_of(fn)
        self._fn, self._arguments = fn, arguments or list
        self._record: Any = None

    def __call__(self, *values: Any) -> Any:
        result = self._fn(*self._arguments(values))
        self._record = result if _is_record(result) else None
        return result if self._record is None else tuple([getattr(result, each) for each in _names(result)])

    def rebuild(self, found: Any) -> Any:
        """Make a record of tensors of torch, if the function has returned one."""
        if self._record is None:
            return found
        values = dict(zip(_names(self._record), found, strict=True))
        return dataclasses.replace(self._record, **values)


def _is_record(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, (type, Tensor))


def _names(record: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(record)]


def _tensor_fields(value: Any, kind: type) -> list[str] | None:
    """Name the fields of a record that are tensors of this kind; None for another value."""
    if not holds_tensors(value, kind):
        return None
    return [each for each in _names(value) if isinstance(getattr(value, each), kind)]
