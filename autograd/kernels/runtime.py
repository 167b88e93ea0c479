"""The kernel compiler: the only module that imports it. One init a process, precision, threads, and checked launches.

Kernels come from factories that are called after `init`, because annotations bind the precision:

    @functools.cache
    def kernels(real): ...
        @runtime.kernel
        def forward(x: ti.types.ndarray(dtype=real, ndim=1), ...): ...
"""

from __future__ import annotations

import contextlib
import importlib
import io
import math
import os
import platform
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..errors import InputError
from .front_end import remember_sources

COMPILERS = ("taichi", "quadrants")
compiler = os.environ.get("SIMPHYS_COMPILER", "taichi")
if compiler not in COMPILERS:
    raise InputError(
        "SIMPHYS_COMPILER",
        f"the kernel compiler is one of {COMPILERS}",
        compiler,
        "Set it to one of these, or unset it.",
    )
os.environ.setdefault("ENABLE_TAICHI_HEADER_PRINT", "0")
os.environ.setdefault("ENABLE_QUADRANTS_HEADER_PRINT", "0")
ti: Any = importlib.import_module(compiler)
ti.set_logging_level(ti.ERROR)
if compiler == "taichi":
    remember_sources(ti)

Arch = Literal["cpu", "cuda", "vulkan", "metal"]
Precision = Literal["f32", "f64"]
ARCHS = ("cpu", "cuda", "vulkan", "metal")

PARALLEL_WORK_US = 250.0
"""Serial work [us] of one launch above which two threads pay (a parallel loop costs 30-100 us)."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a process was initialised with; it cannot change afterwards."""

    arch: str = "cpu"
    precision: str = "f64"
    threads: int = 1

    @property
    def on_gpu(self) -> bool:
        return self.arch != "cpu"


_settings: Settings | None = None


def init(*, arch: str = "cpu", precision: str = "f64", threads: int = 1) -> Settings:
    """Start the compiler, once a process. The same settings again do nothing.

    Errors: InputError for other settings than the first, an unknown or missing arch, or a precision that it lacks.
    """
    global _settings
    wanted = Settings(arch=arch, precision=precision, threads=threads)
    if _settings is not None:
        if wanted != _settings:
            raise InputError(
                "runtime.init",
                f"arch, precision and threads are chosen once a process, here {_settings}",
                repr(wanted),
                "Start a new process for other settings.",
            )
        return _settings
    _check(wanted)
    if _started_elsewhere():
        found = f"a call of {compiler}.init"
        remedy = "Call simphys.autograd.kernels.runtime.init(arch=..., precision=..., threads=...) in its place."
        raise InputError("runtime.init", "the compiler is started here, once a process", found, remedy)
    with contextlib.redirect_stdout(io.StringIO()):  # init prints the arch, whatever the logging level
        ti.init(
            arch=getattr(ti, arch),
            default_fp=ti.f64 if precision == "f64" else ti.f32,
            cpu_max_num_threads=threads,
            fast_math=True,
            log_level=ti.ERROR,
        )
    started = str(ti.lang.impl.current_cfg().arch).rsplit(".", 1)[-1]
    if started != arch and not (arch == "cpu" and started in ("x64", "arm64")):
        ti.reset()
        raise InputError(
            "runtime.init",
            f"arch={arch} must exist on this machine",
            f"the compiler fell back to {started}",
            "Use arch=cpu, or install the device's driver.",
        )
    _settings = wanted
    return wanted


def _started_elsewhere() -> bool:
    try:
        return ti.lang.impl.get_runtime().prog is not None
    except Exception:  # quadrants raises an error of its own where there is none
        return False


def _check(wanted: Settings) -> None:
    if wanted.arch not in ARCHS:
        raise InputError("runtime.init", f"arch is one of {ARCHS}", wanted.arch, "Choose one of these.")
    if wanted.precision not in ("f32", "f64"):
        raise InputError("runtime.init", "precision is f32 or f64", wanted.precision, "Choose one of these.")
    if wanted.threads < 1:
        raise InputError("runtime.init", "threads is at least 1", wanted.threads, "Give the number of CPU threads.")
    if wanted.precision == "f64" and wanted.arch in ("vulkan", "metal"):
        raise InputError(
            "runtime.init",
            f"arch={wanted.arch} computes in f32 only",
            "precision=f64",
            "Use precision=f32, or arch=cpu or cuda for f64.",
        )
    if not available(wanted.arch):
        raise InputError(
            "runtime.init",
            f"arch={wanted.arch} must exist on this machine",
            f"{platform.system()} without a {wanted.arch} device",
            "Use arch=cpu, or install the device's driver.",
        )


def available(arch: str) -> bool:
    """Whether a device and driver for `arch` were found."""
    core = ti._lib.core
    probe = {"cpu": lambda: True, "cuda": core.with_cuda, "vulkan": core.with_vulkan, "metal": core.with_metal}
    return bool(probe[arch]())


def settings() -> Settings:
    """The settings in force; the defaults (cpu, f64, 1 thread) are taken if `init` was not called."""
    return _settings or init()


def initialised() -> bool:
    return _settings is not None


def real() -> Any:
    """The compiler's type of a real number in the chosen precision."""
    return ti.f64 if settings().precision == "f64" else ti.f32


def real_dtype() -> np.dtype[Any]:
    """NumPy's type of a real number in the chosen precision (f64 before `init`)."""
    return np.dtype(np.float32 if _settings is not None and _settings.precision == "f32" else np.float64)


def parallel(work_us: float) -> bool:
    """Whether a launch of `work_us` serial microseconds should use the parallel variant of its kernel."""
    chosen = settings()
    return chosen.on_gpu or (chosen.threads > 1 and work_us > PARALLEL_WORK_US)


def info() -> dict[str, str]:
    """Arch, compiler, precision, threads and versions, for reports and recordings."""
    chosen = settings()
    versions = {name: importlib.import_module(name).__version__ for name in ("numpy", compiler)}
    versions = {name: ".".join(map(str, v)) if isinstance(v, tuple) else str(v) for name, v in versions.items()}
    return {
        "arch": chosen.arch,
        "precision": chosen.precision,
        "threads": str(chosen.threads),
        "compiler": compiler,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        **versions,
    }


def device_array(shape: tuple[int, ...], *, components: int | None = None) -> Any:
    """Uninitialised working memory of kernels, on the device: real numbers [shape], or vectors of `components` of them.

    On the CPU it is a NumPy array; results leave it by `to_host`, values enter by `to_device`.
    """
    if not settings().on_gpu:
        return np.empty(shape if components is None else (*shape, components), real_dtype())
    return _gpu_array(real(), shape, components)


def to_device(array: np.ndarray[Any, Any], *, vector: bool = False) -> Any:
    """A kernel argument with the values of `array`: itself on the CPU, a copy on a GPU.

    With `vector` the last axis is the element.
    """
    if not settings().on_gpu:
        return array
    dtype = ti.i32 if array.dtype.kind in "iu" else real()
    copy = _gpu_array(dtype, *((array.shape[:-1], array.shape[-1]) if vector else (array.shape, None)))
    if array.size:
        copy.from_numpy(np.ascontiguousarray(array))
    return copy


def to_host(array: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The values of working memory as a NumPy array of `shape` (over the same memory on the CPU)."""
    if isinstance(array, np.ndarray):
        return array.reshape(shape)
    return array.to_numpy().reshape(-1)[: math.prod(shape)].reshape(shape)


def _gpu_array(dtype: Any, shape: tuple[int, ...], components: int | None) -> Any:
    shape = tuple([max(length, 1) for length in shape])  # the compiler has no empty arrays
    return ti.ndarray(dtype, shape) if components is None else ti.Vector.ndarray(components, dtype, shape)
