"""`python -m benchmarks.growth [--picture PATH]`: the time of an element and step, by the number of elements.

Steps are fewer where elements are more, so that every size takes about as long. A grid of particles has as many cells,
and its time step gets shorter with them. Marks in the picture are sizes whose state fills a cache.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

from . import compare, machine
from .measuring import markdown
from .roofline import LEAST, caches


class Size(NamedTuple):
    """Size of a workload: its elements, and the settings for it."""

    elements: int
    settings: dict[str, float]


UPDATES = {"w1c": 8e6, "w2": 4e5, "w3": 3e7, "w4": 1e6, "w5": 2e8}
"""Elements times steps of a gradient of each workload: a part of a second."""
SIDES = {
    "w1c": (16, 32, 64, 128, 256, 512, 1024),
    "w2": (32, 64, 128, 256, 512, 1024),
    "w3": (64, 128, 256, 512, 1024, 2048),
    "w4": (32, 64, 110, 256, 512),
    "w5": (128, 512, 1024, 4096, 16384),
}
"""Nodes or cells along an axis; bodies."""
FEWEST, MOST = 4, 4096
"""Numbers of steps."""


def sizes(name: str, *, largest: int | None = None) -> Iterator[Size]:
    """List the sizes of a workload, to a largest side."""
    from .workloads.run import load

    workload = load(name)
    for side in SIDES[name]:
        if largest is not None and side > largest:
            return
        settings: dict[str, float] = {"size.n": side}
        if name == "w2":
            settings = {"size.nx": side, "size.ny": side, "grid.cells": side, "time.dt": 1e-3 * 128 / max(side, 128)}
        elements = workload.elements({**workload.settings, **settings})
        steps = round(min(max(UPDATES[name] / elements, FEWEST), MOST))
        yield Size(elements, {**settings, "time.steps": 1 if elements > UPDATES[name] else steps})


def measure(name: str, compiler: str, options: argparse.Namespace, largest: int | None) -> list[tuple[int, float]]:
    """Measure (elements, ns an element and step) of gradients."""
    found = []
    for size in sizes(name, largest=largest):
        overrides = [f"{key}={value}" for key, value in size.settings.items()]
        row = compare.run(compare.own_job(name, compiler, options, *overrides))
        if row is not None:
            found.append((size.elements, row["grad_min_ms"] * 1e6 / size.elements / size.settings["time.steps"]))
    return found


def draw(found: dict[str, list[tuple[int, float]]], path: str, title: str) -> None:
    """Draw the curves, and the caches, into a picture."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
    for name, points in found.items():
        (line,) = axes.loglog(*zip(*points, strict=True), "o-", label=name)
        lowest, of_line = min(rate for _, rate in points), line.get_color()
        for level, size in caches().items():
            full = size / LEAST[name].state
            if points[0][0] < full < points[-1][0] and name != "w5":  # charges stay in the nearest cache
                axes.plot([full], [0.8 * lowest], "|", color=of_line, markersize=14)
                axes.annotate(level, (full, 0.62 * lowest), color=of_line, ha="center", va="top", fontsize=8)
    axes.margins(y=0.12)
    axes.set(xlabel="springs, particles, cells, pairs", ylabel="gradient [ns per element and step]", title=title)
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def rows(found: dict[str, list[tuple[int, float]]]) -> list[list[str]]:
    """Format the curves: one row for each workload."""
    made = []
    for name, points in found.items():
        rates = [rate for _, rate in points]
        curve = ", ".join(f"{elements:,}: {rate:.3g}" for elements, rate in points)
        made.append([name, curve, f"{rates[-1] / rates[0]:.2f}", f"{max(rates) / min(rates):.2f}"])
    return made


HEAD = ("workload", "elements: gradient ns", "largest / smallest size", "slowest / fastest")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    compare.add_options(parser)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(SIDES)}; default all")
    parser.add_argument("--picture", help="file of the picture")
    parser.add_argument("--largest", type=int, help="leave out larger sides")
    parser.add_argument("--compiler", default=machine.compilers()[0], choices=machine.compilers())
    options: Any = parser.parse_args(arguments)
    if unknown := set(options.workloads) - set(SIDES):
        parser.error(f"no workload {', '.join(sorted(unknown))}; there are {', '.join(SIDES)}")
    found = {name: measure(name, options.compiler, options, options.largest) for name in options.workloads or SIDES}
    print(f"### {options.compiler.capitalize()}, {options.threads} thread, {options.dtype}\n")
    print(markdown(HEAD, rows(found)) + "\n", flush=True)
    if options.picture:
        draw(found, options.picture, f"{options.compiler}, {machine.describe()}")


if __name__ == "__main__":
    main()
