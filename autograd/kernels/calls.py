"""Launches as objects: several of them, one after the other, become one launch of a GPU.

    calls = [KernelCall(scale, x, 2.0), KernelCall(shift, x, y, moving=[(rows, 0)])]
    launches = join(calls)

A GPU takes longer to launch a short loop than to run it. A kernel whose loops follow each other in another one runs
there as it does alone; integers among the arguments become constants of its text, and lengths of loops are known.
"""

from __future__ import annotations

import functools
import itertools
import linecache
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from . import runtime
from .generated import GeneratedKernel
from .launch import Kernel
from .staging import ARCHS, BINDINGS

ti = runtime.ti

MOST_LINES = 960
"""Largest number of lines of kernels in a launch: compiling takes as long as their text."""

Launch = Callable[[], None]


class Entries:
    """The numbers of an array in row-major order: those of `numbers`, as a kernel takes it, from `begin` on.

    `begin` may change from launch to launch.
    """

    __slots__ = ("begin", "numbers")

    def __init__(self, numbers: Any, begin: int = 0) -> None:
        self.numbers, self.begin = numbers, begin


Place = tuple[Entries, int]
"""The entry of this number, counted from the first one."""


class KernelCall:
    """A launch of a kernel with these arguments, and after them the indices of `moving` entries."""

    def __init__(self, kernel: Kernel, *arguments: Any, moving: Sequence[Place] = ()) -> None:
        self.kernel, self.arguments, self.moving = kernel, arguments, tuple(moving)

    def __call__(self) -> None:
        self._bound(*[entries.begin + number for entries, number in self.moving])

    @functools.cached_property
    def _bound(self) -> Callable[..., None]:
        return self.kernel.bind(*self.arguments)


class Chain:
    """A launch of several, in this order."""

    def __init__(self, *launches: Launch) -> None:
        self.launches: list[Launch] = []
        for launch in launches:
            self.launches += launch.launches if isinstance(launch, Chain) else [launch]

    def __call__(self) -> None:
        for launch in self.launches:
            launch()


def join(launches: Sequence[Launch]) -> list[Launch]:
    """Make one launch of kernels that follow each other, on a GPU, as far as its driver binds their arrays."""
    settings = runtime.settings()
    # For Vulkan Taichi fails at two loops of one kernel in another ("Value does not yet exist").
    if not settings.on_gpu or (runtime.compiler == "taichi" and settings.arch in ARCHS):
        return list(launches)
    return [part[0] if len(part) == 1 else Joined(part) for part in divide(launches)]


def divide(launches: Sequence[Any]) -> Iterator[list[Any]]:
    """Divide launches into those that are joined."""
    part: list[Any] = []
    for launch in launches:
        fits = isinstance(launch, KernelCall) and launch.kernel.may_be_joined
        if part and not (fits and _fit([*part, launch])):
            yield part
            part = []
        part.append(launch)
        if not fits:
            yield part
            part = []
    if part:
        yield part


def _fit(calls: Sequence[KernelCall]) -> bool:
    kinds: dict[int, Any] = {}
    for call in calls:
        for parameter, value in zip(call.kernel.arguments, call.arguments, strict=False):
            # One array cannot be two parameters, as the compiler takes these for apart.
            if parameter.is_array and kinds.setdefault(id(value), _type_of(parameter)) != _type_of(parameter):
                return False
    lines = sum([len(call.kernel.text.splitlines()) for call in calls])
    return lines <= MOST_LINES and (runtime.settings().arch not in ARCHS or len(kinds) <= BINDINGS)


class Joined:
    """The launch of a kernel that has the loops of others."""

    def __init__(self, calls: Sequence[KernelCall]) -> None:
        self._parameters: dict[str, tuple[Any, Any]] = {}
        """Type and value of each parameter, by name."""
        self._places: dict[int, Entries] = {}
        """Entries whose first index is an argument, by identity, in order."""
        self._names: dict[int, str] = {}
        """Names of arrays, by identity."""
        lines = [self._write(number, call) for number, call in enumerate(calls)]
        kinds = {name: kind for name, (kind, _) in self._parameters.items()}
        kinds |= {f"begin_{n}": ti.i32 for n in range(len(self._places))}
        kernels = tuple(call.kernel for call in calls)
        kernel = _compile(tuple(lines), tuple(kinds.items()), kernels, self._written(calls))
        self._bound = kernel.bind(*[value for _, value in self._parameters.values()])

    def __call__(self) -> None:
        self._bound(*[entries.begin for entries in self._places.values()])

    def _write(self, number: int, call: KernelCall) -> str:
        """Write the call of a kernel's loops."""
        each = zip(call.kernel.arguments, call.arguments, strict=False)
        given = [self._argument(call.kernel.kinds[parameter.name], value) for parameter, value in each]
        return f"call_{number}({', '.join([*given, *[self._index(*place) for place in call.moving]])})"

    def _argument(self, kind: Any, value: Any) -> str:
        if isinstance(value, int | np.integer):
            return repr(int(value))
        name = self._names.get(id(value), f"given_{len(self._parameters)}")
        self._parameters[name] = kind, value
        if not isinstance(value, float):
            self._names[id(value)] = name
        return name

    def _index(self, entries: Entries, number: int) -> str:
        self._places.setdefault(id(entries), entries)
        name = f"begin_{list(self._places).index(id(entries))}"
        return f"{name} + {number}" if number else name

    def _written(self, calls: Sequence[KernelCall]) -> frozenset[str]:
        each = [pair for call in calls for pair in zip(call.kernel.arguments, call.arguments, strict=False)]
        return frozenset([self._names[id(value)] for parameter, value in each if parameter.written])


def _type_of(parameter: Any) -> tuple[Any, ...]:
    return parameter.element, parameter.ndim, parameter.dtype


_numbers = itertools.count()


@functools.lru_cache(maxsize=64)
def _compile(
    lines: tuple[str, ...], kinds: tuple[tuple[str, Any], ...], kernels: tuple[Kernel, ...], written: frozenset[str]
) -> Kernel:
    name = f"{kernels[0].name}_to_{kernels[-1].name}"
    space: dict[str, Any] = {f"call_{n}": _as_function(kernel) for n, kernel in enumerate(kernels)}
    space |= {f"{parameter}_type": kind for parameter, kind in kinds}
    listed = ", ".join([f"{parameter}: {parameter}_type" for parameter, _ in kinds])
    text = "\n".join([f"def {name}({listed}):", *[f"    {line}" for line in lines]]) + "\n"
    file = f"<simphys {name} joined {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec", dont_inherit=True), space)
    exact, reduced = any([kernel.exact for kernel in kernels]), all([kernel.reduced for kernel in kernels])
    return GeneratedKernel(space[name], exact=exact, reduced=reduced, graph=True, written=written)


def _as_function(kernel: Kernel) -> Any:
    """Make a function of a kernel, which takes arguments as they are: its loops are then loops of the caller."""
    source: Any = kernel.source
    function = FunctionType(source.__code__, source.__globals__, source.__name__, None, source.__closure__)
    function.__annotations__ = {name: ti.template() for name in kernel.parameters}
    return ti.func(function)
