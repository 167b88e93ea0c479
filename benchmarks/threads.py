"""`python -m benchmarks.threads`: gradients of the workloads on one thread and on more."""

from __future__ import annotations

import argparse
import os

from . import compare, cores, machine
from .measuring import markdown
from .workloads.run import NAMES


def counts(most: int) -> list[int]:
    """Numbers of threads that are compared: 1, 2, 4 ... up to `most`."""
    return [*[2**k for k in range(most.bit_length()) if 2**k < most], most]


def rows(compiler: str, options: argparse.Namespace) -> list[list[str]]:
    """Measure the workloads in turns, round by round; one row for each."""
    numbers, made = counts(options.most), []
    for name in options.workloads or NAMES:
        fastest = dict.fromkeys(numbers, float("inf"))
        for _ in range(options.rounds):
            for threads in numbers:
                row = compare.run(compare.own_job(name, compiler, with_threads(options, threads)))
                fastest[threads] = min(fastest[threads], row["grad_min_ms"] if row else float("inf"))
        speed_up = fastest[1] / fastest[numbers[-1]]
        made.append([name, *[f"{fastest[threads]:.4g}" for threads in numbers], f"{speed_up:.2f}"])
    return made


def with_threads(options: argparse.Namespace, threads: int) -> argparse.Namespace:
    """Return the options with another number of threads."""
    return argparse.Namespace(**{**vars(options), "threads": threads})


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.threads", description=__doc__)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(NAMES)}; default all")
    parser.add_argument("--most", type=int, default=os.cpu_count() or 1, help="the largest number of threads")
    compare.add_options(parser)
    options = parser.parse_args(arguments)
    if unknown := set(options.workloads) - set(NAMES):
        parser.error(f"no workload {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    at_most = ", ".join([f"{name} {factor:.2f}" for name, factor in cores.find_speed_ups(options.most).items()])
    print(f"Speed-up of {options.most} processes at most: {at_most}.\n")
    for compiler in machine.compilers():
        print(f"### {compiler.capitalize()}, {options.dtype}, gradient ms (minima)\n")
        head = ("workload", *[f"{n} thread{'s' * (n > 1)}" for n in counts(options.most)], "speed-up")
        print(markdown(head, rows(compiler, options)) + "\n", flush=True)


if __name__ == "__main__":
    main()
