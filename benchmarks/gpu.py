"""`python -m benchmarks.gpu`: gradients of the workloads on the GPU of this machine, from the specified sizes to large.

For each size: milliseconds of a gradient (minimum), nanoseconds for an element and step, launches of a step, kilobytes
that travel in a step, and the bandwidth at which a step would read and write its state and its adjoint once, as a share
of what a copy reaches in the same run. `--arch cpu` runs the same on the processor, to compare.
"""

import argparse
import functools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple, no_type_check

import numpy as np

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels.device import device_array
from simphys.autograd.kernels.runtime import ti

from . import machine
from .workloads.run import load
from .workloads.workload import Workload


class Size(NamedTuple):
    """A workload with overrides, and the numbers of a state."""

    workload: str
    overrides: tuple[str, ...]
    numbers: int


SIZES = (
    Size("w1r", (), 4 * 32),
    Size("w1c", (), 4 * 128**2),
    Size("w1c", ("size.n=1024", "time.steps=64"), 4 * 1024**2),
    Size("w2", (), 8 * 128 * 64),
    Size("w2", ("size.nx=1024", "size.ny=1024", "time.steps=16"), 8 * 1024**2),
    Size("w3", (), 256**2),
    Size("w3", ("size.n=2048", "time.steps=64"), 2048**2),
    Size("w3", ("size.n=4096", "time.steps=32"), 4096**2),
    Size("w4", (), 3 * 110**2),
    Size("w4", ("size.n=1024", "time.steps=32"), 3 * 1024**2),
    Size("w5", (), 6 * 1024),
    Size("w5", ("size.n=16384", "time.steps=20"), 6 * 16384),
)
ACCESSES = 5
"""Reads and writes of a state by a step and its adjoint, once each: u; u and adj_u, both; adj_u."""
COPIED = 2**26
"""Numbers of the copy that measures bandwidth."""


@dataclass(frozen=True)
class Row:
    """Measured figures of a workload in one size."""

    size: Size
    milliseconds: float
    nanoseconds: float
    """For an element and step."""
    launches: float
    kilobytes: float
    share: float
    """Of the bandwidth of a copy."""

    def cells(self) -> tuple[str, ...]:
        name = " ".join([self.size.workload, *self.size.overrides])
        figures = f"{self.milliseconds:.3g}", f"{self.nanoseconds:.3g}", f"{self.launches:.2f}", f"{self.kilobytes:.3g}"
        return name, *figures, f"{100 * self.share:.0f} %"


HEADS = ("workload", "gradient [ms]", "ns an element and step", "launches a step", "kB a step", "share of a copy")


@functools.cache
@no_type_check
def _kernels(real: Any) -> SimpleNamespace:
    reals = ti.types.ndarray(dtype=real, ndim=1)

    @kernel
    def copy(source: reals, target: reals, count: ti.i32):
        for i in range(count):
            target[i] = source[i]

    return SimpleNamespace(copy=copy)


def measure_copy(numbers: int = COPIED, repetitions: int = 10) -> float:
    """Measure the bandwidth [GB/s] of a copy, reads and writes together."""
    source, target = device_array((numbers,)), device_array((numbers,))
    bound = _kernels(runtime.real()).copy.bind(source, target, numbers)
    bound()
    _wait(target)
    began = time.perf_counter()
    for _ in range(repetitions):
        bound()
    _wait(target)
    taken = (time.perf_counter() - began) / repetitions
    return 2 * numbers * runtime.real_dtype().itemsize / taken / 1e9


def _wait(array: Any) -> None:
    if isinstance(array, np.ndarray):
        return
    ti.sync()


def measure(size: Size, *, repetitions: int, bandwidth: float) -> Row:
    """Measure a workload in one size."""
    workload: Workload = load(size.workload)
    settings = workload.override(size.overrides)
    case = workload.build(settings, "fused")
    case.gradient()
    seconds = []
    before = runtime.counters.now()
    for _ in range(repetitions):
        began = time.perf_counter()
        case.gradient()
        seconds.append(time.perf_counter() - began)
    counted, steps = runtime.counters.now() - before, settings["time.steps"]
    best, work = min(seconds), workload.elements(settings) * steps
    moved = ACCESSES * size.numbers * steps * runtime.real_dtype().itemsize
    each = repetitions * steps
    return Row(
        size,
        milliseconds=best * 1e3,
        nanoseconds=best / work * 1e9,
        launches=counted.launches / each,
        kilobytes=(counted.bytes_up + counted.bytes_down) / each / 1e3,
        share=moved / best / 1e9 / bandwidth,
    )


def main(arguments: Sequence[str] | None = None, sizes: Sequence[Size] = SIZES, copied: int = COPIED) -> list[Row]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--arch", default="gpu", help="gpu, cuda, metal, vulkan or cpu")
    parser.add_argument("--precision", choices=("f32", "f64"), default="f32")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=450.0, help="no further size is begun after this time")
    options = parser.parse_args(arguments)
    began = time.perf_counter()
    chosen = runtime.init(arch=options.arch, precision=options.precision)
    bandwidth = measure_copy(copied)
    info = runtime.info()
    print(f"{machine.describe()}; {chosen.arch}, {chosen.precision}; {info['compiler']} {info[info['compiler']]}")
    print(f"copy: {bandwidth:.1f} GB/s\n\n| {' | '.join(HEADS)} |\n|{' --- |' * len(HEADS)}", flush=True)
    rows = []
    for size in sizes:
        if time.perf_counter() - began > options.seconds:
            print(f"| {size.workload} {' '.join(size.overrides)} | not begun: {options.seconds:g} s have passed |")
            continue
        rows.append(measure(size, repetitions=options.repetitions, bandwidth=bandwidth))
        print(f"| {' | '.join(rows[-1].cells())} |", flush=True)
    return rows


if __name__ == "__main__":
    main()
