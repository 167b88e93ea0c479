"""w2: an elastic block, fixed corotated, that falls to the floor, bounces and hits a wall, by MLS-MPM in the plane.

n particles of unit mass and volume, half a spacing apart. The gradient is that of half the mean squared distance from a
point at the end, with respect to initial velocity `v0` and stiffness `E`, where mu = lambda = E: a Poisson's ratio
of 1/4, for which E here is 2/5 of Young's modulus.
"""

from __future__ import annotations

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.rollout import Mode, rollout
from simphys.simulators.mpm.model import MPM, Params, State

from .initial_data import hash01
from .workload import Case, Settings, Workload, case_of

SETTINGS: Settings = {
    "size.nx": 128,
    "size.ny": 64,
    "grid.cells": 128,
    "time.steps": 512,
    "time.dt": 1e-3,
    "material.young": 6.0,
    "environment.gravity": 3.8,
}
TARGET = (0.7, 0.2)


def build(settings: Settings, mode: str) -> Case:
    """Make the case with Tensors of the current precision."""
    nx, ny, cells, steps = (int(settings[k]) for k in ("size.nx", "size.ny", "grid.cells", "time.steps"))
    n, dx = nx * ny, 1 / cells
    model = MPM((cells, cells), dx, settings["time.dt"], n)
    i, j = (index.reshape(-1) for index in np.mgrid[:nx, :ny])
    x0 = np.stack([0.2 + (i + 0.5) * dx / 2, 0.12 + (j + 0.5) * dx / 2], axis=1)
    v0 = tensor(np.stack([0.8 + 0.2 * np.sin(6 * x0[:, 1]), -0.6 + 0.2 * np.cos(6 * x0[:, 0])], axis=1))
    E = tensor(settings["material.young"] * (0.9 + 0.2 * hash01(n, 4)))
    v0.requires_grad_()
    E.requires_grad_()
    none, rest = tensor(np.zeros(0)), np.zeros((n, 2, 2))
    state = State(
        position=tensor(x0),
        velocity=v0,
        affine=tensor(rest),
        deformation=tensor(rest + np.eye(2)),
        plastic=none,
        collider_position=tensor(np.zeros((0, 2))),
        collider_rotation=tensor(np.zeros((0, 1))),
    )
    params = Params(
        mass=tensor(np.ones(n)),
        volume=tensor(np.ones(n)),
        young_modulus=E,
        poisson_ratio=tensor(np.full(n, 0.25)),
        bulk_modulus=none,
        yield_stress=none,
        friction_angle=none,
        hardening=none,
        critical_compression=none,
        critical_stretch=none,
        gravity=tensor([0.0, -settings["environment.gravity"]]),
        wall_friction=tensor(0.0),
        collider_velocity=tensor(np.zeros((0, 2))),
        collider_spin=tensor(np.zeros((0, 1))),
        collider_friction=none,
    )

    def loss_of() -> Tensor:
        chosen: Mode = "fused" if mode == "fused" else "nested"
        stiff = params.replace(young_modulus=E * 2.5)
        end = rollout(model, stiff, state, steps=steps, mode=chosen, keep="final").final
        error = end.position - np.array(TARGET)
        return (error * error).sum() * (0.5 / n)

    return case_of(loss_of, {"v0": v0, "E": E})


def elements(settings: Settings) -> int:
    """Number of particles."""
    return int(settings["size.nx"] * settings["size.ny"])


WORKLOAD = Workload("w2", SETTINGS, elements, build)
