"""Actions: the loops that a sub-step is made of, as text for the compiler, before they are merged and placed in memory.

An action is a loop over one index set. It says which slots it reads and writes: at its own index, or elsewhere. So
neighbouring actions over the same index set can share a loop, and a value that does not leave that loop is a local
variable.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, KeysView, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from simphys.autograd import runtime
from simphys.simulator import Array, Shape

from .place import Place
from .program import Domain, ElementView, Value

Kind = Literal["value", "adjoint", "tangent", "sum", "row"]
Access = Literal["own", "other"]
SlotArrays = Mapping["Slot", Array]
"""Memory of slots as arrays, for operations that are no loops."""
PassName = Literal["forward", "adjoint", "tangent"]
ArrayKey = tuple[Any, str | int]
"""Kind of an array, and the input's name or the output's number that it belongs to."""

NUMBER = re.compile(r"_\d+$")
"""Number of a value among those of one name, without which loops that repeat have the same text."""
TYPES = ("real", "vector", "matrix")
"""Words that name types in the text, with numbers behind them."""

TIME = "for t in time:"
"""Head of the loop over the steps of a segment, the last step first, in the text of deferred actions."""


@dataclass(slots=True)
class Moment:
    """Batch member and step of a call of an operation, and the notes of its engine, which all calls share."""

    member: int
    step: int
    notes: dict[str, Any]


class Slot(NamedTuple):
    """A place for numbers: a value, its adjoint, its tangent, or its adjoint summed over time by an index set.

    A "row" is an adjoint that is stored for each step of a segment, for deferred sums over time.
    """

    kind: Kind
    value: Value
    over: str = ""
    """Index set of a sum, whose elements each keep their own part; empty where the value's own elements do."""

    def __str__(self) -> str:
        return "_".join([word for word in (self.kind, self.value.name, self.over) if word])

    @property
    def by_component(self) -> bool:
        """True if its vectors lie in memory component by component."""
        if self.value.components_first or self.value.is_flat:
            return self.value.components_first
        by_kind = {"sum": False, "adjoint": self.value.adjoint_by_component}
        return by_kind.get(self.kind, self.value.by_component)

    @property
    def memory_element(self) -> Shape:
        """Shape of an element in memory."""
        return () if self.by_component or self.value.is_flat else self.value.element

    @property
    def memory_count(self) -> int:
        """Number of elements in memory."""
        return self.value.size // math.prod(self.memory_element)


@dataclass(frozen=True, eq=False)
class Action:
    """A loop over an index set."""

    domain: Domain
    emit: Callable[[Site], None]
    """Writes the body of the loop."""
    reads: Mapping[Slot, Access] = field(default_factory=dict)
    writes: Mapping[Slot, Access] = field(default_factory=dict)
    heavy: bool = False
    """True if an element takes so long that a few are worth a thread."""
    width: int = 1
    """Elements that are computed together, before any of them is stored."""
    margin: int = 1
    """Cells at either end of a row of a grid whose bodies differ from those of the cells between."""
    is_long: bool = False
    """True if its body is so long that it is compiled with reduced optimization."""
    in_order: bool = False
    """True if elements add to the same places, so that the loop takes one after the other on a CPU."""
    exact: bool = False
    """True if sums in it keep the order of their terms, as loops of another length have the same terms and zeros."""
    clears: Slot | None = None
    """Slot of the workspace that the action sets to zero, if that is all it does."""
    call: Callable[[SlotArrays, Moment], None] | None = None
    """Operation on whole arrays that the host runs, in place of a loop."""
    launch: Callable[[Mapping[Slot, Any], Moment], Callable[[], None]] | None = None
    """Function that makes, from the `Entries` of slots, launches of kernels of its own, in place of a loop. The moment
    given to it becomes that of each launch."""
    origin: str = ""
    """Sub-step that it belongs to, and which of its passes: shown beside the text, which does not depend on it."""

    @property
    def is_call(self) -> bool:
        """True for an operation on whole arrays, which is no loop."""
        return self.call is not None or self.launch is not None

    def slots(self) -> KeysView[Slot]:
        """Slots that it writes or reads, in this order."""
        return dict.fromkeys([*self.writes, *self.reads]).keys()


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


def identifier(name: str) -> str:
    """Make a name for the text of a kernel of any name, such as "time step"."""
    return re.sub(r"^(?=\d)|\W", "_", name)


def size_name(domain: Domain) -> str:
    """Name of the kernel's argument that holds the size of an index set."""
    return f"n_{domain.name}"


def element_name(shape: Shape) -> str:
    """Name of the type of an element: real, vector_2, matrix_2_2."""
    return {0: "real", 1: "vector", 2: "matrix"}[len(shape)] + "".join([f"_{length}" for length in shape])


def build_element(parts: Sequence[str], shape: Shape, *, whole: bool = False) -> str:
    """Expression of an element from those of its components, or from one of the whole."""
    if whole or not shape:
        return parts[0]
    if len(shape) == 1:
        return f"{element_name(shape)}({', '.join(parts)})"
    rows, columns = shape
    lines = [f"[{', '.join(parts[columns * r : columns * (r + 1)])}]" for r in range(rows)]
    return f"{element_name(shape)}([{', '.join(lines)}])"


def split_element(name: str, shape: Shape, *, whole: bool = False) -> list[str]:
    """Expressions of the components of an element in a local variable, or of the whole."""
    if whole or not shape:
        return [name]
    if len(shape) == 1:
        return [f"{name}[{c}]" for c in range(shape[0])]
    return [f"{name}[{r}, {c}]" for r in range(shape[0]) for c in range(shape[1])]


def zero_element(shape: Shape) -> str:
    """Expression of an element of zeros."""
    return f"{element_name(shape)}(0.0)"


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


def no_loop(site: Site) -> None:
    """Write nothing, for operations that are no loops."""
    raise AssertionError("an operation has no loop")
