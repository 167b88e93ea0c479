"""Stages of a step: launches of merged loops, and operations on whole arrays that the host runs between them."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.kernels import device
from simphys.autograd.kernels.calls import Chain, Entries, Launch, join
from simphys.simulator import Array, Shape
from simphys.substep.action import Action, Moment, Slot
from simphys.substep.place import Position

from . import forms
from .arrays import copy_elements, to_device
from .kernels import Loops
from .memory import ARRAY, Layout
from .passes import Pass


@dataclass(frozen=True)
class HostStage:
    """An operation between launches, and where the arrays lie that it takes."""

    action: Action
    layout: Layout

    @property
    def names(self) -> list[str]:
        """Names of the arrays that it takes."""
        return [self.layout.places[slot].array for slot in self.action.slots()]

    def bind(
        self, known: Mapping[str, Any], inputs: Mapping[str, Array], notes: dict[str, Any]
    ) -> HostLaunch | KernelLaunch:
        """Bind it to the arrays of an engine, as `inputs`, which lie on the host, or else as `known` arguments."""
        layout = self.layout
        sizes = {**layout.integers, **{name: known[name] for name in ("rows", "dense_rows", "steps") if name in known}}

        def locate(slot: Slot, member: int) -> _Memory:
            place = layout.places[slot]
            name, found = place.array.removeprefix(ARRAY), layout.offset(place).find(sizes)
            at = found._replace(begin=found.begin + found.each_member * member)
            array = inputs[name] if name in inputs else known[name]
            if self.action.launch is not None and name in inputs:
                array = to_device(array, slot.memory_element)
            return (_HostMemory if isinstance(array, np.ndarray) else _DeviceMemory)(array, at, slot)

        members = [{slot: locate(slot, b) for slot in self.action.slots()} for b in range(known["members"])]
        if self.action.launch is not None:
            return KernelLaunch(self.action, members, layout, notes)
        return HostLaunch(self.action, members, layout, notes)


Stage = Loops | HostStage


def count_steps(stages: Sequence[Stage], steps: int) -> int:
    """Count the steps that a launch may have, of a pass through so many."""
    alone = stages[0] if len(stages) == 1 else None
    if not isinstance(alone, Loops):
        return 1
    if alone.through_time:
        return max(steps, 1)
    at_once = 1 if alone.several is None else alone.several.steps
    return at_once if steps >= forms.FEWEST_LAUNCHES * at_once else 1


def split_calls(run: Pass, layout: Layout, build: Callable[[Pass], Sequence[Loops]]) -> Iterator[Stage]:
    """Make the kernels of a pass with `build`, from its loops between operations, and the operations in their place."""
    stages = [(is_call, list(groups)) for is_call, groups in itertools.groupby(run.groups, key=lambda g: g.is_call)]
    if run.deferred and (not stages or stages[-1][0]):
        stages.append((False, []))
    for number, (is_call, groups) in enumerate(stages):
        if is_call:
            actions = [action for group in groups for action in group.actions]
            yield from [HostStage(action, layout) for action in actions if any([s.value.size for s in action.writes])]
        else:
            deferred = run.deferred if number == len(stages) - 1 else []
            yield from build(replace(run, groups=groups, deferred=deferred))


class HostLaunch:
    """An operation of a step, for all batch members, with the arrays of an engine."""

    def __init__(
        self, action: Action, members: Sequence[Mapping[Slot, _Memory]], layout: Layout, notes: dict[str, Any]
    ) -> None:
        assert action.call is not None, "an operation"
        self._run, self._notes, self._action = action.call, notes, action
        self._arrays = [_BySlot(layout, action.slots()) for _ in members]
        self._moving = [[(slot, place) for slot, place in each.items() if not place.is_fixed] for each in members]
        self._copied = [
            [
                (slot, place)
                for slot, place in each.items()
                if isinstance(place, _DeviceMemory) and slot in action.writes
            ]
            for each in members
        ]
        for arrays, each in zip(self._arrays, members, strict=True):
            arrays |= {slot: place.fetch(0, 0, read=True) for slot, place in each.items() if place.is_fixed}

    def __call__(self, first: int, begin: int, end: int) -> None:
        """Run it for the step of row `begin`."""
        assert end == begin + 1, "each step is launched by itself"
        reads = self._action.reads
        for member, arrays in enumerate(self._arrays):
            for slot, place in self._moving[member]:
                arrays[slot] = place.fetch(begin, first, read=slot in reads)
            self._run(arrays, Moment(member, first + begin, self._notes))
            for slot, place in self._copied[member]:
                place.put(arrays[slot], begin, first)


class KernelLaunch:
    """Launches of an operation's own kernels in a step, for all batch members, where the arrays of an engine lie."""

    def __init__(
        self, action: Action, members: Sequence[Mapping[Slot, _Memory]], layout: Layout, notes: dict[str, Any]
    ) -> None:
        assert action.launch is not None, "an operation with kernels of its own"
        self._moments = [Moment(member, 0, notes) for member in range(len(members))]
        self._moving: list[tuple[Entries, Position]] = []
        self.launches: list[Launch] = []
        for places, moment in zip(members, self._moments, strict=True):
            entries = _BySlot(layout, action.slots())
            entries |= {slot: place.entries() for slot, place in places.items()}
            own = Chain(action.launch(entries, moment)).launches
            # Members take the same kernels, if these end with a member.
            self.launches += own if len(members) == 1 else join(own)
            self._moving += [(entries[slot], place.position) for slot, place in places.items() if not place.is_fixed]

    def move(self, first: int, begin: int, end: int) -> None:
        """Let them take what belongs to the step of row `begin`."""
        assert end == begin + 1, "each step is launched by itself"
        for entries, position in self._moving:
            entries.begin = position.at(begin, first)
        for moment in self._moments:
            moment.step = first + begin


class _BySlot(dict[Slot, Any]):
    """Arrays of slots, or their entries; a slot that shares the memory of another has the same."""

    def __init__(self, layout: Layout, slots: Collection[Slot]) -> None:
        super().__init__()
        self._places, self._slots = layout.places, {layout.places[slot]: slot for slot in slots}

    def __missing__(self, slot: Slot) -> Any:
        return self[self._slots[self._places[slot]]]


class _HostMemory:
    """Memory of a slot in an array of the host, which is taken and written in place."""

    def __init__(self, array: Array, position: Position, slot: Slot) -> None:
        length = math.prod(slot.memory_element)
        self._numbers, self._shape, self._size = array.reshape(-1), slot.value.shape, slot.value.size
        self.position = Position(*[length * n for n in position])
        self.is_fixed = not (position.each_row or position.each_step)

    def entries(self) -> Entries:
        return Entries(self._numbers, self.position.begin)

    def fetch(self, row: int, step: int, *, read: bool) -> Array:
        begin = self.position.at(row, step)
        found: Array = self._numbers[begin : begin + self._size].reshape(self._shape)
        return found


class _DeviceMemory:
    """Memory of a slot in an array of the device; its part is copied to the host and back."""

    is_fixed = False

    def __init__(self, array: Any, position: Position, slot: Slot) -> None:
        self._array, self.position = array, position
        self._shape: Shape = slot.value.shape
        self._element, self._count = slot.memory_element, slot.memory_count

    @functools.cached_property
    def _staging(self) -> Any:
        return to_device(np.zeros((self._count, *self._element)), self._element)

    def entries(self) -> Entries:
        assert not self._element, "operations take arrays of numbers"
        return Entries(self._array, self.position.begin)

    def fetch(self, row: int, step: int, *, read: bool) -> Array:
        if not read:
            return np.empty(self._shape, runtime.real_dtype())
        begin = self.position.at(row, step)
        copy_elements(self._element, self._array, begin, self._staging, 0, self._count)
        return device.to_host(self._staging, self._shape).copy()

    def put(self, values: Array, row: int, step: int) -> None:
        self._staging.write(values.reshape(self._count, *self._element))
        copy_elements(self._element, self._staging, 0, self._array, self.position.at(row, step), self._count)


_Memory = _HostMemory | _DeviceMemory
