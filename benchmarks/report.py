"""`python -m benchmarks.report > benchmarks/RESULTS.md`: run all benchmarks and print the file of their results."""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
from importlib.metadata import version

import numpy

from . import compare, growth, machine, roofline
from . import threads as bench_threads
from .fits import air_track as bench_air_track
from .graph import run as bench_autograd
from .rollout import run as bench_rollout
from .truth import run as bench_truth
from .workloads.run import NAMES

GROWTH_PICTURE = "benchmarks/growth.png"
JACOBIAN_CHAINS = "docs/examples/bench_jacobian_chains.py"

HEAD = """# Results

Written by

    python -m benchmarks.report > benchmarks/RESULTS.md

on {machine}, Python {python}, NumPy {numpy}, {compilers}. `--python PATH` adds
interpreters that hold other programs' packages; the other programs for the workloads are found through SIMPHYS_PEERS.
Programs take turns within a run, each pinned to one core where it has one thread. Compare numbers of one table only:
the machine's speed varies between runs. Times are medians with minima in parentheses; memory is the peak less what is
resident after import, start and a warm-up (for other programs: after import).
"""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    compare.add_options(parser)
    parser.add_argument("--long", action="store_true", help="also the rollout of 100,000 steps")
    options = parser.parse_args(arguments)
    print(
        HEAD.format(
            machine=machine.describe(), python=platform.python_version(), numpy=numpy.__version__, compilers=compilers()
        )
    )
    for workload in NAMES:
        print(f"## Workload {workload}\n\n    python -m benchmarks.compare {workload}\n")
        print(f"{options.threads} thread, {options.dtype}, {options.rounds} rounds of {options.reps} repetitions.\n")
        print(compare.table(compare.collect(workload, options)) + "\n", flush=True)
    print_limits(["--rounds", "2", "--reps", str(options.reps), "--dtype", options.dtype])
    print("## The air track: 29,000 steps of 1 ms\n\n    python -m benchmarks.fits.air_track\n")
    found = bench_air_track.collect(rounds=options.rounds, repetitions=10 * options.reps)
    print(bench_air_track.table(found, min(bench_air_track.import_s() for _ in range(3))) + "\n", flush=True)
    long = " --long" if options.long else ""
    print(f"## Rollouts\n\n    python -m benchmarks.rollout{long}\n")
    for part in bench_rollout.sections(repetitions=options.reps, long=options.long):
        print(part, flush=True)
    print("## A node of the graph\n\n    python -m benchmarks.graph\n")
    for part in bench_autograd.sections([sys.executable, *options.python], rounds=options.rounds):
        print(part, flush=True)
    print(f"## A product of Jacobians, in reverse and by a scan\n\n    python {JACOBIAN_CHAINS}\n", flush=True)
    subprocess.run([sys.executable, compare.ROOT / JACOBIAN_CHAINS], check=True)
    print(flush=True)
    print("## Contacts against closed forms\n\n    python -m benchmarks.truth\n")
    print("f64; errors are relative to the closed form. docs/contact.md says what it means.\n", flush=True)
    bench_truth.main()


def print_limits(options: list[str]) -> None:
    """Print what limits the workloads: the core, its threads, and the size of its caches."""
    for title, part, more in (
        ("What a core can do at most", roofline, []),
        ("More threads", bench_threads, []),
        ("Growth", growth, ["--picture", str(compare.ROOT / GROWTH_PICTURE)]),
    ):
        print(f"## {title}\n\n    python -m {part.__name__}\n", flush=True)
        part.main([*options, *more])
    print(f"![Time of an element and step by the number of elements]({GROWTH_PICTURE.rpartition('/')[2]})\n")


def compilers() -> str:
    """The kernel compilers that are measured, with their releases."""
    return ", ".join(f"{name.capitalize()} {version(name)}" for name in machine.compilers())


if __name__ == "__main__":
    main()
