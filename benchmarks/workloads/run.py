"""`python -m benchmarks.workloads NAME`: run one workload, print `RESULT {json}` with its times, memory and errors."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

from .. import machine

if TYPE_CHECKING:
    from .workload import Settings, Workload

MODULES = {"w1r": "robot", "w1c": "lattice", "w2": "block", "w3": "wave", "w4": "smoke", "w5": "charges"}
"""The module of each workload, which is another name for it."""
NAMES = tuple(MODULES)
LONGEST_S = 40.0
"""Time after which repetitions end, if there were at least three [s]."""


class Parser(argparse.ArgumentParser):
    """Parser whose help lists the settings; a run must not import these before the compiler is chosen."""

    def format_help(self) -> str:
        listed = [f"  {name}: {key}={value:g}" for name in NAMES for key, value in load(name).settings.items()]
        return super().format_help() + "\n".join(
            ["\nsettings that may be overridden, with their defaults:", *listed, ""]
        )


def load(name: str) -> Workload:
    """Import the workload of a name from the module of that name."""
    workload: Workload = importlib.import_module(f"benchmarks.workloads.{MODULES.get(name, name)}").WORKLOAD
    return workload


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = Parser(prog="python -m benchmarks.workloads", description=__doc__)
    parser.add_argument("name", choices=(*NAMES, *MODULES.values()))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dtype", choices=("f32", "f64"), default="f32")
    parser.add_argument("--reps", type=int, default=5, help="repetitions")
    parser.add_argument(
        "--compiler", choices=("auto", "quadrants", "taichi"), default=os.environ.get("SIMPHYS_COMPILER", "auto")
    )
    parser.add_argument("--mode", choices=("nested", "fused", "generated"), default="fused")
    parser.add_argument("overrides", nargs="*", metavar="KEY=NUMBER", help="settings, as listed below")
    options = parser.parse_intermixed_args(arguments)
    if options.mode == "generated" and MODULES.get(options.name, options.name) != "wave":
        parser.error("argument --mode: only waves have a hand-made engine beside a generated one")
    return options


def measure(workload: Workload, settings: Settings, options: argparse.Namespace, *, started: float) -> dict[str, Any]:
    """Run a workload; `started` is when the process began to import [s of perf_counter]."""
    from simphys.autograd import runtime

    from .workload import compare, summarize

    imported, imported_mb = time.perf_counter(), machine.peak_mb()
    runtime.init(precision=options.dtype, threads=options.threads)
    workload.build({**settings, "time.steps": 2}, options.mode).gradient()
    machine.reset_peak()
    warm_mb = machine.resident_mb()
    case = workload.build(settings, options.mode)
    loss, gradients = case.gradient()
    cold = time.perf_counter() - imported
    grads = summarize(gradients)
    del gradients  # otherwise every repetition would hold two sets of them
    forward_loss = case.forward()
    if not abs(forward_loss - loss) <= 1e-4 * abs(loss):
        raise ArithmeticError(f"{workload.name}: the loss is {forward_loss} without recording and {loss} with it")
    forward_s, gradient_s = repeat(case, options.reps)
    updates = workload.elements(settings) * settings["time.steps"]
    forward, gradient = statistics.median(forward_s), statistics.median(gradient_s)
    return {
        "workload": workload.name,
        "peer": ":".join(["simphys", runtime.compiler, *({options.mode} - {"fused"})]),
        "dtype": options.dtype,
        "threads": options.threads,
        "cold_s": round(cold, 2),
        "import_s": round(imported - started, 2),
        "fwd_ms": round(forward * 1e3, 3),
        "fwd_min_ms": round(min(forward_s) * 1e3, 3),
        "grad_ms": round(gradient * 1e3, 3),
        "grad_min_ms": round(min(gradient_s) * 1e3, 3),
        "bwd_over_fwd": round((gradient - forward) / forward, 2),
        "fwd_ns_elem_step": round(forward / updates * 1e9, 4),
        "grad_ns_elem_step": round(gradient / updates * 1e9, 4),
        "rss_mb": round(machine.peak_mb()),
        "rss_import_mb": round(imported_mb),
        "rss_delta_mb": round(machine.peak_mb() - warm_mb, 1),
        "loss": loss,
        "err": compare(workload.name, loss, grads) if settings == workload.settings else {},
        "grads": grads,
    }  # fmt: skip


def repeat(case: Any, repetitions: int) -> tuple[list[float], list[float]]:
    """Measure times [s] of forward and of gradient, alternating."""
    clock = time.perf_counter
    forward_s, gradient_s = [], []
    began = clock()
    for done in range(1, repetitions + 1):
        start = clock()
        case.forward()
        middle = clock()
        case.gradient()
        forward_s.append(middle - start)
        gradient_s.append(clock() - middle)
        if clock() - began > LONGEST_S and done >= 3:
            break
    return forward_s, gradient_s


def main(arguments: list[str] | None = None) -> None:
    started = time.perf_counter()
    options = parse(arguments)
    machine.confine(options.threads)
    os.environ["SIMPHYS_COMPILER"] = options.compiler
    workload = load(options.name)
    from simphys.autograd import InputError

    try:
        settings = workload.override(options.overrides)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    print("RESULT " + json.dumps(measure(workload, settings, options, started=started)), flush=True)


if __name__ == "__main__":
    main()
