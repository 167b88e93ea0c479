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

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from simphys.autograd import runtime
from simphys.substep.program import WHOLE
from simphys.substep.schedule import Group
from simphys.substep.text import write_body

from .memory import ARRAY, Layout
from .passes import Pass

FEW = 32
"""Largest number of elements of all loops of a step that is written out."""
LONGEST = 250
"""Largest number of lines of a step that is written out: the compiler's time grows with their square."""

_ACCESS = re.compile(r"\b([A-Za-z_]\w*)\[([^\[\]]*)\](?:\[(\d+)\])?")
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_BRANCH = re.compile(r"if (.*) >= 0:$")
_STATEMENT = re.compile(r"(.*?) (\+?=) (.*)$")
_LOOP = re.compile(r"for (\w+) in range\((.*)\):$")
_INTEGER = re.compile(r"[\w\s()+*/,.-]+$")


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
    lines = []
    for number, group in enumerate(run.groups):
        for k in range(_size(group)):
            lines += write_body(group, layout.places, str(k), f"_{number}_{k}").body
    writer = _Writer(layout, run.scope.relations, integers)
    try:
        return writer.write(lines, backward=backward)
    except _Unknown:
        return None


def _size(group: Group) -> int:
    return 1 if group.domain == WHOLE else group.domain.size


class _Writer:
    """Follows the entries of arrays through the text of a step."""

    def __init__(self, layout: Layout, relations: Mapping[str, Any], integers: Mapping[str, int]) -> None:
        self._layout, self._relations = layout, relations
        self._known = dict(integers)
        """Integers by name: sizes, and local variables that hold an index."""
        self._entries: dict[tuple[str, str, int], str] = {}
        """Local variable of each entry of an array: (array, offset, number)."""
        self._places: dict[str, str] = {}
        """Array's entry by local variable."""
        self._loaded: dict[str, str] = {}
        """Statement of a step that loads an entry which moves with time, by local variable."""
        self._changing: set[str] = set()
        """Local variables of entries that steps write."""
        self._text = Unrolled()

    def write(self, lines: Sequence[str], *, backward: bool) -> Unrolled:
        self._write_block(lines)
        text = self._text
        for (array, offset, _), name in self._entries.items():
            if self._moves(offset):
                continue
            text.before.append(f"{name} = {self._places[name]}")
            if name in self._changing:
                if any([self._moves(other) for other_array, other, _ in self._entries if other_array == array]):
                    raise _Unknown  # the same entry, perhaps, by another name
                text.after.append(f"{self._places[name]} = {name}")
        if not backward:
            self._carry()
        return text

    def _carry(self) -> None:
        """Let a step take over from the one before what that has stored in the next row, where it reads this row."""
        offsets = self._layout.offsets
        for (array, offset, number), name in self._entries.items():
            others = {other for other_array, other, _ in self._entries if other_array == array} - {offset}
            next_row = others.pop() if len(others) == 1 else ""
            if name not in self._loaded or next_row not in offsets:
                continue
            if offsets[next_row].write("t") != offsets[offset].write("t + 1"):
                continue
            stored = self._entries.get((array, next_row, number))
            if stored in self._changing and stored not in self._loaded:
                first = offsets[offset].write("begin")
                self._text.before.append(f"{name} = {array}[{first} + {number}]")
                self._text.step.remove(self._loaded[name])
                self._text.step.append(f"{name} = {stored}")

    def _write_block(self, lines: Sequence[str]) -> None:
        """Write lines and, of a branch or a loop among them, the lines below as often as they run."""
        at = 0
        while at < len(lines):
            below = at + 1
            while below < len(lines) and lines[below].startswith("    "):
                below += 1
            inner = [line[4:] for line in lines[at + 1 : below]]
            if branch := _BRANCH.match(lines[at]):
                self._write_block(inner if self._integer(branch[1]) >= 0 else [])
            elif loop := _LOOP.match(lines[at]):
                for number in range(self._integer(loop[2])):
                    self._known[loop[1]] = number
                    self._write_block(inner)
            elif inner:
                raise _Unknown
            else:
                self._write(lines[at])
            at = below
            if len(self._text.step) > LONGEST:
                raise _Unknown

    def _write(self, line: str) -> None:
        statement = _STATEMENT.match(line)
        if statement is None:
            raise _Unknown
        target, sign, expression = statement.groups()
        expression = _ACCESS.sub(self._read, expression)
        expression = _WORD.sub(lambda word: str(self._known.get(word[0], word[0])), expression)
        self._refuse_arrays(expression)
        if sign == "+=" and target not in self._known and _WORD.fullmatch(target):
            self._text.step.append(f"{target} += {expression}")
        elif access := _ACCESS.fullmatch(target):
            self._store(access, expression)
        elif _INTEGER.match(expression) and (number := self._try_integer(expression)) is not None:
            self._known[target] = number
        elif target in self._known or sign == "+=":
            raise _Unknown
        else:
            self._text.step.append(f"{target} = {expression}")

    def _refuse_arrays(self, expression: str) -> None:
        """Refuse an array in an expression: one that a function takes, or an entry whose number is not known."""
        for word in _WORD.findall(expression):
            if (word.startswith(ARRAY) and not self._stays(word)) or word in self._relations:
                raise _Unknown

    # --- entries of arrays

    def _read(self, access: re.Match[str]) -> str:
        array, at, component = access.groups()
        if array in self._relations:
            return self._read_relation(array, at, component)
        if not array.startswith(ARRAY):
            return access[0]  # a component of a local variable
        found = self._entry(array, at)
        return found if component is None else f"{found}[{component}]"

    def _read_relation(self, name: str, at: str, component: str | None) -> str:
        numbers = self._relations[name]
        if numbers.dtype.kind == "f":
            return self._fixed(name, "", self._integer(at))
        entry = numbers[self._integer(at)]
        return str(int(entry if component is None else entry[int(component)]))

    def _entry(self, array: str, at: str) -> str:
        """Expression of an entry."""
        offset, number = self._split(at)
        key = array, offset, number
        if key in self._entries:
            return self._entries[key]
        if self._stays(array):
            return f"{array}[{_address(offset, number)}]"
        if not self._moves(offset):
            return self._fixed(array, offset, number)
        name = self._entries[key] = self._name()
        self._places[name] = f"{array}[{_address(offset, number)}]"
        self._loaded[name] = f"{name} = {self._places[name]}"
        self._text.step.append(self._loaded[name])
        return name

    def _fixed(self, array: str, offset: str, number: int) -> str:
        """Local variable of an entry that the steps share."""
        key = array, offset, number
        if key not in self._entries:
            name = self._entries[key] = self._name()
            self._places[name] = f"{array}[{_address(offset, number)}]"
        return self._entries[key]

    def _store(self, access: re.Match[str], expression: str) -> None:
        array, at, component = access.groups()
        if component is not None or not array.startswith(ARRAY):
            raise _Unknown
        offset, number = self._split(at)
        key, address = (array, offset, number), f"{array}[{_address(offset, number)}]"
        if self._stays(array):
            self._text.step.append(f"{address} = {expression}")
            return
        if self._moves(offset):
            name = self._entries.setdefault(key, self._name())
            self._text.step += [f"{name} = {expression}", f"{address} = {name}"]
        else:
            name = self._fixed(array, offset, number)
            self._text.step.append(f"{name} = {expression}")
        self._changing.add(name)

    def _name(self) -> str:
        return f"held_{len(self._entries)}"

    def _stays(self, array: str) -> bool:
        return array == f"{ARRAY}adj_control"

    def _moves(self, offset: str) -> bool:
        """True if an offset changes from step to step."""
        return offset in self._layout.offsets and self._layout.offsets[offset].moves

    # --- integers

    def _split(self, at: str) -> tuple[str, int]:
        """Split the position of an entry into a named offset, if any, and a number."""
        name, plus, rest = at.partition(" + ")
        if name in self._layout.offsets:
            return name, self._integer(rest) if plus else 0
        return "", self._integer(at)

    def _integer(self, text: str) -> int:
        number = self._try_integer(_ACCESS.sub(self._read, text))
        if number is None:
            raise _Unknown
        return number

    def _try_integer(self, text: str) -> int | None:
        text = text.replace("ti.max(", "max(").replace("ti.min(", "min(")
        given = {"max": max, "min": min, **self._known}
        if not _INTEGER.match(text) or any([word not in given for word in _WORD.findall(text)]):
            return None
        found = eval(text, {"__builtins__": {}}, given)
        return found if isinstance(found, int) else None


def _address(offset: str, number: int) -> str:
    return f"{offset} + {number}" if offset else str(number)
