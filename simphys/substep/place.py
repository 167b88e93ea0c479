"""Places of slots in memory: the array, and the position of the first element in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple


class Position(NamedTuple):
    """Position in an array: for the first batch member, row and step, and how far it moves with each of them."""

    begin: int = 0
    each_member: int = 0
    each_row: int = 0
    each_step: int = 0

    def at(self, row: int, step: int) -> int:
        """Position of the first batch member in a row, for a launch whose first row is that of a step."""
        return self.begin + self.each_row * row + self.each_step * step


@dataclass(frozen=True)
class Offset:
    """Position of the first element of a slot in its array."""

    write: Callable[[str], str]
    """Writes it as an expression, for the expression of a row."""
    find: Callable[[Mapping[str, int]], Position] = lambda sizes: Position()
    """Computes it from sizes by name."""
    moves: bool = False
    """True if it depends on the row."""
    by_step: bool = False
    """True if it depends on the step of the first row."""


class Place(NamedTuple):
    """Memory of a slot: elements of an array behind an offset."""

    array: str
    offset: str
    """Name of its `Offset` in the text, "0" for none."""
    by_component: bool = False
    """True for an array of numbers: all first components of the vectors, then all second ones, as sums over elements
    want. False for an array of vectors."""
    is_flat: bool = False
    """True for an array of numbers, one vector after the other."""

    @property
    def is_whole(self) -> bool:
        """True if an entry of the array is an element."""
        return not self.by_component and not self.is_flat
