"""w5: charges of both signs in the unit square, with a force between every pair.

n bodies of unit mass, softened forces, semi-implicit Euler. The gradient is that of half the mean squared distance from
the middle at the end, with respect to initial position `x0`, initial velocity `v0` and charge `q`.
"""

from __future__ import annotations

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.rollout import Mode, rollout
from simphys.simulators.charges import Charges, Params, State

from .initial_data import hash01
from .workload import Case, Settings, Workload, case_of

SETTINGS: Settings = {
    "size.n": 1024,
    "time.steps": 100,
    "time.dt": 0.005,
    "material.coupling": 1e-3,
    "material.softening": 0.05,
}


def build(settings: Settings, mode: str) -> Case:
    """Make the case with Tensors of the current precision."""
    n, steps = int(settings["size.n"]), int(settings["time.steps"])
    model = Charges(n, 2, settings["time.dt"], "semi_implicit_euler")
    x0 = tensor(np.stack([hash01(n, 8), hash01(n, 9)], axis=1), requires_grad=True)
    v0 = tensor(0.2 * (2 * np.stack([hash01(n, 10), hash01(n, 11)], axis=1) - 1), requires_grad=True)
    q = tensor(2 * hash01(n, 12) - 1, requires_grad=True)
    params = Params(
        charge=q,
        mass=tensor(np.ones(n)),
        coupling=tensor(settings["material.coupling"]),
        softening=tensor(settings["material.softening"]),
    )

    def loss_of() -> Tensor:
        chosen: Mode = "fused" if mode == "fused" else "nested"
        end = rollout(model, params, State(x0, v0), steps=steps, mode=chosen, keep="final").final
        error = end.position - 0.5
        return (error * error).sum() * (0.5 / n)

    return case_of(loss_of, {"x0": x0, "v0": v0, "q": q})


def elements(settings: Settings) -> int:
    """Number of ordered pairs of bodies."""
    n = int(settings["size.n"])
    return n * (n - 1)


WORKLOAD = Workload("w5", SETTINGS, elements, build)
