"""Text of a step of few elements: written out element by element, with the state in local variables.

Loops over a handful of elements cost more than their arithmetic: indices are looked up, bounds are compared, and what
one loop stores is loaded by the next. Here an element's number is a constant, indices of other elements are read from
their arrays when the text is written, and an entry of an array is a local variable, which lives in a register:
entries that do not move with time are loaded before the loop over time, and stored after it where steps change them. A
step takes the state over from the one before, in registers, too, and stores it as a row of the trajectory.

Each step stands in a loop of one round, whose number the compiler does not know. Otherwise it would see several steps
at once and join their arithmetic, so that results would depend on the number of steps in a launch by rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple, NoReturn

import numpy as np

from simphys.autograd import runtime
from simphys.substep.action import Slot
from simphys.substep.program import WHOLE, ElementView
from simphys.substep.schedule import Group
from simphys.substep.site import Entry, Site
from simphys.substep.text import fill_body

from .memory import ARRAY, Layout
from .passes import Pass

FEW = 32
"""Largest number of elements of all loops of a step that is written out."""
LONGEST = 250
"""Largest number of lines of a step that is written out: the compiler's time grows with their square."""

IN_MEMORY = f"{ARRAY}adj_control"
"""Array whose entries have no local variables."""


class _Unknown(Exception):
    """Text that cannot be written out, or that is too long for it."""


@dataclass
class Unrolled:
    """A step's text, and what comes before and after the loop over time."""

    before: list[str] = field(default_factory=list)
    step: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


def fit_registers(loops: Sequence[Group]) -> bool:
    """Tell whether a step of these loops has so few elements that it is written out."""
    return not runtime.settings().on_gpu and sum([_size(group) for group in loops]) <= FEW


def unroll(run: Pass, layout: Layout, integers: Mapping[str, int], *, backward: bool) -> Unrolled | None:
    """Write out a step; None where that is too long, or where a loop's rounds or an index are not known."""
    if not fit_registers(run.groups):
        return None
    registers = _Registers(layout, run.scope.relations, integers)
    try:
        for number, group in enumerate(run.groups):
            for k in range(_size(group)):
                body = _Body(registers, str(k), f"_{number}_{k}")
                registers.text.step += fill_body(body, group).body
        return registers.finish(backward=backward)
    except _Unknown:
        return None


def _size(group: Group) -> int:
    return 1 if group.domain == WHOLE else group.domain.size


class _Key(NamedTuple):
    """An entry of an array: its number from an offset on, or from the beginning."""

    array: str
    offset: str
    number: int

    def __str__(self) -> str:
        return str(Entry(self.array, self.offset, str(self.number)))


class _Registers:
    """The local variables that hold entries of arrays while a step is written out."""

    def __init__(self, layout: Layout, relations: Mapping[str, Any], integers: Mapping[str, int]) -> None:
        self.layout, self.relations, self.text = layout, relations, Unrolled()
        self._integers = {**integers, "ti": SimpleNamespace(max=max, min=min), "__builtins__": {}}
        self.names: dict[_Key, str] = {}
        self.loads: dict[_Key, str] = {}
        """Statements of a step that load an entry which moves with time."""
        self.changing: set[_Key] = set()
        """Entries that steps write."""

    def integer(self, expression: str) -> int | None:
        """Compute an integer; None if an expression is none, or takes what is not known."""
        try:
            found = eval(expression, self._integers, self.relations)
        except (AttributeError, NameError, TypeError):
            return None
        return int(found) if isinstance(found, int | np.integer) else None

    def require_integer(self, expression: str) -> int:
        found = self.integer(expression)
        if found is None:
            raise _Unknown
        return found

    def find(self, entry: Entry) -> _Key:
        """Find the number of an entry."""
        return _Key(entry.array, entry.offset, self.require_integer(entry.at))

    def hold(self, key: _Key) -> str:
        """Return the local variable of an entry."""
        return self.names.setdefault(key, f"held_{len(self.names)}")

    def moves(self, key: _Key) -> bool:
        """True if an entry lies elsewhere from step to step."""
        return bool(key.offset) and self.layout.offsets[key.offset].moves

    def finish(self, *, backward: bool) -> Unrolled:
        """Write what comes before and after the loop over time."""
        for key, name in self.names.items():
            if self.moves(key):
                continue
            self.text.before.append(f"{name} = {key}")
            if key in self.changing:
                if any([self.moves(other) for other in self.names if other.array == key.array]):
                    raise _Unknown  # the same entry, perhaps, by another name
                self.text.after.append(f"{key} = {name}")
        if not backward:
            self._carry()
        return self.text

    def _carry(self) -> None:
        """Let a step take over from the one before what that has stored in the next row, where it reads this row."""
        offsets = self.layout.offsets
        for key, load in self.loads.items():
            others = {other.offset for other in self.names if other.array == key.array} - {key.offset}
            next_row = others.pop() if len(others) == 1 else ""
            if not next_row or offsets[next_row].write("t") != offsets[key.offset].write("t + 1"):
                continue
            stored = key._replace(offset=next_row)
            if stored in self.changing and stored not in self.loads:
                first, name = offsets[key.offset].write("begin"), self.names[key]
                self.text.before.append(f"{name} = {key.array}[{first} + {key.number}]")
                self.text.step.remove(load)
                self.text.step.append(f"{name} = {self.names[stored]}")


class _Body(Site):
    """The body of a loop, written out for one of its elements."""

    def __init__(self, registers: _Registers, index: str, suffix: str) -> None:
        super().__init__(registers.layout.places, index, suffix)
        self._registers = registers

    def line(self, text: str) -> None:
        super().line(text)
        if len(self._registers.text.step) + len(self.compute) > LONGEST:
            raise _Unknown

    def block(self, head: str) -> NoReturn:
        raise _Unknown

    def each(self, name: str, *bounds: str | int) -> Iterator[str]:
        yield from map(str, range(*[self._registers.require_integer(str(bound)) for bound in bounds]))

    def integer(self, name: str, expression: str) -> str:
        number = self._registers.integer(expression)
        return super().integer(name, expression) if number is None else str(number)

    def place(self, slot: Slot) -> NoReturn:
        raise _Unknown  # a body that loops over the array itself

    def read(self, entry: Entry) -> str:
        registers, key = self._registers, self._registers.find(entry)
        if entry.array == IN_MEMORY:
            return str(key)
        if key not in registers.names and registers.moves(key):
            registers.loads[key] = f"{registers.hold(key)} = {key}"
            self.line(registers.loads[key])
        return registers.hold(key)

    def read_constant(self, relation: str, index: str) -> str:
        if self._registers.relations[relation].dtype.kind == "f":
            return self._registers.hold(self._registers.find(Entry(relation, "", index)))
        return str(self._registers.require_integer(f"{relation}[{index}]"))

    def write(self, entry: Entry, expression: str) -> list[str]:
        registers, key = self._registers, self._registers.find(entry)
        if entry.array == IN_MEMORY:
            return [f"{key} = {expression}"]
        registers.changing.add(key)
        lines = [f"{registers.hold(key)} = {expression}"]
        return [*lines, f"{key} = {registers.hold(key)}"] if registers.moves(key) else lines

    def add_at_guarded(self, slot: Slot, view: ElementView, sign: str, index: str, expression: str) -> None:
        if self._registers.require_integer(index) >= 0:
            self.stores += self.write_sum(slot, view, sign, index, expression)
