"""Kernels of a generated engine: the loops of a pass inside loops over batch members and time, or a launch a step."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from simphys.autograd import runtime
from simphys.autograd.kernels.device import to_device
from simphys.autograd.kernels.launch import Kernel
from simphys.substep.action import TIME
from simphys.substep.expressions import size_name
from simphys.substep.place import Offset
from simphys.substep.schedule import Group
from simphys.substep.text import (
    SPREAD,
    acts_on_whole,
    block_lines,
    domains_of,
    find_names,
    find_written,
    indent,
    keeps_order,
    launch_lines,
    list_parameters,
    loop_lines,
    make_kernel,
    replace_names,
    spread_lines,
)

from . import forms
from .memory import ARRAY, COUNTS, FINISHED, LAUNCH, ONCE, PROBE, Layout, Variant, require_names
from .packing import Packing, pack
from .passes import Pass
from .registers import Unrolled, unroll


@dataclass(frozen=True)
class Several:
    """A kernel with the loops of several steps, one after the other: a GPU takes longer to launch than to run them."""

    kernel: Kernel
    steps: int


@dataclass(frozen=True)
class Loops:
    """A kernel, and the numbers among its arguments that are known when it is made."""

    kernel: Kernel
    names: tuple[str, ...]
    """Names of the arguments, in order, but for those of LAUNCH at the end."""
    numbers: Mapping[str, float]
    relations: Mapping[str, Any]
    packing: Packing
    offsets: Mapping[str, tuple[Offset, str]] = field(default_factory=dict)
    """Arguments that are parts of the positions of offsets, with the name of that part."""
    brought: dict[Any, dict[str, Any]] = field(default_factory=dict)
    """Index arrays on the device, by the session in force, which all rollouts share."""
    several: Several | None = None
    through_time: bool = False
    """True if a launch goes through any number of rows."""
    groups: tuple[Group, ...] = ()
    """The loops of a step, in order."""

    def relations_on_device(self) -> dict[str, Any]:
        """Bring the index arrays to the device, once."""
        session = runtime.session()
        if session not in self.brought:
            self.brought.clear()  # those of another program have ended with it
            each = self.relations.items()
            self.brought[session] = {name: to_device(array, axes=array.ndim - 1) for name, array in each}
        return self.brought[session]

    def find_offsets(self, known: Mapping[str, Any]) -> dict[str, int]:
        """Compute these arguments from sizes by name."""
        return {name: getattr(offset.find(known), part) for name, (offset, part) in self.offsets.items()}


def build_kernel(
    name: str,
    run: Pass,
    layout: Layout,
    variant: Variant,
    *,
    inputs: Collection[str],
    parallel: bool,
    backward: bool = False,
    in_loops: bool = False,
) -> Loops:
    """Write and compile a pass; `inputs` are the arrays that no pass writes.

    A step of few elements is written out, see registers.py, unless it is to stay `in_loops`.
    """
    options = {"parallel": parallel, "backward": backward, "in_loops": in_loops}
    body = _write_body(run, layout, variant, **options)
    named = find_names(body)
    numbers = {n: number for n, number in sorted(run.scope.numbers.items()) if n in named}
    relations = {n: array for n, array in sorted(run.scope.relations.items(), key=_name) if n in named}
    integers = find_integers(run, layout)
    if runtime.settings().on_gpu:  # a loop whose length the compiler knows is one task of the device, else it is two
        body = replace_names(body, integers)
        named = find_names(body)
    used = [array for array in layout.elements if f"{ARRAY}{array}" in named]
    others = [n for n in COUNTS if n in named]
    integers = {n: size for n, size in sorted(integers.items()) if n in named}
    require_names(layout, {*relations, *numbers, *integers})
    elements = {f"{ARRAY}{array}": layout.elements[array] for array in used}
    parameters = list_parameters(elements, relations, numbers, [*integers, *others])
    parameters |= {FINISHED: "ints"} if FINISHED in named else {}
    packing = Packing()
    if runtime.settings().on_gpu:
        body, parameters, packing = pack(body, parameters, layout, inputs, relations)
    functions = {n: function for n, function in sorted(run.scope.functions.items(), key=_name) if n in named}
    chosen = {"reduced": acts_on_whole(run.groups), "exact": keeps_order(run.all_groups)}
    chosen |= {"alike": variant.alike, "block": bool(variant.lanes)}

    written = find_written(run.all_groups, layout.places) | {FINISHED}

    def make(name: str, body: list[str], *, graph: bool = False) -> Kernel:
        options = {**chosen, "graph": graph}
        return make_kernel(name, {**parameters, **LAUNCH}, body, functions, runtime.real(), written, **options)

    several = None
    steps = forms.count_steps(lines=len(body))
    if variant.gathers and not variant.lanes and runtime.settings().on_gpu and steps > 1:
        lines = _repeat(body, range(steps)[::-1] if backward else range(steps))
        several = Several(make(f"{name}_{steps}_steps", lines, graph=True), steps)
    found: Any = {"several": several, "through_time": bool(variant.lanes), "groups": tuple(run.all_groups)}
    return Loops(make(name, body), tuple(parameters), {**numbers, **integers}, relations, packing, **found)


def _write_body(
    run: Pass, layout: Layout, variant: Variant, *, parallel: bool, backward: bool, in_loops: bool
) -> list[str]:
    """Write the loops of a pass in the form of a variant."""
    if variant.lanes:
        return _block_loop(run, layout, variant, backward=backward)
    if variant.gathers:
        options = {"parallel": parallel, "batched": variant.batched, "cpu": not runtime.settings().on_gpu}
        launched = [launch_lines(group, layout.places, layout.offsets, **options) for group in run.all_groups]
        return expand_time([line for lines in launched for line in lines], ["for _ in range(1):"])
    text = None if in_loops else unroll(run, layout, find_integers(run, layout), backward=backward)
    return _time_loop(text, run, layout, variant, parallel=parallel, backward=backward)


def _repeat(body: list[str], places: Sequence[int]) -> list[str]:
    """Write a step's loops once for each of several steps, in this order, counted from the row `begin`."""
    return [line for place in places for line in replace_names(body, {"begin": f"(begin + {place})"})]


def _name(item: tuple[str, Any]) -> str:
    return item[0]


def find_integers(run: Pass, layout: Layout) -> dict[str, int]:
    """Find the sizes and positions that the text of a pass may name."""
    seen = [slot.value.view.domain for slot in layout.places if slot.value.view is not None]
    found = {size_name(d): d.size for d in [*seen, *domains_of(run.all_groups)]}
    return found | layout.integers


def _time_loop(
    text: Unrolled | None, run: Pass, layout: Layout, variant: Variant, *, parallel: bool, backward: bool
) -> list[str]:
    """Write the loops over batch members and time around those of a step, or around its text."""
    if text is None:
        text = Unrolled(step=_loops(run.groups, layout))
    else:
        text.step = [f"for _ in range({ONCE}):", *indent(text.step)]
    step, later = text.step, _loops(run.deferred, layout)
    fixed = _offsets(layout, [*text.before, *step, *text.after, *later], moving=False)
    time = _time(backward=backward)
    member = [*fixed, *text.before, *time, *indent([*_offsets(layout, step, moving=True), *step]), *text.after]
    member += expand_time(later, [*time, *indent(_offsets(layout, later, moving=True))])
    if runtime.settings().on_gpu:
        member = _note_progress(member, time, backward=backward)
    if not variant.batched:
        return ["ti.loop_config(serialize=True)", "for member in range(1):", *indent(member)]
    if not parallel:
        return ["ti.loop_config(serialize=True)", "for member in range(members):", *indent(member)]
    period = 1 if runtime.settings().on_gpu else SPREAD
    loop = ["for member in range(task * members // tasks, (task + 1) * members // tasks):", *indent(member)]
    return ["ti.loop_config(serialize=False)", *spread_lines("tasks", "task", loop, index="y", period=period)]


def _block_loop(run: Pass, layout: Layout, variant: Variant, *, backward: bool) -> list[str]:
    """Write a loop over batch members, each for a block of threads, with the loop over time inside."""
    lanes = variant.lanes
    step = [line for group in run.groups for line in block_lines(group, layout.places, lanes)]
    later = [line for group in run.deferred for line in block_lines(group, layout.places, lanes)]
    time = _time(backward=backward)
    loop = [*time, *indent([*_offsets(layout, step, moving=True), *step])] if step else []
    member = [*_offsets(layout, [*step, *later], moving=False), *loop]
    member += expand_time(later, [*time, *indent(_offsets(layout, later, moving=True))])
    return [
        f"ti.loop_config(block_dim={lanes})",
        f"for y in range({'members * ' if variant.batched else ''}{lanes}):",
        f"    member = y // {lanes}",
        f"    lane = y % {lanes}",
        *indent(member),
    ]


def _offsets(layout: Layout, lines: list[str], *, moving: bool) -> list[str]:
    """Write the offsets that some lines use: those that move with time, or those that do not."""
    named = find_names(lines)
    used = {name: offset for name, offset in layout.offsets.items() if name in named}
    return [f"{name} = {offset.write('t')}" for name, offset in used.items() if offset.moves == moving]


def _time(*, backward: bool) -> list[str]:
    """Write the head of a loop over time."""
    if backward:
        return ["for back in range(end - begin):", "    t = end - 1 - back"]
    return ["for t in range(begin, end):"]


def _loops(groups: Sequence[Group], layout: Layout) -> list[str]:
    return [line for group in groups for line in loop_lines(group, layout.places)]


def _note_progress(member: list[str], time: list[str], *, backward: bool) -> list[str]:
    """Let a member's loops note the last row, if all of them went to their ends.

    A driver that ends the loops of a thread ends the last ones, too: that over time, or one that comes after it.
    """
    start, goal = ("end", "begin") if backward else ("begin", "end")
    return [
        f"came_to = {start}",
        *member,
        *time,
        f"    came_to = {'t' if backward else 't + 1'}",
        "rounds = 0",
        f"for _ in range({PROBE}):",
        "    rounds += 1",
        f"if {FINISHED}[member] == {start} and came_to == {goal} and rounds == {PROBE}:",
        f"    {FINISHED}[member] = {goal}",
    ]


def expand_time(lines: list[str], head: list[str]) -> list[str]:
    """Write the heads of loops over time in the text of deferred actions."""
    found = []
    for line in lines:
        margin = line[: len(line) - len(line.lstrip())]
        found += [margin + part for part in head] if line.strip() == TIME else [line]
    return found
