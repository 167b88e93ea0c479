"""Sites: the bodies of loops under construction, to which sub-steps write loads, arithmetic and stores."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from simphys.autograd import runtime

from .action import Slot
from .expressions import build_element, size_name, split_element
from .place import Place
from .program import ElementView

NUMBER = re.compile(r"_\d+$")
"""Number of a value among those of one name, without which loops that repeat have the same text."""
TYPES = ("real", "vector", "matrix")
"""Words that name types in the text, with numbers behind them."""


class Entry(NamedTuple):
    """An entry of an array in the text."""

    array: str
    offset: str
    """Name of the `Offset` that it is counted from; empty for none."""
    at: str
    """Expression of its number."""

    def __str__(self) -> str:
        return f"{self.array}[{self.offset} + {self.at}]" if self.offset else f"{self.array}[{self.at}]"


class Site:
    """The body of a loop under construction, at one index: loads and arithmetic first, then stores."""

    def __init__(
        self,
        places: Mapping[Slot, Place],
        index: str,
        suffix: str = "",
        row: str = "",
        line: tuple[str, str] = ("", ""),
        cell: tuple[str, ...] = (),
    ) -> None:
        self._places, self.index, self._suffix = places, index, suffix
        self.row = row
        """Index of the first cell of its row, where a cell lies within the row of a grid, not at its ends."""
        self.line_begin, self.column = line
        """Index of the first cell of any row, and the number of the cell within it, for loops over rows of a grid."""
        self.cell = cell
        """Index of the cell along each axis, in a loop over a part of a grid."""
        self.sums: list[tuple[str, Slot, ElementView]] = []
        """Sums over the elements of a loop: the name of a local variable, and where the sum of each part goes."""
        self.named: dict[str, str] = {}
        """Names of local variables that several actions share, by what they are."""
        self.compute: list[str] = []
        self.stores: list[str] = []
        self.results: list[tuple[Entry, str]] = []
        """Entries that are set at the loop's own index, each with its value."""
        self.has_blocks = False
        """True if some lines are within inner loops or branches."""
        self._indent = ""
        self._known: dict[Slot, str] = {}
        self._pending: dict[Slot, ElementView] = {}
        self._expressions: dict[str, str] = {}
        self._count = 0

    # --- text

    def line(self, text: str) -> None:
        self.compute.append(self._indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Indent the lines of a `with` block below `head`, such as a loop."""
        self.has_blocks = True
        self.line(head)
        self._indent += "    "
        yield
        self._indent = self._indent[4:]

    @contextmanager
    def nest(self, heads: Sequence[str]) -> Iterator[None]:
        """Indent the lines of a `with` block below several heads, each below the one before."""
        with ExitStack() as blocks:
            for head in heads:
                blocks.enter_context(self.block(head))
            yield

    def each(self, name: str, *bounds: str | int) -> Iterator[str]:
        """Write a loop over a range of numbers around the lines of a `for` block, and give the expression of each."""
        with self.block(f"for {name} in range({', '.join(map(str, bounds))}):"):
            yield name

    def loop(self, index: str, size: str) -> Iterator[str]:
        """Write a loop around the lines of a `for` block, whose number is the body's own index."""
        before = self.index, self._known, self._expressions
        for number in self.each(index, size):
            self.index, self._known, self._expressions = number, {}, {}
            yield number
        self.index, self._known, self._expressions = before

    def fresh(self, name: str) -> str:
        """Make a name for a local variable."""
        self._count += 1
        word = NUMBER.sub("", name)
        return f"{f'{word}_value' if word in TYPES else word}_{self._count}{self._suffix}"

    def assign(self, name: str, expression: str) -> str:
        """Assign an expression to a new local variable, and return its name."""
        variable = self.fresh(name)
        self.line(f"{variable} = {expression}")
        return variable

    def integer(self, name: str, expression: str) -> str:
        """Assign an integer expression to a new local variable, and return its name."""
        return self.assign(name, expression)

    def once(self, expression: str) -> str:
        """Assign an integer expression to a local variable, unless one has it already, and return its name."""
        if expression not in self._expressions:
            self._expressions[expression] = self.integer("at", expression)
        return self._expressions[expression]

    # --- entries of arrays

    def read(self, entry: Entry) -> str:
        """Expression of an entry of a slot's array."""
        return str(entry)

    def read_constant(self, relation: str, index: str) -> str:
        """Expression of an entry of an index array, or of an array of the model's numbers."""
        return f"{relation}[{index}]"

    def write(self, entry: Entry, expression: str) -> list[str]:
        """Lines that set an entry of a slot's array."""
        return [f"{entry} = {expression}"]

    # --- elements of slots

    def place(self, slot: Slot) -> Place:
        """Memory of a slot, for bodies that loop over its elements themselves."""
        return self._places[slot]

    def load(self, slot: Slot, view: ElementView) -> str:
        """Name of a local variable with the element at the loop's own index."""
        if slot not in self._known:
            self._known[slot] = self.assign(slot.value.name, self.load_at(slot, view, self.index))
        return self._known[slot]

    def load_at(self, slot: Slot, view: ElementView, index: str) -> str:
        """Expression of an element at another index."""
        place = self._places[slot]
        parts = [self.read(entry) for entry in _list_entries(place, view, index)]
        return build_element(parts, view.element, whole=place.is_whole)

    def load_component(self, slot: Slot, view: ElementView, index: str, component: int) -> str:
        """Expression of a component of an element at another index, of a vector that lies component by component."""
        return self.read(_list_entries(self._places[slot], view, index)[component])

    def store(self, slot: Slot, view: ElementView, expression: str) -> None:
        """Set the element at the loop's own index."""
        self._known[slot] = self.assign(slot.value.name, expression)
        self._pending[slot] = view

    def put(self, slot: Slot, view: ElementView, index: str, expression: str) -> None:
        """Set the element at any index at once, in a body whose parts run in order."""
        for entry, part in self._entries(slot, view, index, self.assign("put", expression)):
            for line in self.write(entry, part):
                self.line(line)

    def add(self, slot: Slot, view: ElementView, expression: str) -> None:
        """Add to the element at the loop's own index."""
        self.store(slot, view, f"{self.load(slot, view)} + {expression}")

    def add_at(self, slot: Slot, view: ElementView, ends: Sequence[tuple[str, str]], expression: str) -> None:
        """Add to elements at other indices, (sign, index) each; the loop then runs in order.

        All are read before one is written, which is faster. If two are the same element, their contributions cancel.
        """
        held = []
        for sign, index in ends:
            for entry, part in self._entries(slot, view, index, expression):
                before = self.fresh("before")
                self.stores.append(f"{before} = {self.read(entry)}")
                held += self.write(entry, f"{before} {sign} {part}")
        self.stores += held

    def sum_up(self, slot: Slot, view: ElementView, expression: str) -> None:
        """Add to the sum of the loop's part."""
        name = self.fresh("sum")
        self.sums.append((name, slot, view))
        self.line(f"{name} += {expression}")

    def add_all(self, terms: Sequence[tuple[Slot, ElementView, str, str]], *, alone: bool = False) -> None:
        """Add to elements at any indices at once: (slot, view, index, name of what is added).

        One after the other, or on a GPU by atomics, unless one thread adds `alone`. All are read before one is written,
        which is faster.
        """
        atomic, stores = runtime.settings().on_gpu and not alone, []
        for slot, view, index, name in terms:
            for entry, part in self._entries(slot, view, index, name):
                if atomic:
                    stores.append(f"{entry} += {part}")
                else:
                    stores += self.write(entry, f"{self.assign('before', self.read(entry))} + {part}")
        for store in stores:
            self.line(store)

    def set_at(self, slot: Slot, view: ElementView, index: str, expression: str) -> None:
        """Set the element at another index."""
        for entry, part in self._entries(slot, view, index, expression):
            self.stores += self.write(entry, part)

    def add_at_guarded(self, slot: Slot, view: ElementView, sign: str, index: str, expression: str) -> None:
        """Add to the element at another index, unless that is negative."""
        lines = self.write_sum(slot, view, sign, index, expression)
        self.stores += [f"if {index} >= 0:", *[f"    {line}" for line in lines]]

    def write_sum(self, slot: Slot, view: ElementView, sign: str, index: str, expression: str) -> list[str]:
        """Lines that add to the element at another index."""
        entries = self._entries(slot, view, index, expression)
        return [line for e, part in entries for line in self.write(e, f"{self.read(e)} {sign} {part}")]

    def _entries(self, slot: Slot, view: ElementView, index: str, expression: str) -> list[tuple[Entry, str]]:
        """Entries of an element in memory, each with the part of an expression for it."""
        place = self._places[slot]
        parts = split_element(expression, view.element, whole=place.is_whole)
        return list(zip(_list_entries(place, view, index), parts, strict=True))

    def has_set(self, slot: Slot) -> bool:
        """True if the element at the loop's own index was set."""
        return slot in self._pending

    def pending(self) -> dict[Slot, ElementView]:
        """Elements at the loop's own index that were set and that have memory."""
        last = {self._places.get(slot): slot for slot in self._pending}  # two slots may share their memory
        return {s: v for s, v in self._pending.items() if s in self._places and last[self._places[s]] is s}

    def flush(self) -> None:
        """Write the elements that were set at the loop's own index to memory, where they have any."""
        for slot, view in self.pending().items():
            self.results += self._entries(slot, view, self.index, self._known[slot])
        self.stores += [line for entry, value in self.results for line in self.write(entry, value)]

    @property
    def body(self) -> list[str]:
        """All lines, in order."""
        return [*self.compute, *self.stores]


def _list_entries(place: Place, view: ElementView, index: str) -> list[Entry]:
    """List the entries of an element in its array: one, or one for each component."""
    if place.is_whole or not view.element:
        indices = [index]
    elif place.is_flat and not place.by_component:
        indices = [f"{view.components} * ({index}) + {c}" for c in range(view.components)]
    else:
        size = size_name(view.domain)
        indices = [f"{c} * {size} + {index}" if c else index for c in range(view.components)]
    return [Entry(place.array, "" if place.offset == "0" else place.offset, at) for at in indices]
