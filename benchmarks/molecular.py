"""Time of forces within a cut-off: steps and gradients of a Lennard-Jones liquid of 32,000 atoms.

    python -m benchmarks.molecular [THREADS] [PRECISION]

Density 0.85, temperature 1.2, cut-off 2.5 and skin 0.3, in units of the diameter and the depth. A pair is counted
twice, once for each of its atoms, as it is computed.
"""

from __future__ import annotations

import math
import sys
import time
from typing import Any

import numpy as np

from simphys.autograd import no_grad, runtime, tensor
from simphys.rollout import rollout
from simphys.simulators.molecular import Molecular, Params, State
from simphys.simulators.molecular.lattice import draw_velocities, fill

CELLS, STEPS, REPEATS = 20, 40, 3


def make() -> tuple[Molecular, Params, State]:
    """Make a liquid that begins as a crystal."""
    position, box = fill("fcc", [CELLS] * 3, 0.85)
    mass = np.ones(len(position))
    sizes: dict[str, Any] = {"dt": 0.005, "cutoff": 2.5, "switch_on": 2.25, "skin": 0.3, "neighbours": 120}
    model = Molecular(len(position), tuple(box.tolist()), **sizes)
    params = Params(tensor(mass), *[tensor(value, requires_grad=True) for value in (1.0, 1.0, 5.0, 1.0, 1.2)])
    velocity = draw_velocities(mass, 3, 2.4, 0)  # half of it goes into the liquid's structure
    empty = [tensor(np.zeros(shape)) for shape in ((), (0,), (0,))]
    return model, params, State(tensor(position), tensor(velocity), *empty)


def main() -> None:
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    precision: Any = sys.argv[2] if len(sys.argv) > 2 else "f64"
    runtime.init(threads=threads, precision=precision)
    model, params, start = make()
    with no_grad():
        melted = rollout(model, params, start, steps=300, keep="final").final
    forward, both = [], []
    for _ in range(REPEATS):
        began = time.perf_counter()
        with no_grad():
            rollout(model, params, melted, steps=STEPS, keep="final")
        forward.append(time.perf_counter() - began)
        began = time.perf_counter()
        final = rollout(model, params, melted, steps=STEPS, keep="final").final
        (final.position**2).sum().backward()
        both.append(time.perf_counter() - began)
    pairs = model.atoms * 4 / 3 * math.pi * model.cutoff**3 * 0.85
    for name, times in (("a step", forward[1:]), ("a step with its gradient", both[1:])):
        each = min(times) / STEPS
        print(f"{name}: {1e3 * each:.2f} ms, {1e9 * each / pairs:.2f} ns a pair ({precision}, {threads} threads)")


if __name__ == "__main__":
    main()
