"""`python -m benchmarks.leaks`: memory, files and objects after many iterations of a fit and many graphs."""

from __future__ import annotations

import argparse
import ctypes
import gc
import itertools
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import machine

SCENE = Path(__file__).resolve().parents[1] / "docs" / "examples" / "spring.toml"


class Usage(NamedTuple):
    """What this process holds."""

    memory_mb: float
    files: int
    objects: int


def measure() -> Usage:
    """Measure after everything was freed that can be, also by the allocator of C."""
    gc.collect()
    if os.name == "posix" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)
    return Usage(machine.resident_mb(), len(os.listdir("/proc/self/fd")), len(gc.get_objects()))


def find_growth(work: Callable[[int], Any], count: int) -> Usage:
    """Do `work(count)` three times; return the least that the second or the third leaves behind.

    The first time fills caches, and one that takes longer than others may import what those did not need.
    """
    work(count)
    used = [measure()]
    for _ in range(2):
        work(count)
        used.append(measure())
    growth = [[y - x for x, y in zip(before, after, strict=True)] for before, after in itertools.pairwise(used)]
    return Usage(*[min(values) for values in zip(*growth, strict=True)])


def fit(iterations: int) -> None:
    """Fit a mass on a spring by Adam, in a folder that is then deleted."""
    import simphys

    slow = ["optimizer.method=adam", "optimizer.learning_rate=1e-6", "optimizer.tolerance=1e-15"]
    scene = simphys.load_scene(SCENE, [*slow, f"optimizer.iterations={iterations}"])
    with tempfile.TemporaryDirectory() as folder:
        simphys.identify(scene, folder=folder)


def make_graphs(count: int) -> None:
    """Record graphs with hooks, retained gradients and second derivatives; half of them never go backward."""
    from simphys.autograd import grad, ops, tensor

    for number in range(count):
        x = tensor(np.ones(100), requires_grad=True)
        y = ops.sin(x * x)
        y.retain_grad()
        y.register_hook(lambda adj: 2.0 * adj)
        loss = (y * y).sum()
        if number % 2:
            (slope,) = grad(loss, [x], create_graph=True)
            slope.sum().backward()


def roll_out(count: int) -> None:
    """Simulate a scene with a gradient, again and again."""
    import simphys
    from simphys.autograd import tensor

    objective = simphys.load_scene(SCENE).objective()
    for _ in range(count):
        scene = objective.scene_at(tensor(objective.start, requires_grad=True))
        scene.loss(scene.rollout()).backward()


WORK: dict[str, tuple[Callable[[int], Any], int]] = {
    "iterations of a fit": (fit, 2000),
    "graphs": (make_graphs, 10_000),
    "rollouts": (roll_out, 2000),
}


def main(arguments: list[str] | None = None) -> None:
    """Print a line for each kind of work."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.leaks", description=__doc__)
    parser.add_argument("--part", type=float, default=1.0, help="fraction of the numbers of repetitions")
    part = parser.parse_args(arguments).part
    print("| left behind by | memory [MB] | open files | objects of Python |\n|---|---|---|---|")
    for name, (work, count) in WORK.items():
        number = max(1, int(part * count))
        found = find_growth(work, number)
        print(f"| {number} {name} | {found.memory_mb:+.1f} | {found.files:+d} | {found.objects:+d} |", flush=True)


if __name__ == "__main__":
    main()
