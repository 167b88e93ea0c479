"""The kernel compiler, which only this module imports, and the settings that kernels are compiled for.

`init` puts settings in force: arch, precision and number of threads. Another call with other settings switches to them.
Tensors are NumPy memory and stay the same. Kernels belong to settings: a kernel is compiled at its first launch under
them, and found again when they return.

Kernels come from factories that are called after `init`, because annotations bind the precision:

    @functools.cache
    def kernels(real): ...
        @kernel
        def forward(x: ti.types.ndarray(dtype=real, ndim=1), ...): ...

Other values that depend on settings, such as workspaces, are cached by `runtime.cached`.

One program of the compiler holds the kernels of all settings, since precision and threads are read when a kernel is
compiled. Another arch, or more threads than the program was started with, need another program: the compiler starts
again, all kernels are compiled anew (mostly from its cache on disk), and memory on a device is lost.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import os
import platform
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, overload

import numpy as np

from ..errors import InputError
from ..mode import switch
from . import cache_folder
from .compiler import COMPILERS, VARIABLE, chosen, installed, load
from .counters import counters as counters
from .front_end import hasten, live_arrays
from .settings import ARCHS as ARCHS
from .settings import BY_SHADERS, GPUS, Settings, is_arithmetic_fast, require_known
from .threads import Threads, count_threads
from .vulkan import software_driver

compiler = chosen()
"""Name of the kernel compiler of this process."""
ti: Any = load(compiler)
hasten(ti)
_arrays = live_arrays(ti) if compiler == "taichi" else ()  # quadrants takes care of them itself

_FOLDER = cache_folder.find(compiler, ti)
_OPTIONS: dict[str, Any] = {
    "offline_cache_max_size_of_files": cache_folder.BYTES,
    "offline_cache_file_path": _FOLDER,
}
if compiler == "taichi":
    # Its optimization of arrays in serial loops loses stores (https://github.com/taichi-dev/taichi/issues/8576).
    _OPTIONS["cache_loop_invariant_global_vars"] = False

PARALLEL_WORK_US = 250.0
"""Serial work [us] of one launch above which two threads pay (a parallel loop costs 30-100 us)."""


@dataclass(frozen=True, eq=False)
class Session:
    """Settings within one program of the compiler: compiled kernels and nodes of a graph belong to one."""

    settings: Settings
    program: int
    """Number of the program, counted from 1."""


class _Program:
    """The running program of the compiler, of which there is at most one."""

    number = 0
    """Number of programs that were started."""
    threads = 0
    """Number of threads in its pool."""
    home: Any = None
    """The compiler's object that owns it."""
    thread = 0
    """Number of the thread that started it, which alone can compile."""
    forked = False
    """True in a child of a process that had started it: its threads and locks are not there."""
    sessions: dict[Settings, Session] = {}
    before_end: list[Callable[[], None]] = []
    """Functions that drop references to the program, called before it ends."""


P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R", covariant=True)


class Cached(Protocol[P, R]):
    """A function made by `cached`."""

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R: ...

    def cache_clear(self) -> None: ...


_starting = threading.RLock()
"""Held while settings change: two threads may ask for the first start at once."""


def init(*, arch: str = "cpu", precision: str = "f64", threads: Threads = 1, compiler: str = "auto") -> Settings:
    """Put settings in force: start the compiler, or switch to other settings. The same settings again do nothing.

    `arch` "gpu" is the first of GPUS that this machine has; the settings returned name it. `threads` "auto" is the
    number of SIMPHYS_THREADS, else of the cores that this process may use, at most 8. Launches with little work use
    one, whatever the number. `compiler` asks for one by name; "auto" is that of the process (see compiler.py).
    Errors: InputError for an unknown or missing arch, a precision that it lacks, an unusable number of threads, or a
    compiler other than that of the process; the settings before stay in force.
    """
    require_compiler(compiler)
    refuse_fork()
    wanted = Settings(arch=find_gpu() if arch == "gpu" else arch, precision=precision, threads=count_threads(threads))
    with _starting:
        return _switch_to(wanted)


def _switch_to(wanted: Settings) -> Settings:
    if switch.session is not None and wanted == switch.session.settings:
        return switch.session.settings
    require_known(wanted)
    if not available(wanted.arch):
        constraint = f"arch={wanted.arch} must exist on this machine"
        found = f"{platform.system()} without a {wanted.arch} device"
        raise InputError("runtime.init", constraint, found, "Use arch=cpu, or install the device's driver.")
    running = switch.session is not None
    if (_home() is not _Program.home or _home() is None) if running else _home() is not None:
        found = f"a call of {ti.__name__}.init or {ti.__name__}.reset"
        remedy = "Call simphys.autograd.kernels.runtime.init(arch=..., precision=..., threads=...) in its place."
        raise InputError("runtime.init", "the compiler is started here only", found, remedy)
    if not running:
        _start(wanted)
    elif _needs_program(wanted):
        require_thread("runtime.init")
        _start(wanted)
    else:
        _compile_for(wanted)
    session = Session(wanted, _Program.number)
    switch.session = _Program.sessions.setdefault(wanted, session)
    return switch.session.settings


def refuse_fork() -> None:
    """Raise InputError in a child of a process that had started the compiler."""
    if _Program.forked:
        found = "a child made by fork, which has none of the compiler's threads"
        remedy = "Use multiprocessing.get_context('spawn'), or fork before the first kernel."
        raise InputError("runtime.init", "kernels run in the process that started the compiler", found, remedy)


def _after_fork() -> None:
    """Let each launch in a child end in an error: it would wait for threads that are not there, without end."""
    if switch.session is not None:
        _Program.forked, switch.session = True, None
        for drop in _Program.before_end:
            drop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def require_thread(source: str) -> None:
    """Raise InputError in another thread than that which started the compiler, as it compiles in that one alone."""
    if threading.get_ident() != _Program.thread:
        found = f"thread {threading.current_thread().name}"
        remedy = "Call runtime.init, load scenes and launch each kernel first in one thread, or keep to one altogether."
        raise InputError(source, "kernels are compiled in the thread that started the compiler", found, remedy)


def require_compiler(wanted: str) -> None:
    """Raise InputError unless kernels of this process are compiled by the `wanted` compiler."""
    if wanted not in ("auto", *COMPILERS):
        constraint = f"compiler is one of {('auto', *COMPILERS)}"
        raise InputError("runtime.init", constraint, wanted, "Choose one of these.")
    if wanted not in ("auto", compiler):
        constraint = "a process has one kernel compiler, from the first import of kernels on"
        remedy = f"Start Python with {VARIABLE}={wanted}."
        raise InputError("runtime.init", constraint, f"{compiler} in use, {wanted} asked for", remedy)


@contextlib.contextmanager
def keep_settings() -> Iterator[None]:
    """Restore the present settings, if there are any, at the end of a `with` block."""
    before = switch.session
    try:
        yield
    finally:
        if before is not None:
            init(arch=before.settings.arch, precision=before.settings.precision, threads=before.settings.threads)


@contextlib.contextmanager
def using(wanted: Settings) -> Iterator[Settings]:
    """Put settings in force for a `with` block; the settings before return afterwards."""
    with keep_settings():
        yield init(arch=wanted.arch, precision=wanted.precision, threads=wanted.threads)


@contextlib.contextmanager
def within(session: Session, source: str) -> Iterator[None]:
    """Put the settings of a session in force for a `with` block, for something that was made under them.

    Errors: InputError where they need another arch, whose start would end the memory of the present one.
    """
    present = settings()
    if present.arch != session.settings.arch:
        call = f"runtime.init(arch={session.settings.arch!r}, precision={session.settings.precision!r})"
        raise InputError(source, f"it belongs to {session.settings}", f"{present} in force", f"Call {call} before.")
    with using(session.settings):
        yield


@overload
def cached(function: Callable[P, T]) -> Cached[P, T]: ...
@overload
def cached(*, maxsize: int) -> Callable[[Callable[P, T]], Cached[P, T]]: ...
def cached(function: Callable[..., Any] | None = None, *, maxsize: int | None = None) -> Any:
    """Decorator like `functools.lru_cache`, with a separate entry for the settings in force.

    Entries are dropped when the compiler starts again.
    """
    if function is None:
        return functools.partial(cached, maxsize=maxsize)
    given = function

    @functools.lru_cache(maxsize=maxsize)
    def table(_session: Session, *arguments: Any) -> Any:
        return given(*arguments)

    @functools.wraps(given)
    def look_up(*arguments: Any) -> Any:
        return table(session(), *arguments)

    before_end(table.cache_clear)
    look_up.cache_clear = table.cache_clear  # type: ignore[attr-defined]
    return look_up


class cached_property(Generic[T]):
    """`functools.cached_property` with a separate value for each precision."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        self._function = function
        self._name = function.__name__
        self.__doc__ = function.__doc__

    def __get__(self, instance: Any, owner: type) -> T:
        table: dict[Any, T] = instance.__dict__.setdefault(f"_{self._name} by precision", {})
        dtype = real_dtype()
        if dtype not in table:
            table[dtype] = self._function(instance)
        return table[dtype]


@contextlib.contextmanager
def writing_for(wanted: Settings) -> Iterator[None]:
    """Let kernels be written for other settings in a `with` block, which launches none, and so needs no device."""
    before = session()
    switch.session = Session(wanted, before.program)
    try:
        yield
    finally:
        switch.session = before


def before_end(drop: Callable[[], None]) -> None:
    """Call `drop` before each end of the compiler's program, to drop references to it."""
    _Program.before_end.append(drop)


def _needs_program(wanted: Settings) -> bool:
    """True if the running program cannot serve these settings."""
    return wanted.arch != settings().arch or (not wanted.on_gpu and wanted.threads > _Program.threads)


def _start(wanted: Settings) -> None:
    """Start the compiler, or start it again. Errors: InputError if that fails; the program before is restored."""
    before = switch.session
    if before is not None:
        ti.sync()
        for drop in _Program.before_end:
            drop()
        for array in list(_arrays):  # else their end would free memory of the next program
            array.arr = None
        _Program.sessions.clear()
    switch.session = None
    try:
        _start_program(wanted)
    except BaseException:
        ti.reset()
        if before is not None:
            _start_program(before.settings)
            switch.session = _Program.sessions[before.settings] = Session(before.settings, _Program.number)
        raise


def _start_program(wanted: Settings) -> None:
    cache_folder.remove_old_lock(compiler, _FOLDER)
    with contextlib.redirect_stdout(io.StringIO()):  # init prints the arch, whatever the logging level
        ti.init(
            arch=getattr(ti, wanted.arch),
            default_fp=ti.f64 if wanted.precision == "f64" else ti.f32,
            cpu_max_num_threads=wanted.threads,
            fast_math=is_arithmetic_fast(wanted),
            log_level=ti.ERROR,
            cfg_optimization=may_lose_vectors(wanted.arch),
            **_OPTIONS,
        )
    started = str(ti.lang.impl.current_cfg().arch).rsplit(".", 1)[-1]
    if started != wanted.arch and not (wanted.arch == "cpu" and started in ("x64", "arm64")):
        raise InputError(
            "runtime.init",
            f"arch={wanted.arch} must exist on this machine",
            f"the compiler fell back to {started}",
            "Use arch=cpu, or install the device's driver.",
        )
    if wanted.arch == "vulkan" and (driver := software_driver()):
        warnings.warn(
            f"runtime.init: arch=vulkan computes on the CPU, by the software driver {driver}, slower than arch=cpu; "
            "it serves tests. Install the driver of a GPU, or use arch=cpu.",
            stacklevel=2,
        )
    if (wanted.arch, compiler) == ("cuda", "taichi"):
        warnings.warn(
            f"runtime.init: on CUDA a launch by Taichi takes longer than one by Quadrants. Start Python with "
            f"{VARIABLE}=quadrants{'' if installed('quadrants') else ' (pip install quadrants)'}.",
            stacklevel=2,
        )
    _Program.number += 1
    _Program.thread = threading.get_ident()
    _Program.threads = wanted.threads
    _Program.home = _home()


def may_lose_vectors(arch: str) -> bool:
    """True where the compiler cannot do without a pass that may lose vectors; see numerics/assigned_anew.py.

    The pass loses a vector that is assigned anew after a branch, if all of its entries were read before: in
    `if v[0] < v[1]: x = 5.0`, `v = x * v`. Without it shaders and Taichi fail on some kernels; other kernels are as
    fast, since LLVM does the same work, and compile in less time.
    """
    return compiler == "taichi" or arch in BY_SHADERS


def _compile_for(wanted: Settings) -> None:
    """Let the running program compile for other settings from now on; compiled kernels stay the same."""
    config = ti.lang.impl.current_cfg()
    home = ti.lang.impl.get_runtime()
    home.set_default_fp(ti.f64 if wanted.precision == "f64" else ti.f32)
    config.default_fp = home.default_fp
    config.fast_math = is_arithmetic_fast(wanted)
    config.cpu_max_num_threads = wanted.threads


def _home() -> Any:
    """The compiler's object that owns the running program, None where none runs."""
    home = ti.lang.impl.get_runtime()
    return None if getattr(home, "_prog" if compiler == "quadrants" else "prog") is None else home


def find_gpu() -> str:
    """The arch that "gpu" stands for here. Errors: InputError where there is none."""
    for arch in GPUS:
        if available(arch):
            return arch
    found = f"{platform.system()} without a device of {', '.join(GPUS)}"
    remedy = "Use arch=cpu, or install the device's driver."
    raise InputError("runtime.init", "arch=gpu needs a GPU on this machine", found, remedy)


def available(arch: str) -> bool:
    """True if a device and a driver for `arch` were found."""
    core = ti._lib.core
    probe = {"cpu": lambda: True, "cuda": core.with_cuda, "vulkan": core.with_vulkan, "metal": core.with_metal}
    return bool(probe[arch]())


def session() -> Session:
    """The session in force; the defaults (cpu, f64, 1 thread) are taken if `init` was not called."""
    if switch.session is None:
        init()
    return switch.session


def settings() -> Settings:
    """The settings in force; the defaults (cpu, f64, 1 thread) are taken if `init` was not called."""
    return session().settings


def initialised() -> bool:
    return switch.session is not None


def real() -> Any:
    """The compiler's type of a real number in the precision in force."""
    return ti.f64 if settings().precision == "f64" else ti.f32


_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)


def real_dtype() -> np.dtype[Any]:
    """NumPy's type of a real number in the precision in force (f64 before `init`)."""
    session = switch.session
    return _F32 if session is not None and session.settings.precision == "f32" else _F64


def require_precision(source: str, *values: Any) -> None:
    """Raise InputError for arrays or Tensors of real numbers that are in another precision than that in force."""
    wanted = real_dtype()
    for value in values:
        if value.dtype != wanted and value.dtype.kind == "f":
            remedy = f"Convert it, or compute in its precision: runtime.init(precision='f{8 * value.dtype.itemsize}')."
            raise InputError(source, f"it computes in {wanted}, the precision in force", str(value.dtype), remedy)


def parallel(work_us: float) -> bool:
    """True if a launch of `work_us` serial microseconds should use the parallel variant of its kernel."""
    chosen = settings()
    return chosen.on_gpu or (chosen.threads > 1 and work_us > PARALLEL_WORK_US)


def info() -> dict[str, str]:
    """Arch, precision, threads, the compiler and versions, for reports and recordings."""
    chosen = settings()
    versions = {name: importlib.import_module(name).__version__ for name in ("numpy", compiler)}
    versions = {name: ".".join(map(str, v)) if isinstance(v, tuple) else str(v) for name, v in versions.items()}
    return {
        "arch": chosen.arch,
        "precision": chosen.precision,
        "threads": str(chosen.threads),
        "compiler": compiler,
        "llvm": ti._lib.core.get_llvm_target_support(),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        **versions,
    }
