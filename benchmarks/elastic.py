"""Elastic gradients beside those of deepwave (Richardson): cosine of gathers and gradients, and times, on one thread.

    python -m benchmarks.elastic [REPEATS]

One shot in a full space with two smooth anomalies, a vertical force and 30 receivers of vertical velocity, order 4,
f32. The loss is half the sum of the squared readings; its gradients are compared inside of the absorbing layers.
deepwave is installed by hand (`pip install deepwave`); it needs PyTorch. Its vertical velocities lie half a cell lower.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from simphys.autograd import runtime, tensor
from simphys.rollout import rollout
from simphys.simulators.elastic import Elastic, Params, State

Array = np.ndarray[Any, Any]
CELLS, SPACING, DT, STEPS, FREQUENCY, LAYER, DENSITY = (100, 80), 4.0, 5e-4, 500, 18.0, 15, 2000.0
SOURCE, RECEIVERS, DEPTH = (30, 25), np.arange(25, 85, 2), 55
INSIDE = (slice(LAYER + 3, -LAYER - 3),) * 2


def make_medium() -> tuple[Array, Array]:
    """vp and vs [m/s]."""
    x, z = np.meshgrid(*map(np.arange, CELLS), indexing="ij")
    vp = 2000 + 300 * np.exp(-((x - 50) ** 2 + (z - 40) ** 2) / 150)
    return vp, 1150 + 200 * np.exp(-((x - 60) ** 2 + (z - 45) ** 2) / 120)


def make_wavelet() -> Array:
    """Ricker wavelet [STEPS]."""
    a = (np.pi * (np.arange(STEPS) * DT * FREQUENCY - 1.2)) ** 2
    return ((1 - 2 * a) * np.exp(-a)).astype(np.float32)


def run_simphys(vp: Array, vs: Array) -> tuple[Array, Array, Array]:
    """Gather [R, STEPS], and gradients by vp and vs."""
    model = Elastic(
        CELLS, SPACING, DT, order=4, sides=("absorbing",) * 4, layer=LAYER, layer_speed=2000.0,
        layer_frequency=FREQUENCY, sources=1, receivers=len(RECEIVERS),
    )  # fmt: skip
    places = np.stack([RECEIVERS + 0.5, np.full(len(RECEIVERS), DEPTH + 1.0)], -1) * SPACING
    values = {name: np.zeros(shape) for name, shape in {**model.param_shapes(), **model.state_shapes()}.items()}
    values |= {"vp": vp, "vs": vs, "density": np.full(CELLS, DENSITY), "force": np.array([[0.0, SPACING**2]])}
    values |= {"source_position": np.array([[SOURCE[0] + 0.5, SOURCE[1] + 1.0]]) * SPACING, "receiver_position": places}
    made = {n: tensor(x.astype(np.float32), requires_grad=n in ("vp", "vs")) for n, x in values.items()}
    params, state = Params(**{n: made[n] for n in Params.names()}), State(**{n: made[n] for n in State.names()})
    control = tensor(make_wavelet()[:, None])
    motion = rollout(model, params, state, steps=STEPS, control=control, fields=["received"])
    vertical = motion.states.received[:, len(RECEIVERS) :]
    (0.5 * vertical * vertical).sum().backward()
    assert params.vp.grad is not None and params.vs.grad is not None
    return vertical.data[1:].T, params.vp.grad.data, params.vs.grad.data


def run_deepwave(vp: Array, vs: Array) -> tuple[Array, Array, Array]:
    """Run the same by deepwave."""
    import deepwave
    import torch

    torch.set_num_threads(1)
    P, S = (torch.tensor(x.astype(np.float32), requires_grad=True) for x in (vp, vs))
    receivers = torch.tensor(np.stack([RECEIVERS, np.full(len(RECEIVERS), DEPTH)], -1))[None]
    found = deepwave.elastic(
        DENSITY * (P**2 - 2 * S**2), DENSITY * S**2, torch.full(CELLS, 1 / DENSITY), SPACING, DT,
        source_amplitudes_x=torch.tensor(make_wavelet())[None, None],
        source_locations_x=torch.tensor([[list(SOURCE)]]), receiver_locations_x=receivers, accuracy=4,
        pml_width=LAYER, pml_freq=FREQUENCY,
    )[-1]  # fmt: skip
    (0.5 * found**2).sum().backward()
    assert P.grad is not None and S.grad is not None
    return found.detach().numpy()[0], P.grad.numpy(), S.grad.numpy()


def measure(function: Callable[[Array, Array], Any], repeats: int) -> tuple[Any, float]:
    """Run it once, and then some times; return the result and the least time [s]."""
    medium, times = make_medium(), []
    result = function(*medium)
    for _ in range(repeats):
        begin = time.perf_counter()
        function(*medium)
        times.append(time.perf_counter() - begin)
    return result, min(times)


def cosine(a: Array, b: Array) -> float:
    """Cosine of the angle between two arrays."""
    a, b = a / np.abs(a).max(), b / np.abs(b).max()
    return float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))


def main(repeats: int) -> None:
    """Print a line for each result."""
    runtime.init(precision="f32", threads=1)
    (gather, *ours), time_ours = measure(run_simphys, repeats)
    (other, *theirs), time_theirs = measure(run_deepwave, repeats)
    size = np.linalg.norm(gather) / np.linalg.norm(other)
    print(f"gather: cosine {cosine(gather[:, :-1], other[:, 1:]):.6f}, ratio of norms {size:.6f}")  # a step later there
    for name, a, b in zip(("vp", "vs"), ours, theirs, strict=True):
        size = np.linalg.norm(a[INSIDE]) / np.linalg.norm(b[INSIDE])
        print(f"gradient by {name}: cosine {cosine(a[INSIDE], b[INSIDE]):.6f}, ratio of norms {size:.6f}")
    print(f"a gradient: simphys {time_ours:.2f} s, deepwave {time_theirs:.2f} s, ratio {time_ours / time_theirs:.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
