"""Errors that a user can cause and correct."""

from __future__ import annotations

from typing import Any


class Portable(Exception):
    """Base of errors whose constructor takes more than a message: they can be pickled, to reach another process."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.args, self.__dict__)


def _restore(kind: type[Portable], arguments: tuple[Any, ...], attributes: dict[str, Any]) -> Portable:
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    error.__dict__.update(attributes)
    return error


class InputError(Portable, ValueError):
    """An invalid input: where it was found, the constraint that it breaks, the value found, and the remedy."""

    def __init__(self, source: str, constraint: str, found: object, remedy: str) -> None:
        self.source = source
        self.constraint = constraint
        self.found = found
        self.remedy = remedy
        shown = found if isinstance(found, str) else repr(found)
        parts = [_cut(part) for part in (source, constraint, shown, remedy)]
        super().__init__("{}: {}; found {}. {}".format(*parts))

    def __reduce__(self) -> tuple[Any, ...]:
        found = self.found if isinstance(self.found, str | int | float | bool | None) else repr(self.found)
        return _restore, (type(self), self.args, {**self.__dict__, "found": found})


def _cut(text: str) -> str:
    """The beginning and the end of a long text: a list printed whole, a path of thousands of characters."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 4 :]}"


_LONGEST = 800


class UnphysicalValue(InputError, ArithmeticError):
    """A parameter that no body can have, such as a mass of -1 kg; a search that tries it goes on."""


class DeviceMemoryError(InputError, MemoryError):
    """A device has no room for an array, and nothing that is not in use could make room."""


class StorageError(OSError):
    """A result could not be written (disk full, permission); the message says what is already saved."""


class GraphError(RuntimeError):
    """A graph that cannot give right gradients: freed, changed, or not differentiable."""


class MissingJvp(GraphError):
    """A Function without a jvp in forward mode; reverse mode may do instead."""
