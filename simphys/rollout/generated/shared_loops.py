"""Kernels of single loops, for long steps: loops that differ only in arrays and numbers are one kernel.

Stages of a step repeat their loops. A kernel for each loop, with names that do not depend on the place in the step, is
compiled once for all of them; and the compiler's passes, whose time grows with the square of a kernel's length, see one
loop at a time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from simphys.autograd import runtime
from simphys.substep.action import Place, Slot, element_name
from simphys.substep.schedule import Group
from simphys.substep.text import acts_on_whole, domains_of, index_type, launch_lines, make_kernel, uses_name

from .kernels import LAUNCH, Loops, expand_time, find_integers
from .memory import ARRAY, Layout, Variant
from .packing import Packing
from .passes import Pass


class Places(Mapping[Slot, Place]):
    """Places of slots, each in an array of its own that is named by the order of use."""

    def __init__(self, layout: Layout, *, batched: bool) -> None:
        self._layout, self._batched = layout, batched
        self.named: dict[Place, str] = {}
        """Name of the array for each place in memory."""
        self.offsets: dict[str, str] = {}
        """Expression of each offset in the text."""

    def __getitem__(self, slot: Slot) -> Place:
        place = self._layout.places[slot]
        if place not in self.named:
            name = self.named[place] = f"a{len(self.named)}"
            text = f"{name}_start + begin * {name}_step"
            if self._batched:
                text += f" + member * {name}_member"
            if uses_name([self.expression(place)], "first"):
                text += f" + first * {name}_first"
            self.offsets[f"{name}_at"] = text
        name = self.named[place]
        return Place(name, f"{name}_at", place.by_component)

    def __iter__(self) -> Any:
        return iter(self._layout.places)

    def __len__(self) -> int:
        return len(self._layout.places)

    def expression(self, place: Place) -> str:
        """Expression of a place's offset in memory, from the batch member, the row t and sizes."""
        return self._layout.offsets.get(place.offset, place.offset)


def build_loops(name: str, run: Pass, layout: Layout, variant: Variant, *, parallel: bool) -> list[Loops]:
    """Write and compile each loop of a pass."""
    return [build_loop(name, group, run, layout, variant, parallel=parallel) for group in run.all_groups]


def build_loop(name: str, group: Group, run: Pass, layout: Layout, variant: Variant, *, parallel: bool) -> Loops:
    """Write and compile a loop."""
    places = Places(layout, batched=variant.batched)
    lines = launch_lines(group, places, places.offsets, parallel=parallel, batched=variant.batched, cpu=True)
    body = expand_time(lines, ["for _ in range(1):"])
    numbers = _in_order(body, run.scope.numbers)
    body = _rename(body, {number: f"number_{k}" for k, number in enumerate(numbers)})
    relations = _in_order(body, run.scope.relations)
    integers = find_integers(run, layout)
    sizes = _in_order(body, [f"n_{domain.name}" for domain in domains_of(run.all_groups)] + list(integers))
    others = _in_order(body, ("members", "pieces"))
    starts: dict[str, tuple[str, str]] = {}
    for place, array in places.named.items():
        for part, variable in (("start", ""), ("step", "t"), ("member", "member"), ("first", "first")):
            starts[f"{array}_{part}"] = (places.expression(place), variable)
    ints = [*sizes, *others, *_in_order(body, starts)]
    parameters = {
        **{
            a: f"array_{element_name(layout.elements[place.array.removeprefix(ARRAY)])}"
            for place, a in places.named.items()
        },
        **{relation: index_type(run.scope.relations[relation]) for relation in relations},
        **{f"number_{k}": "real" for k in range(len(numbers))},
        **dict.fromkeys(ints, "i32"),
    }
    functions = {key: run.scope.functions[key] for key in _in_order(body, run.scope.functions)}
    kernel = make_kernel(
        f"loop_of_{name}", {**parameters, **LAUNCH}, body, functions, runtime.real(),
        reduced=acts_on_whole([group]), alike=variant.alike,
    )  # fmt: skip
    bound = [place.array for place in places.named] + relations + list(numbers) + ints
    return Loops(
        kernel, tuple(bound), {**run.scope.numbers, **integers}, run.scope.relations, Packing(),
        {key: starts[key] for key in ints if key in starts},
    )  # fmt: skip


def _in_order(body: Sequence[str], names: Any) -> list[str]:
    """List the names that occur in a text, in the order of their first occurrence."""
    wanted = set(names)
    words = dict.fromkeys(re.findall(r"\b[A-Za-z_]\w*\b", "\n".join(body)))
    return [word for word in words if word in wanted]


def _rename(body: Sequence[str], changes: Mapping[str, str]) -> list[str]:
    if not changes:
        return list(body)
    words = re.compile(rf"\b({'|'.join(changes)})\b")
    return [words.sub(lambda found: changes[found[1]], line) for line in body]
