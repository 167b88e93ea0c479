"""Errors that a user can cause and correct."""

from __future__ import annotations


class InputError(ValueError):
    """An invalid input: where it was found, the constraint that it breaks, the value found, and the remedy."""

    def __init__(self, source: str, constraint: str, found: object, remedy: str) -> None:
        self.source = source
        self.constraint = constraint
        self.found = found
        self.remedy = remedy
        shown = found if isinstance(found, str) else repr(found)
        super().__init__(f"{source}: {constraint}; found {shown}. {remedy}")


class UnphysicalValue(InputError, ArithmeticError):
    """A parameter that no body can have, such as a mass of -1 kg; a search that tries it goes on."""


class StorageError(OSError):
    """A result could not be written (disk full, permission); the message says what is already saved."""


class GraphError(RuntimeError):
    """A graph that cannot give right gradients: freed, changed, or not differentiable."""


class MissingJvp(GraphError):
    """A Function without a jvp in forward mode; reverse mode may do instead."""
