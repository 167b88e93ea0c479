"""Launches that are repeated with the same arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from simphys.autograd.kernels.launch import Kernel

CALLS = 3
"""Launches before the arguments are bound, since binding takes as long as several launches."""


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


class LaunchSequence:
    """Launches one after the other."""

    def __init__(self, launches: Sequence[Callable[..., None]]) -> None:
        self._launches = launches

    def __call__(self, *scalars: int) -> None:
        for launch in self._launches:
            launch(*scalars)
