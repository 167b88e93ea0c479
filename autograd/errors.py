"""The errors that a user can cause, told so that a user can mend them."""

from __future__ import annotations


class InputError(ValueError):
    """A user's mistake: who noticed it, which constraint was broken, what was found, and the remedy."""

    def __init__(self, who: str, constraint: str, found: object, remedy: str) -> None:
        self.who = who
        self.constraint = constraint
        self.found = found
        self.remedy = remedy
        shown = found if isinstance(found, str) else repr(found)
        super().__init__(f"{who}: {constraint}; found {shown}. {remedy}")


class UnphysicalValue(InputError, ArithmeticError):
    """A parameter that no body can have, such as a mass of -1 kg: a search that tries it survives that."""


class StorageError(OSError):
    """What was computed could not be written (disk full, permission); says what is already safe."""


class GraphError(RuntimeError):
    """A graph was used in a way that cannot give right gradients: freed, changed, or not differentiable."""


class MissingJvp(GraphError):
    """Forward mode met a Function without a jvp; reverse mode may do instead."""
