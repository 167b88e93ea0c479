"""w4: smoke in a doubly periodic plane, stable fluids.

n by n cells of a collocated grid, semi-Lagrangian advection, a projection by 6 sweeps of Jacobi, spacing and time step
1. The gradient is that of the mean squared difference of the smoke at the end from a target, with respect to initial
velocity, `vx` along axis 0 and `vy` along axis 1.
"""

from __future__ import annotations

import numpy as np

from simphys.autograd import Tensor, ops, tensor
from simphys.rollout import Mode, rollout
from simphys.simulators.smoke import Params, Smoke, State

from .initial_data import hash01
from .workload import Case, Settings, Workload, case_of

SETTINGS: Settings = {
    "size.n": 110,
    "time.steps": 100,
    "projection.sweeps": 6,
}


def build(settings: Settings, mode: str) -> Case:
    """Make the case with Tensors of the current precision."""
    n, steps = int(settings["size.n"]), int(settings["time.steps"])
    model = Smoke(
        (n, n),
        1.0,
        1.0,
        grid="collocated",
        advection="semi_lagrangian",
        projection="jacobi",
        sweeps=int(settings["projection.sweeps"]),
    )
    y, x = np.mgrid[:n, :n].astype(np.float64)
    q = 2 * np.pi / n
    noise_x, noise_y = (0.05 * (2 * hash01(n * n, seed).reshape(n, n) - 1) for seed in (6, 7))
    vx = tensor(0.6 * np.sin(q * y) * np.cos(2 * q * x) + noise_x, requires_grad=True)
    vy = tensor(0.6 * np.cos(q * y + 0.3) * np.sin(q * x) + noise_y, requires_grad=True)
    smoke = tensor(0.5 + 0.5 * np.sin(3 * q * y + 0.1) * np.sin(2 * q * x + 0.2))
    target = tensor(np.exp(-((y - n / 2) ** 2 + (x - 5 * n / 11) ** 2) / 300))
    params = Params(**{name: tensor(np.zeros(shape)) for name, shape in model.param_shapes().items()})

    def loss_of() -> Tensor:
        chosen: Mode = "fused" if mode == "fused" else "nested"
        start = State(ops.stack([vx, vy]), smoke, tensor(np.zeros(2)))
        end = rollout(model, params, start, steps=steps, mode=chosen, keep="final").final
        error = end.smoke - target
        return (error * error).mean()

    return case_of(loss_of, {"vx": vx, "vy": vy})


def elements(settings: Settings) -> int:
    """Number of cells."""
    return int(settings["size.n"]) ** 2


WORKLOAD = Workload("w4", SETTINGS, elements, build)
