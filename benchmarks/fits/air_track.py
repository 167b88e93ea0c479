"""`python -m benchmarks.fits.air_track`: time of a gradient of the air track, of the first one, and of the import.

A glider between springs, 29 s at dt = 1 ms: one node, one fixed point and one spring. The loss depends on its position
at 879 times, so adjoints enter all along the trajectory. The gradient is with respect to stiffness, drag, rest point,
initial position and velocity. A batch of 50 tracks has a stiffness for each. First gradients are timed in new
processes, from the import to the result.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from .. import machine
from ..compare import ROOT

STEPS = 29_000
STRIDE = STEPS // 870
Case = tuple[str, str, int]
"""Integrator, precision and number of tracks."""
CASES: tuple[Case, ...] = (
    ("semi_implicit_euler", "f64", 1),
    ("semi_implicit_euler", "f32", 1),
    ("velocity_verlet", "f64", 1),
    ("velocity_verlet", "f32", 1),
    ("velocity_verlet", "f64", 50),
)


def build(integrator: str, precision: str, steps: int, tracks: int = 1) -> Callable[[], float]:
    """Make a function that computes the gradient and returns the loss, of several tracks their sum."""
    import numpy as np

    from simphys.autograd import runtime, tensor
    from simphys.rollout import rollout
    from simphys.simulators.mass_spring.model import MassSpring, Params, State

    runtime.init(precision=precision, threads=1)
    model = MassSpring(np.array([[0, 1]], np.int32), np.array([False, True]), 1, 1e-3, integrator)
    stiffness = tensor([6.22] if tracks == 1 else np.linspace(5.0, 7.0, tracks)[:, None], requires_grad=True)
    drag = tensor([0.0137, 0.0], requires_grad=True)
    position = tensor([[-70.0], [4.0]], requires_grad=True)  # the glider, and its rest point
    velocity = tensor([[0.0], [0.0]], requires_grad=True)
    leaves = (stiffness, drag, position, velocity)
    params = Params(
        stiffness=stiffness, damping=tensor([0.0]), rest_length=tensor([0.0]), mass=tensor([1.0, 1.0]), drag=drag,
        gravity=tensor([0.0]),
    )  # fmt: skip
    rows = np.arange(0, steps + 1, STRIDE)
    measured = tensor(4.0 - 70.0 * np.cos(2.5 * 1e-3 * rows))

    def gradient() -> float:
        for leaf in leaves:
            leaf.grad = None
        trajectory = rollout(model, params, State(position, velocity), steps=steps)
        error = trajectory.position[..., rows, 0, 0] - measured
        loss = (error * error).sum()
        loss.backward()
        return loss.item()

    return gradient


def measure(case: Case, *, repetitions: int, steps: int = STEPS) -> dict[str, float]:
    """Measure milliseconds of a gradient, seconds of the first (with build and compilation), and memory [MB]."""
    start = time.perf_counter()
    integrator, precision, tracks = case
    gradient = build(integrator, precision, steps, tracks)
    gradient()
    first_s = time.perf_counter() - start
    machine.reset_peak()
    warm_mb = machine.resident_mb()
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        gradient()
        times.append((time.perf_counter() - start) * 1e3)
    return {
        "grad_ms": statistics.median(times),
        "grad_min_ms": min(times),
        "first_s": first_s,
        "rss_delta_mb": machine.peak_mb() - warm_mb,
    }


def measure_apart(case: Case, cache: str, repetitions: int) -> dict[str, float]:
    """Call `measure` in a new process, with compiled kernels cached in the folder `cache`."""
    call = f"measure({case!r}, repetitions={repetitions})"
    program = (
        "import json; from benchmarks import machine; from benchmarks.fits import air_track as track; "
        "machine.confine(1); "
        f"print(json.dumps(track.{call}))"
    )
    environment = {**os.environ, "TI_OFFLINE_CACHE": "1", "TI_OFFLINE_CACHE_FILE_PATH": cache}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def import_s() -> float:
    """Measure the seconds of `import simphys` in a new process."""
    program = "import time; start = time.perf_counter(); import simphys; print(time.perf_counter() - start)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout)


def collect(*, rounds: int, repetitions: int) -> dict[Case, dict[str, float]]:
    """Measure minima over rounds for each case; `cold_s` and `warm_s` are first gradients."""
    best: dict[Case, dict[str, float]] = {}
    for _ in range(rounds):
        for case in CASES:
            with tempfile.TemporaryDirectory() as cache:
                cold = measure_apart(case, cache, 1)
                warm = measure_apart(case, cache, repetitions)
            row = {**warm, "cold_s": cold["first_s"], "warm_s": warm["first_s"]}
            known = best.setdefault(case, row)
            best[case] = {name: min(known[name], value) for name, value in row.items()}
    return best


def table(best: dict[Case, dict[str, float]], import_seconds: float) -> str:
    """Format the results as a Markdown table."""
    lines = [
        f"`import simphys`: {1e3 * import_seconds:.0f} ms",
        "",
        "| integrator | precision | tracks | gradient ms | first gradient s | with the kernels in the cache s | "
        "memory MB |",
        "|---|---|---|---|---|---|---|",
    ]
    for (integrator, precision, tracks), row in best.items():
        gradient = f"{row['grad_ms']:.2f} ({row['grad_min_ms']:.2f})"
        first = f"{row['cold_s']:.2f} | {row['warm_s']:.2f}"
        lines.append(f"| {integrator} | {precision} | {tracks} | {gradient} | {first} | {row['rss_delta_mb']:.1f} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fits.air_track", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--reps", type=int, default=50, help="repetitions within a run")
    options = parser.parse_args(arguments)
    print(table(collect(rounds=options.rounds, repetitions=options.reps), min(import_s() for _ in range(3))))


if __name__ == "__main__":
    main()
