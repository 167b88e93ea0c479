"""w3: the wave equation in the plane, zero outside.

n x n cells, leapfrog with a squared Courant number of 1/3. The gradient is that of the integral of the squared
difference from a picture at the end, with respect to the initial height `u0`, from which the field starts at rest.
"""

from __future__ import annotations

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.rollout import Mode, rollout
from simphys.rollout.engine import engine_of
from simphys.simulators.wave import step
from simphys.simulators.wave.model import Params, State, Wave

from .initial_data import hash01
from .workload import Case, Settings, Workload, case_of

SETTINGS: Settings = {"size.n": 256, "time.steps": 256, "medium.courant_squared": 1 / 3}


class GeneratedWave(Wave):
    """Waves with the generated engine in place of the hand-made one."""


GeneratedWave.bind(step=step, engine=engine_of(step))


def build(settings: Settings, mode: str) -> Case:
    """Make the case with Tensors of the current precision; mode "generated" takes the generated engine."""
    n, steps = int(settings["size.n"]), int(settings["time.steps"])
    i, j = np.mgrid[:n, :n]
    noise = 0.05 * (2 * hash01(n * n, 5) - 1).reshape(n, n)
    u0 = tensor(np.exp(-((i - 100) ** 2 + (j - 140) ** 2) / 200) + noise, requires_grad=True)
    target = 0.5 * np.sin(2 * np.pi * i / n) * np.sin(4 * np.pi * j / n)
    kind = GeneratedWave if mode == "generated" else Wave
    model = kind((n, n), spacing=1.0, dt=1.0)
    nowhere = np.zeros((0, 2))
    params = Params(
        speed=tensor(np.full((n, n), settings["medium.courant_squared"] ** 0.5)),
        source_velocity=tensor(nowhere),
        receiver_position=tensor(nowhere),
    )
    none = tensor(np.zeros(0))

    def loss_of() -> Tensor:
        chosen: Mode = "nested" if mode == "nested" else "fused"
        start = State(u0, u0, none, none, tensor(nowhere), none)
        end = rollout(model, params, start, steps=steps, mode=chosen, keep="final").final
        error = end.height - target.astype(u0.dtype)
        return (error * error).sum() * (1 / n**2)

    return case_of(loss_of, {"u0": u0})


def elements(settings: Settings) -> int:
    """Number of cells."""
    return int(settings["size.n"]) ** 2


WORKLOAD = Workload("w3", SETTINGS, elements, build)
