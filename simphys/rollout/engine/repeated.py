"""Launches that are repeated with the same arrays."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.errors import InputError
from simphys.autograd.kernels import calls, device
from simphys.autograd.kernels.calls import Entries, KernelCall
from simphys.autograd.kernels.fill import fill
from simphys.autograd.kernels.launch import Kernel

from .kernels import Loops
from .memory import LAUNCH

CALLS = 3
"""Launches before the arguments are bound, since binding takes as long as several launches."""

Launch = Callable[[int, int, int], None]
"""A launch for the step of the first row, and the rows to go through."""


class Movable(Protocol):
    """Launches with arguments that move from step to step."""

    launches: list[calls.Launch]

    def move(self, first: int, begin: int, end: int) -> None:
        """Let them take what belongs to the first step and these rows."""


class JoinedLaunch:
    """Launches that follow each other in a step, on a GPU as few as there can be."""

    def __init__(self, parts: Sequence[Movable]) -> None:
        self._parts = parts
        self._launches = calls.join([launch for part in parts for launch in part.launches])

    def __call__(self, first: int, begin: int, end: int) -> None:
        for part in self._parts:
            part.move(first, begin, end)
        for launch in self._launches:
            launch()


def join_launches(launches: Sequence[Any]) -> list[Launch]:
    """Join launches of loops and of operations' kernels that follow each other in a step."""
    if len(launches) == 1 and isinstance(launches[0], StepLaunch):
        return list(launches)
    found: list[Launch] = []
    for movable, group in itertools.groupby(launches, key=lambda launch: hasattr(launch, "move")):
        several: list[Any] = list(group)
        found += [JoinedLaunch(several)] if movable else several
    return found


class StepLaunch:
    """A launch of the loops of a step or, where there is such a kernel, of several steps."""

    def __init__(self, loops: Loops, arguments: tuple[Any, ...], *, often: bool) -> None:
        self._rows = [Entries(None) for _ in LAUNCH]
        self.launches = [KernelCall(loops.kernel, *arguments, moving=[(each, 0) for each in self._rows])]
        self._one = RepeatedLaunch(loops.kernel, arguments, often=often)
        self._several, self._steps = self._one, 0
        if loops.several is not None:
            self._several = RepeatedLaunch(loops.several.kernel, arguments, often=often)
            self._steps = loops.several.steps

    def move(self, first: int, begin: int, end: int) -> None:
        for each, row in zip(self._rows, (first, begin, end), strict=True):
            each.begin = row

    def __call__(self, first: int, begin: int, end: int) -> None:
        (self._several if end - begin == self._steps else self._one)(first, begin, end)


class RepeatedLaunch:
    """A launch with fixed arguments, which a few integers follow at each call."""

    def __init__(self, kernel: Kernel, arguments: tuple[Any, ...], *, often: bool) -> None:
        self._kernel, self._arguments = kernel, arguments
        self._calls_left = 0 if often else CALLS
        self._bound: Callable[..., None] | None = None

    def __call__(self, *scalars: int) -> None:
        if self._calls_left:
            self._calls_left -= 1
            self._kernel(*self._arguments, *scalars)
            return
        if self._bound is None:
            self._bound = self._kernel.bind(*self._arguments)
        self._bound(*scalars)


class Launches:
    """The launches of a pass through a segment.

    `finished` has the row that each batch member has come to on a GPU, where a driver may end the loops of a thread
    before. A launch moves it from its first row to its last only if all its loops went to their ends.
    """

    def __init__(self, launches: Sequence[Launch], finished: Any = None) -> None:
        self._launches, self._finished = launches, finished

    def run(self, first: int, intervals: Sequence[tuple[int, int]], *, backward: bool = False) -> None:
        """Go through rows, interval by interval, from the last to the first if `backward`.

        Errors: InputError where a driver ended a loop.
        """
        if not intervals:
            return
        begin, end = intervals[0][0], intervals[-1][1]
        start, goal = (end, begin) if backward else (begin, end)
        if self._finished is not None:
            fill(self._finished, start)
        for rows in reversed(intervals) if backward else intervals:
            for launch in self._launches:
                launch(first, *rows)
        if self._finished is not None:
            _require_finished(device.to_host(self._finished, self._finished.shape), first, start, goal)


def _require_finished(finished: np.ndarray[Any, Any], first: int, start: int, goal: int) -> None:
    wrong = np.flatnonzero(finished != goal)
    if len(wrong):
        member, step = wrong[0], first + finished[wrong[0]]
        place = f" of batch member {member}" if len(finished) > 1 else ""
        raise InputError(
            f"rollout on {runtime.settings().arch}",
            f"the device goes through all steps from {first + start} to {first + goal}",
            f"its driver ended a loop{place} after step {step}",
            'Compute on the processor: runtime.arch = "cpu".',
        )
