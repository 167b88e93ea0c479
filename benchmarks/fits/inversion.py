"""Full waveform inversion compared with deepwave: the same shots, misfit and search; misfits and times.

20 shots and 100 receivers above a layered ground with a lens, order 4, absorbing layers on all sides, f32. Both fit
the speed by L-BFGS from the same start for the same number of iterations; then gradients are timed alternately.
The layers are outside of the unknown part; their formulas are similar but not the same, so misfits differ slightly.

    python -m benchmarks.fits.inversion [--iterations 10] [--threads 1] [--shots 20]

Without deepwave (https://github.com/ar4/deepwave) and torch, only ours is run.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from simphys.autograd import runtime, tensor
from simphys.experiment.wavelets import ricker
from simphys.rollout import rollout
from simphys.simulators.wave.model import Params, State, Wave

from ..measuring import turns

Array = np.ndarray[Any, Any]
Misfit = Callable[[Array], tuple[float, Array]]
"""Function from the speed of the unknown cells [nx * nz] to loss and gradient, f64."""

SPACING, LAYER, FREQUENCY, FASTEST = 10.0, 12, 8.0, 2400.0


@dataclass(frozen=True)
class Survey:
    """Survey to simulate; positions are cells of the unknown part."""

    cells: tuple[int, int] = (120, 60)
    steps: int = 600
    dt: float = 2e-3
    shots: int = 20
    receivers: int = 100

    def ground(self) -> Array:
        """True speed [m/s]."""
        x, z = np.mgrid[: self.cells[0], : self.cells[1]]
        speed = np.select([z > 42, z > 27, z > 13], [2400.0, 2050.0, 1750.0], 1500.0)
        return np.where(((x - 78) / 15) ** 2 + ((z - 34) / 5) ** 2 < 1, 1650.0, speed)

    def start(self) -> Array:
        """Initial guess: a speed that grows with depth."""
        return np.broadcast_to(np.linspace(1500.0, 2400.0, self.cells[1]), self.cells).copy()

    def sources(self) -> Array:
        """Positions of the sources [shots, 2]."""
        return self._line(self.shots, 3)

    def ears(self) -> Array:
        """Positions of the receivers [receivers, 2]."""
        return self._line(self.receivers, 1)

    def wavelet(self) -> Array:
        """Strength of the sources [steps]."""
        return ricker(self.dt * np.arange(self.steps), FREQUENCY)

    def _line(self, count: int, depth: int) -> Array:
        x = np.round(np.linspace(2, self.cells[0] - 3, count)).astype(int)
        return np.stack([x, np.full(count, depth)], axis=1)


def ours(survey: Survey) -> tuple[Callable[[Array], Array], Callable[[Array], Misfit]]:
    """Make functions for the receivers' signals of a speed [shots, steps, receivers], and for the misfit."""
    cells = tuple([count + 2 * LAYER for count in survey.cells])
    model = Wave(
        cells, SPACING, survey.dt, order=4, boundaries=("absorbing",) * 4, layer=LAYER, layer_speed=FASTEST,
        layer_frequency=FREQUENCY, sources=("point",), receivers=survey.receivers,
    )  # fmt: skip
    shapes, strength = model.state_shapes(), tensor(survey.wavelet()[:, None])
    zeros = {name: tensor(np.zeros(shapes[name])) for name in shapes}
    position = tensor((survey.sources()[:, None] + LAYER) * SPACING)
    state = State(**zeros | {"source_position": position})
    ears, still = tensor((survey.ears() + LAYER) * SPACING), tensor(np.zeros((1, 2)))

    def read(speed: Any) -> Any:
        motion = rollout(
            model, Params(speed, still, ears), state, steps=survey.steps, control=strength, fields=["received"],
            memory="1GB",
        )  # fmt: skip
        return motion.states.received[:, 1:]

    def padded(speed: Array) -> Array:
        return np.pad(speed.reshape(survey.cells), LAYER, mode="edge")

    def adj_padded(adj: Array) -> Array:
        """Add the adjoints of layer cells to the nearest unknown cell, whose speed they copy."""
        for axis in (0, 1):
            adj = np.moveaxis(adj, axis, 0)
            adj[LAYER] += adj[:LAYER].sum(axis=0)
            adj[-LAYER - 1] += adj[-LAYER:].sum(axis=0)
            adj = np.moveaxis(adj[LAYER:-LAYER], 0, axis)
        return adj

    def misfit_to(measured: Array) -> Misfit:
        def misfit(speed: Array) -> tuple[float, Array]:
            leaf = tensor(padded(speed), requires_grad=True)
            difference = read(leaf) - measured.astype(leaf.dtype)
            loss = (difference * difference).sum() * 0.5
            loss.backward()
            assert leaf.grad is not None
            return loss.item(), adj_padded(leaf.grad.data.astype(float)).reshape(-1)

        return misfit

    return lambda speed: read(tensor(padded(speed))).data, misfit_to


def deepwaves(survey: Survey, measured: Array, threads: int) -> Misfit:
    """Make the misfit by deepwave, which reads receivers before a step and has sources of the opposite sign."""
    import deepwave
    import torch

    torch.set_num_threads(threads)
    amplitudes = torch.tensor(-survey.wavelet() / SPACING**2).float().expand(survey.shots, 1, -1)
    sources = torch.tensor(survey.sources())[:, None]
    ears = torch.tensor(survey.ears()).expand(survey.shots, -1, -1)
    wanted = torch.tensor(np.ascontiguousarray(measured[:, :-1].transpose(0, 2, 1))).float()

    def misfit(speed: Array) -> tuple[float, Array]:
        v = torch.tensor(speed.reshape(survey.cells)).float().requires_grad_()
        read = deepwave.scalar(
            v, SPACING, survey.dt, source_amplitudes=amplitudes, source_locations=sources, receiver_locations=ears,
            accuracy=4, pml_width=LAYER, pml_freq=FREQUENCY, max_vel=FASTEST,
        )[-1]  # fmt: skip
        loss = 0.5 * ((read[:, :, 1:] - wanted) ** 2).sum()
        loss.backward()
        return loss.item(), v.grad.double().numpy().reshape(-1)

    return misfit


def search(misfit: Misfit, survey: Survey, iterations: int) -> tuple[float, float, Array, float]:
    """Fit the speed; return the misfits at start and end, the speed, and the seconds."""
    began, scale = time.perf_counter(), 300.0
    start = survey.start().reshape(-1)
    first = misfit(start)[0]

    def scaled(theta: Array) -> tuple[float, Array]:
        loss, gradient = misfit(start + scale * theta)
        return loss / first, gradient * scale / first

    bounds = [((1300.0 - each) / scale, (2800.0 - each) / scale) for each in start]
    options = {"maxiter": iterations}
    found = minimize(scaled, np.zeros(start.size), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return first, found.fun * first, start + scale * found.x, time.perf_counter() - began


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fits.inversion", description=__doc__)
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--shots", type=int, default=20)
    parser.add_argument("--receivers", type=int, default=100)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args(arguments)
    runtime.init(precision="f32", threads=options.threads)
    survey = Survey(steps=options.steps, shots=options.shots, receivers=options.receivers)
    read, misfit_to = ours(survey)
    measured = read(survey.ground())
    ways = {"simphys": misfit_to(measured)}
    if importlib.util.find_spec("deepwave") is not None:
        ways["deepwave"] = deepwaves(survey, measured, options.threads)
    start = survey.start().reshape(-1)
    seconds = turns({name: functools.partial(way, start) for name, way in ways.items()}, options.repetitions)
    truth = survey.ground().reshape(-1)

    def error(speed: Array) -> float:
        return float(np.linalg.norm(speed - truth) / np.linalg.norm(start - truth))

    print(
        f"{survey.shots} shots, {survey.receivers} receivers, {survey.cells} cells, {survey.steps} steps, f32, ", end=""
    )
    print(f"{options.threads} thread(s), {options.iterations} iterations\n")
    print("| | gradient s (min) | misfit at the start | misfit found | error of speed, of the start's | search s |")
    print("|---|---|---|---|---|---|")
    for name, way in ways.items():
        first, last, speed, taken = search(way, survey, options.iterations)
        print(f"| {name} | {min(seconds[name]):.2f} | {first:.6g} | {last:.4g} | {error(speed):.3f} | {taken:.1f} |")
    if len(ways) > 1:
        gradients = [way(start)[1] for way in ways.values()]
        cosine = gradients[0] @ gradients[1] / np.prod([np.linalg.norm(each) for each in gradients])
        print(f"\nratio of times of a gradient {min(seconds['simphys']) / min(seconds['deepwave']):.2f}, ", end="")
        print(f"cosine of the gradients at the start {cosine:.5f}")


if __name__ == "__main__":
    main()
