"""`python -m benchmarks.roofline`: the cost of an element and step of each workload, beside what the core can do.

The core's bounds are measured in the same run: the bandwidth of copies within each cache and in memory, and the rate of
multiply-adds in registers. The least traffic and arithmetic of a gradient are those of its formulas (`LEAST`): each
array of the state read and written once for each pass, with all else in registers. The larger of the two bounds is the
roofline; the share tells what is left.
"""

import argparse
import functools
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, no_type_check

from . import compare, machine
from .measuring import apart, markdown

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
HIDDEN_PRODUCTS = 32 * (140 + 94)
"""Products of w1r's network in a step, which its 94 springs share."""


class Work(NamedTuple):
    """Least work of a gradient for an element and step, in f32."""

    bytes: float
    operations: float
    state: float
    """Bytes of an element that a step passes over: what must stay in a cache."""
    why: str


LEAST: Mapping[str, Work] = {
    "w1r": Work(60, 6 * HIDDEN_PRODUCTS / 94 + 90, 400, "network: 2 operations a product forward, 4 back; spring: 90"),
    "w1c": Work(60, 90, 40, "spring: k, L, ends twice, adj_k; a quarter of a node: x, v and their adjoints"),
    "w2": Work(230, 1600, 120, "operations as counted for the peers; x, v, C, F and their adjoints"),
    "w3": Work(44, 36, 16, "u twice, kappa, u' forward; w twice, kappa, w', u, adj_kappa twice back"),
    "w4": Work(160, 400, 60, "3 fields sampled, 6 sweeps, divergence and correction; their adjoints"),
    "w5": Work(0, 53, 20, "a pair: 18 operations forward, 35 back; all bodies stay in the nearest cache"),
}


def bounds() -> dict[str, Any]:
    """Measure this core: GB/s of copies by the size of what is copied [B], and GFLOP/s of multiply-adds."""
    import numpy as np

    found = {}
    shared = [cache // 4 for level, cache in caches().items() if level != "L1"]  # a call takes longer than its copies
    for size in (*shared, 2**28):
        x, y = np.ones(size // 8, np.float32), np.zeros(size // 8, np.float32)
        found[size] = 2 * x.nbytes / fastest(functools.partial(np.copyto, y, x), 2**28 // size) / 1e9
    return {"copy": found, "multiply_add": multiply_adds()}


def multiply_adds() -> float:
    """Measure GFLOP/s of multiply-adds in f32 in registers."""
    launch, operations = bind_multiply_adds()
    return operations / fastest(launch, 20) / 1e9


def bind_multiply_adds() -> tuple[Callable[[], object], int]:
    """Make a launch of multiply-adds in f32 in registers; also return their operations."""
    import numpy as np

    from simphys.autograd import kernel, runtime
    from simphys.autograd.kernels.runtime import ti

    runtime.init(precision="f32")
    lanes, sums, rounds = 32, 4, 100_000
    vector, reals = ti.types.vector(lanes, ti.f32), ti.types.ndarray(dtype=ti.f32, ndim=1)

    @no_type_check
    @kernel(wide=True)
    def accumulate(x: reals, rounds: ti.i32):
        ti.loop_config(serialize=True)
        for _ in range(1):
            factor, term = vector(x[0]), vector(x[1])
            a, b, c, d = vector(1.0), vector(2.0), vector(3.0), vector(4.0)
            for _step in range(rounds):
                a, b, c, d = a * factor + term, b * factor + term, c * factor + term, d * factor + term
            x[2] = (a + b + c + d).sum()

    launch = accumulate.bind(np.full(3, 0.5, np.float32), rounds)
    return launch, 2 * lanes * sums * rounds


def fastest(call: Callable[[], object], repetitions: int) -> float:
    """Measure the seconds of the fastest of many calls."""
    call()
    times = []
    for _ in range(max(repetitions, 5)):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def caches() -> dict[str, int]:
    """Sizes of the data caches of a core by level [B] (Linux)."""
    found = {}
    for entry in sorted(CACHES.glob("index*")):
        if (entry / "type").read_text().strip() in ("Data", "Unified"):
            size = (entry / "size").read_text().strip()
            found[f"L{(entry / 'level').read_text().strip()}"] = int(size.removesuffix("K")) * 1024
    return found


def rows(compiler: str, options: argparse.Namespace) -> list[list[str]]:
    """Measure all workloads; one row for each."""
    from .workloads.run import load

    core = apart("roofline.bounds()", SIMPHYS_COMPILER="auto")
    copies = {int(size): rate for size, rate in core["copy"].items()}
    made = []
    for name in options.workloads or LEAST:
        command = compare.own_job(name, compiler, options)
        row, least, workload = compare.run(command), LEAST[name], load(name)
        if row is None:
            continue
        elements = workload.elements(workload.settings)
        fits = [rate for size, rate in copies.items() if least.state * elements <= 4 * size]
        bandwidth = fits[0] if fits else min(copies.values())
        ns = row["grad_min_ms"] * 1e6 / elements / workload.settings["time.steps"]
        floors = {"traffic": least.bytes / bandwidth, "arithmetic": least.operations / core["multiply_add"]}
        limit = max(floors, key=floors.__getitem__)
        rates = (row["fwd_ns_elem_step"], ns, least.bytes, least.operations, least.bytes / ns, least.operations / ns)
        made.append([name, *[f"{rate:.3g}" for rate in rates], limit, f"{floors[limit] / ns:.0%}"])
    at_most = ", ".join(f"{rate:.0f} GB/s within {size / 2**20:.3g} MB" for size, rate in copies.items())
    print(f"At most: copies {at_most}; {core['multiply_add']:.0f} GFLOP/s.\n")
    return made


HEAD = (
    "workload", "forward ns", "gradient ns", "bytes", "operations", "GB/s", "GFLOP/s", "bound", "share of the bound",
)  # fmt: skip


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.roofline", description=__doc__)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(LEAST)}; default all")
    compare.add_options(parser)
    options = parser.parse_args(arguments)
    if unknown := set(options.workloads) - set(LEAST):
        parser.error(f"no workload {', '.join(sorted(unknown))}; there are {', '.join(LEAST)}")
    for compiler in machine.compilers():
        print(f"### {compiler.capitalize()}, one thread, f32, an element and step\n")
        print(markdown(HEAD, rows(compiler, options)) + "\n", flush=True)


if __name__ == "__main__":
    main()
