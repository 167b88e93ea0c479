"""A kernel compiled for certain types, with a launch context, by private interfaces of both compilers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import zip_longest
from operator import attrgetter
from typing import Any
from weakref import WeakSet

from ..errors import InputError
from . import runtime
from .arguments import Parameter, Put

ti = runtime.ti

_QUADRANTS = runtime.compiler == "quadrants"


def make_kernel(source: Callable[..., Any]) -> Any:
    """Make a kernel by the compiler's decorator; the compiler, which would hold it for ever, forgets it."""
    known = home().kernels
    before = len(known)
    made = ti.kernel(source)
    del known[before:]
    return made


@contextmanager
def reduced_optimization() -> Iterator[None]:
    """Compile kernels in this context without passes whose time grows with the square of a kernel's length.

    LLVM, which comes after them, finds most of the same again.
    """
    config = ti.lang.impl.current_cfg()
    saved = config.advanced_optimization, config.cfg_optimization
    config.advanced_optimization = config.cfg_optimization = False
    try:
        yield
    finally:
        config.advanced_optimization, config.cfg_optimization = saved


class Variant:
    """A kernel compiled for the dtypes and dimensions of certain values, with a launch context."""

    def __init__(self, name: str, kernel: Any, arguments: list[Parameter], values: list[Any], *, alike: bool) -> None:
        self._name = name
        self._arguments = arguments
        self.ended = False
        primal = kernel._primal
        self._home = home()
        program = self._home.prog
        primal.raise_on_templated_floats = False  # quadrants reads it, the public call sets it
        with _in_this_thread() if runtime.settings().threads == 1 and not alike else nullcontext():
            given = [argument.stand_in(value) for argument, value in zip(arguments, values, strict=False)]
            key = primal.ensure_compiled(*given, *[0] * (len(arguments) - len(given)))
        self._launchable = (primal.materialized_kernels if _QUADRANTS else primal.compiled_kernels)[key]
        compiled = program.compile_kernel(program.config(), program.get_device_caps(), self._launchable)
        self._compiled = compiled.compiled_kernel_data if _QUADRANTS else compiled
        self._launch_kernel = program.launch_kernel
        self.context, self.puts = self._new_context(values)
        _live.add(self)

    def _new_context(self, values: list[Any]) -> tuple[Any, list[Put]]:
        """A launch context, and a function for each argument that checks it and puts it there."""
        context = self._launchable.make_launch_context()
        pairs = zip_longest(self._arguments, values)
        return context, [argument.put_into(context, i, value) for i, (argument, value) in enumerate(pairs)]

    def bound_context(self, arguments: tuple[Any, ...], values: list[Any]) -> tuple[Any, list[Put]]:
        """A launch context with these arguments, checked values, and functions that put the scalars after them."""
        context, puts = self._new_context(values)
        for put, value in zip(puts, arguments, strict=False):
            put(value)
        return context, puts[len(arguments) :]

    def end(self) -> None:
        """Drop the references to the program."""
        self.ended = True
        self._launchable = self._compiled = self._launch_kernel = self.context = None
        self.puts = []

    def launch(self, context: Any) -> None:
        if program_of(self._home) is None:  # to launch a kernel of an ended session is a segmentation fault
            raise started_twice(self._name)
        self._launch_kernel(self._compiled, context)


@contextmanager
def _in_this_thread() -> Iterator[None]:
    """Compile loops for the launching thread: 3-10 us faster than to wake another one, and without its atomics."""
    builder = ti._lib.core.ASTBuilder
    names = ("begin_frontend_range_for", "begin_frontend_struct_for_on_external_tensor")
    originals = [getattr(builder, name) for name in names]

    def serialized(begin: Any) -> Any:
        def begin_serialized(self: Any, *loop: Any) -> Any:
            self.strictly_serialize()
            return begin(self, *loop)

        return begin_serialized

    for name, original in zip(names, originals, strict=True):
        setattr(builder, name, serialized(original))
    try:
        yield
    finally:
        for name, original in zip(names, originals, strict=True):
            setattr(builder, name, original)


home = ti.lang.impl.get_runtime
_live: WeakSet[Variant] = WeakSet()


def _end() -> None:
    for variant in list(_live):
        variant.end()


runtime.before_end(_end)
program_of = attrgetter("_prog" if _QUADRANTS else "prog")


def started_twice(name: str) -> InputError:
    remedy = "Remove it; runtime.init(arch=, precision=, threads=) makes these choices."
    return InputError(
        f"kernel {name}", "the compiler is started by runtime.init alone", "a ti.init or ti.reset", remedy
    )
