"""w1c: a cloth-like lattice of springs, pinned along its top row, drawn towards a displaced copy of itself.

n x n nodes of unit mass at spacing 1/n; all four kinds of lattice springs, at rest; drag 1/s; gravity -0.5 m/s^2.
The gradient is that of the mean squared distance from the target at the end, with respect to every stiffness `k` and
initial velocity `v0`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simphys.autograd import Tensor, no_grad, tensor
from simphys.rollout import rollout
from simphys.simulators.mass_spring.model import MassSpring, Params, State
from simphys.simulators.mass_spring.step import step

from .initial_data import hash01, lattice_nodes, lattice_springs
from .workload import Case, Gradients, Settings, Workload

SETTINGS: Settings = {
    "size.n": 128,
    "time.steps": 256,
    "time.dt": 2e-3,
    "material.stiffness": 1e4,
    "material.drag": 1.0,
    "environment.gravity": -0.5,
}


class System(NamedTuple):
    """Lattice of w1c's material, with its target positions at the end."""

    model: MassSpring
    params: Params
    """Parameters; the stiffness requires a gradient."""
    start: State
    """Initial state; the velocity requires a gradient."""
    target: Tensor
    """Target positions, [n, 2]."""


def system(settings: Settings, nx: int, ny: int) -> System:
    """Make a lattice of nx x ny nodes, with Tensors of the current precision."""
    ij, ends = lattice_nodes(nx, ny), lattice_springs(nx, ny)
    x = ij / nx
    k = tensor(settings["material.stiffness"] * (0.9 + 0.2 * hash01(len(ends), 3)), requires_grad=True)
    waves = 0.2 * np.stack([np.sin(2 * np.pi * x[:, 1]), np.cos(2 * np.pi * x[:, 0])], axis=1)
    v0 = tensor(waves, requires_grad=True)
    params = Params(
        stiffness=k,
        damping=tensor(np.zeros(len(ends))),
        rest_length=tensor(np.linalg.norm(x[ends[:, 1]] - x[ends[:, 0]], axis=1)),
        mass=tensor(np.ones(nx * ny)),
        drag=tensor(np.full(nx * ny, settings["material.drag"])),
        gravity=tensor([0.0, settings["environment.gravity"]]),
    )
    model = MassSpring(ends, ij[:, 1] == ny - 1, 2, settings["time.dt"], "semi_implicit_euler")
    return System(model, params, State(tensor(x), v0), tensor(x + np.array([0.02, 0.01])))


def build(settings: Settings, mode: str) -> Case:
    """Make the case with Tensors of the current precision."""
    n, steps = int(settings["size.n"]), int(settings["time.steps"])
    model, params, start, target = system(settings, n, n)
    k, v0 = params.stiffness, start.velocity

    def final() -> State:
        if mode == "fused":
            return rollout(model, params, start, steps=steps, keep="final").final
        state = start
        for _ in range(steps):
            state = step(model, params, state)
        return state

    def forward() -> float:
        with no_grad():
            error = final().position - target
            return ((error * error).sum() / (n * n)).item()

    def gradient() -> tuple[float, Gradients]:
        for leaf in (k, v0):
            leaf.grad = None
        error = final().position - target
        loss = (error * error).sum() / (n * n)
        loss.backward()
        assert k.grad is not None and v0.grad is not None
        return loss.item(), {"k": k.grad.numpy(), "v0": v0.grad.numpy()}

    return Case(forward, gradient)


def elements(settings: Settings) -> int:
    """Number of springs."""
    n = int(settings["size.n"])
    return 2 * n * (n - 1) + 2 * (n - 1) ** 2


WORKLOAD = Workload("w1c", SETTINGS, elements, build)
