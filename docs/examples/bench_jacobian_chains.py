"""Time the scan of T Jacobians against the reverse product: up to which state size is the scan faster?

Reverse multiplies a vector with T matrices [n, n] in a row: by one NumPy call a step, and by one compiled loop for all
steps. The scan is about log2 T products deep. Each level is one NumPy call for many products, with about n times the
multiplications in all. Two questions are timed: the adjoint of the first state alone, and the adjoints of all states.
One core, f64, one batch member; the Jacobians are orthogonal, so that no adjoint vanishes or overflows.

Run it:  python docs/examples/bench_jacobian_chains.py
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, no_type_check

import numpy as np
from jacobian_chains import chain_vjp, predicted_multiplications, scan_adjoints

from simphys.autograd import kernel, runtime

LENGTHS = (256, 4096)
SIZES = (1, 2, 4, 8, 12, 16, 24, 32)
NAMES = {"first": "first state", "all": "all states"}


class Row(NamedTuple):
    """One question for T steps with a state of n numbers; best times in microseconds."""

    wanted: str
    steps: int
    n: int
    reverse_us: float
    scan_us: float
    compiled_us: float
    """Reverse in one compiled loop, for all states."""
    multiplications: float
    """Those of the scan, as a multiple of reverse's."""


def measure(steps: int, n: int, repetitions: int) -> list[Row]:
    """Time both questions; the ways take turns. Raises ArithmeticError where they differ."""
    random, dtype = np.random.default_rng(0), runtime.real_dtype()
    jacobians = np.linalg.qr(random.normal(size=(steps, n, n)))[0].astype(dtype)
    batch, adjoint = jacobians[:, None], random.normal(size=n).astype(dtype)
    adjoints = np.empty((steps + 1, n), dtype)
    adjoints[steps] = adjoint
    ways: dict[str, Callable[[], np.ndarray]] = {
        "reverse, first": lambda: reverse(jacobians, adjoint),
        "scan, first": lambda: chain_vjp(batch, adjoint[None], order="scan").adjoint[0],
        "reverse, all": lambda: reverse_all(jacobians, adjoint),
        "scan, all": lambda: scan_adjoints(batch, adjoint[None]).adjoints[:, 0],
        "compiled": compiled_reverse(jacobians, adjoints),
    }
    expected = ways["reverse, all"]()
    best = dict.fromkeys(ways, float("inf"))
    for way, compute in ways.items():  # and a warm-up
        tolerance = 10 * steps * np.finfo(dtype).eps * np.abs(adjoint).sum()
        if not np.allclose(compute(), expected[0] if "first" in way else expected, rtol=0, atol=tolerance):
            raise ArithmeticError(f"{way}: wrong adjoints for T = {steps}, n = {n}")
    for _ in range(repetitions):
        for way, compute in ways.items():
            start = time.perf_counter()
            compute()
            best[way] = min(best[way], (time.perf_counter() - start) * 1e6)
    sizes = [n] * (steps + 1)
    work = predicted_multiplications(sizes, "reverse", 1)
    scans = {
        "first": predicted_multiplications(sizes, "scan", 1),
        "all": scan_adjoints(batch, adjoint[None]).cost.multiplications,
    }
    return [
        Row(wanted, steps, n, best[f"reverse, {wanted}"], best[f"scan, {wanted}"], best["compiled"], scan / work)
        for wanted, scan in scans.items()
    ]


def reverse(jacobians: np.ndarray, adjoint: np.ndarray) -> np.ndarray:
    """The first state's adjoint [n], by the fastest loop that NumPy offers."""
    for jacobian in jacobians[::-1]:
        adjoint = adjoint.dot(jacobian)
    return adjoint


def reverse_all(jacobians: np.ndarray, adjoint: np.ndarray) -> np.ndarray:
    """The adjoints [T + 1, n] of all states."""
    adjoints = np.empty((len(jacobians) + 1, len(adjoint)), adjoint.dtype)
    adjoints[-1] = adjoint
    for jacobian, row in zip(jacobians[::-1], adjoints[-2::-1], strict=True):
        adjoint = adjoint.dot(jacobian, out=row)
    return adjoints


def compiled_reverse(jacobians: np.ndarray, adjoints: np.ndarray) -> Callable[[], np.ndarray]:
    """Fill all rows but the last of `adjoints` [T + 1, n] by one kernel on one thread."""
    launch = _kernel(adjoints.shape[1]).bind(jacobians, adjoints)

    def compute() -> np.ndarray:
        launch()
        return adjoints

    return compute


@runtime.cached
@no_type_check
def _kernel(n: int) -> Any:
    """The loop for states of n numbers, with the product unrolled."""
    ti = runtime.ti
    vec = ti.types.vector(n, runtime.real())

    @kernel
    def fill(jacobians: ti.types.ndarray(dtype=vec, ndim=2), adjoints: ti.types.ndarray(dtype=vec, ndim=1)):
        ti.loop_config(serialize=True)
        for _ in range(1):
            T = jacobians.shape[0]
            adjoint = adjoints[T]
            for back in range(T):
                step = T - 1 - back
                product = adjoint[0] * jacobians[step, 0]
                for row in ti.static(range(1, n)):
                    product += adjoint[row] * jacobians[step, row]
                adjoint = product
                adjoints[step] = adjoint

    return fill


def collect(*, lengths: Sequence[int] = LENGTHS, sizes: Sequence[int] = SIZES, repetitions: int = 15) -> list[Row]:
    """All rows, measured by a process of its own on one core."""
    cases = json.dumps([lengths, sizes, repetitions])
    environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    command = [sys.executable, __file__, "--cases", cases]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [Row(*row) for row in json.loads(done.stdout.splitlines()[-1])]


def print_rows(cases: str) -> None:
    """Measure the cases of `collect` on one core and print their rows as JSON."""
    lengths, sizes, repetitions = json.loads(cases)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(json.dumps([row for steps in lengths for n in sizes for row in measure(steps, n, repetitions)]))


def table(rows: Sequence[Row]) -> str:
    """A Markdown table, and the largest measured n for which the scan is faster."""
    lines = [
        "| adjoint of | T | n | reverse us | scan us | scan / reverse | multiplications, scan / reverse "
        "| reverse compiled, all states us |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        times = f"{row.reverse_us:.0f} | {row.scan_us:.0f} | {row.scan_us / row.reverse_us:.2f}"
        case = f"{NAMES[row.wanted]} | {row.steps} | {row.n}"
        lines.append(f"| {case} | {times} | {row.multiplications:.1f} | {row.compiled_us:.1f} |")
    lines += ["", "The largest measured n for which the scan is faster than reverse, on one core:", ""]
    for wanted, steps in dict.fromkeys([(row.wanted, row.steps) for row in rows]):
        same = [row for row in rows if (row.wanted, row.steps) == (wanted, steps)]
        stepwise = max([row.n for row in same if row.scan_us < row.reverse_us], default="none")
        compiled = max([row.n for row in same if row.scan_us < row.compiled_us], default="none")
        lines.append(f"- {NAMES[wanted]}, T = {steps}: {stepwise} by one call a step, {compiled} by the compiled loop")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", help=argparse.SUPPRESS)
    cases = parser.parse_args().cases
    if cases is None:
        print(table(collect()))
    else:
        print_rows(cases)


if __name__ == "__main__":
    main()
