"""Kernels of single loops, for long steps: loops that differ only in arrays and numbers are one kernel.

Stages of a step repeat their loops. A kernel for each loop, with names that do not depend on the place in the step, is
compiled once for all of them; and the compiler's passes, whose time grows with the square of a kernel's length, see one
loop at a time.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simphys.autograd import runtime
from simphys.substep.action import Slot
from simphys.substep.place import Offset, Place, Position
from simphys.substep.schedule import Group
from simphys.substep.text import (
    find_names,
    find_written,
    group_options,
    launch_lines,
    list_parameters,
    make_kernel,
    replace_names,
)

from .kernels import Loops, expand_time, find_integers
from .memory import ARRAY, LAUNCH, Layout, Variant, require_names
from .packing import Packing
from .passes import Pass

LONGEST = 400
"""Largest number of lines of loops that are joined though none of them repeats."""
LONGEST_OF_PIECES = 60
"""Likewise, in steps with particles on a grid, whose long loops compile faster one by one."""


class Places(Mapping[Slot, Place]):
    """Places of slots, each in an array of its own that is named by the order of use."""

    def __init__(self, layout: Layout, *, batched: bool) -> None:
        self._layout, self._batched = layout, batched
        self.named: dict[Place, str] = {}
        """Name of the array for each place in memory."""
        self.offsets: dict[str, Offset] = {}
        """Offsets in the text, whose parts are arguments."""

    def __getitem__(self, slot: Slot) -> Place:
        place = self._layout.places[slot]
        if place not in self.named:
            name = self.named[place] = f"a{len(self.named)}"
            text = f"{name}_start + begin * {name}_step"
            if self._batched:
                text += f" + member * {name}_member"
            if self._layout.offset(place).by_step:
                text += f" + first * {name}_first"
            self.offsets[f"{name}_at"] = Offset(lambda row: text)
        name = self.named[place]
        return Place(name, f"{name}_at", place.by_component, place.is_flat)

    def __iter__(self) -> Any:
        return iter(self._layout.places)

    def __len__(self) -> int:
        return len(self._layout.places)


@dataclass(frozen=True)
class Chunk:
    """Loops that run one after the other in one launch, as text whose names do not depend on the place in the step."""

    groups: tuple[Group, ...]
    body: tuple[str, ...]
    places: Places
    numbers: tuple[str, ...]
    """Names of the constant numbers, in the order in which the text names them."""


def build_loops(name: str, run: Pass, layout: Layout, variant: Variant, *, parallel: bool) -> list[Loops]:
    """Write and compile the loops of a pass, in chunks."""

    def write(groups: tuple[Group, ...]) -> Chunk:
        places, body = Places(layout, batched=variant.batched), []
        options = {"parallel": parallel, "batched": variant.batched}
        for group in groups:
            if run.pieces is None:
                body += launch_lines(group, places, places.offsets, **options, cpu=True)
            else:
                body += run.pieces.write_loop(group, places, places.offsets, **options)
        body = expand_time(body, ["for _ in range(1):"])
        numbers = _in_order(body, run.scope.numbers)
        body = replace_names(body, {number: f"number_{k}" for k, number in enumerate(numbers)})
        return Chunk(groups, tuple(body), places, tuple(numbers))

    chunks = [write((group,)) for group in run.all_groups]
    longest = LONGEST if run.pieces is None else LONGEST_OF_PIECES
    return [_compile(name, chunk, run, layout, variant) for chunk in _join(chunks, write, longest)]


def _join(chunks: list[Chunk], write: Callable[[tuple[Group, ...]], Chunk], longest: int) -> list[Chunk]:
    """Join neighbours into fewer launches: pairs that repeat first, then those that occur once, up to a length."""
    while True:
        pairs = [(a.body, b.body) for a, b in itertools.pairwise(chunks)]
        counts = Counter(pairs)
        once = Counter([chunk.body for chunk in chunks])
        pair = max(counts, key=lambda pair: counts[pair], default=None)
        if pair is None or counts[pair] == 1 or pair[0] == pair[1]:
            found = [p for p in pairs if once[p[0]] == once[p[1]] == 1 and len(p[0]) + len(p[1]) <= longest]
            if not found:
                return chunks
            pair = min(found, key=lambda p: len(p[0]) + len(p[1]))
        joined: list[Chunk] = []
        for chunk in chunks:
            if joined and (joined[-1].body, chunk.body) == pair:
                joined[-1] = write(joined[-1].groups + chunk.groups)
            else:
                joined.append(chunk)
        chunks = joined


def _compile(name: str, chunk: Chunk, run: Pass, layout: Layout, variant: Variant) -> Loops:
    body, places = chunk.body, chunk.places
    relations = _in_order(body, run.scope.relations)
    integers = find_integers(run, layout)
    require_names(layout, {*run.scope.relations, *run.scope.numbers, *integers})
    starts: dict[str, tuple[Offset, str]] = {}
    for place, array in places.named.items():
        for word, part in zip(("start", "member", "step", "first"), Position._fields, strict=True):
            starts[f"{array}_{word}"] = layout.offset(place), part
    ints = [*_in_order(body, integers), *_in_order(body, ("members", "pieces")), *_in_order(body, starts)]
    elements = {array: layout.elements[place.array.removeprefix(ARRAY)] for place, array in places.named.items()}
    numbers = [f"number_{k}" for k in range(len(chunk.numbers))]
    parameters = list_parameters(elements, {name: run.scope.relations[name] for name in relations}, numbers, ints)
    functions = {key: run.scope.functions[key] for key in _in_order(body, run.scope.functions)}
    options = group_options(chunk.groups) | {"alike": variant.alike}
    title, written = f"loops_of_{name}", find_written(chunk.groups, places)
    kernel = make_kernel(title, {**parameters, **LAUNCH}, body, functions, runtime.real(), written, **options)
    bound = (*[place.array for place in places.named], *relations, *chunk.numbers, *ints)
    offsets = {key: starts[key] for key in ints if key in starts}
    known = {**run.scope.numbers, **integers}
    return Loops(kernel, bound, known, run.scope.relations, Packing(), offsets, groups=chunk.groups)


def _in_order(body: Sequence[str], names: Any) -> list[str]:
    """List the names that occur in a text, in the order of their first occurrence."""
    wanted = set(names)
    return [word for word in find_names(body) if word in wanted]
