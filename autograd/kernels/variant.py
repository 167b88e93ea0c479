"""A kernel compiled for certain types, with a launch context, by private interfaces of both compilers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import zip_longest
from operator import attrgetter
from typing import Any
from weakref import WeakSet

from ..errors import InputError
from . import runtime, stored
from .arguments import Parameter, Put
from .compiler import COMPILERS, VARIABLE, installed
from .fingerprint import fingerprint
from .front_end import skip_discovery

ti = runtime.ti

_QUADRANTS = runtime.compiler == "quadrants"


_CACHES = "cache_loop_invariant_global_vars"


def make_kernel(source: Callable[..., Any]) -> Any:
    """Make a kernel by the compiler's decorator; the compiler, which would hold it for ever, forgets it."""
    known = home().kernels
    before = len(known)
    made = ti.kernel(source)
    del known[before:]
    skip_discovery(made._primal)
    return made


@contextmanager
def compiling(*, reduced: bool, wide: bool, exact: bool = False, block: bool = False) -> Iterator[None]:
    """Compile kernels in this context with other options of the compiler.

    With `reduced`, it leaves out passes whose time grows with the square of a kernel's length; LLVM, which comes after
    them, finds most of the same again. With `wide`, it loads and stores whole vectors, where it else goes by number.
    With `exact`, sums keep the order of their terms, which fast arithmetic groups by the length of a loop.
    With `block`, a loop reads memory again in each round, as other threads may have written there.
    """
    config = ti.lang.impl.current_cfg()
    names = "advanced_optimization", "cfg_optimization", "real_matrix_scalarize", "fast_math", _CACHES
    saved = {name: getattr(config, name) for name in names}
    if reduced:
        config.advanced_optimization = config.cfg_optimization = False
    if wide:
        config.real_matrix_scalarize = False
    if exact:
        config.fast_math = False
    if block:
        setattr(config, _CACHES, False)
    try:
        yield
    finally:
        for name, value in saved.items():
            setattr(config, name, value)


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
        chosen = runtime.settings()
        serial = chosen.threads == 1 and not alike and not chosen.on_gpu
        types = [(str(getattr(value, "dtype", "")), getattr(value, "ndim", 0)) for value in values]
        mark = _fingerprint(kernel, program, (name, serial, types))
        primal.stored = stored.load(mark, program, name)
        with _in_this_thread() if serial else nullcontext():
            given = [argument.stand_in(value) for argument, value in zip(arguments, values, strict=False)]
            key = primal.ensure_compiled(*given, *[0] * (len(arguments) - len(given)))
        self._launchable = (primal.materialized_kernels if _QUADRANTS else primal.compiled_kernels)[key]
        self._compiled = primal.stored or self._compile(program, mark)
        primal.stored = None
        self._launch_kernel = program.launch_kernel
        self.context, self.puts = self._new_context(values)
        _live.add(self)

    def _compile(self, program: Any, mark: str | None) -> Any:
        """Compile, or find it in the compiler's cache; store where it is there."""
        try:
            found = program.compile_kernel(program.config(), program.get_device_caps(), self._launchable)
        except RuntimeError as error:
            raise _not_compiled(self._name, error) from error
        if not _QUADRANTS:
            return found
        stored.store(mark, program, found.cache_key)
        return found.compiled_kernel_data

    def _new_context(self, values: list[Any]) -> tuple[Any, list[Put]]:
        """A launch context, and a function for each argument that checks it and puts it there."""
        context = self._make_context()
        pairs = zip_longest(self._arguments, values)
        return context, [argument.put_into(context, i, value) for i, (argument, value) in enumerate(pairs)]

    def _make_context(self) -> Any:
        return self._launchable.make_launch_context()

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
        self._require_program()
        self._launch_kernel(self._compiled, context)

    def _require_program(self) -> None:
        """Raise where the program has ended: to launch one of its kernels is a segmentation fault."""
        if program_of(self._home) is None:
            raise started_twice(self._name)


def _not_compiled(name: str, error: RuntimeError) -> InputError:
    """The error for a kernel that is right, and that the compiler's own passes cannot bring to the arch."""
    (other,) = set(COMPILERS) - {runtime.compiler}
    arch = runtime.settings().arch
    remedy = f"Start Python with {VARIABLE}={other}" + ("" if installed(other) else f" (pip install {other})")
    if arch != "cpu":
        remedy += ", or take arch cpu"
    found = str(error).partition(". ")[0].partition("\n")[0]
    return InputError(f"kernel {name}", f"{runtime.compiler} compiles it for {arch}", found, f"{remedy}.")


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


def _fingerprint(kernel: Any, program: Any, circumstances: Any) -> str | None:
    """Hash a kernel, to find it in a cache; None with Taichi, which has no such cache."""
    if not _QUADRANTS:
        return None
    device = program.get_device_caps().hashed_key()
    return fingerprint(kernel.fn, ti.__version__, device, stored.circumstances(program.config()), circumstances)


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
