"""Small random systems of heat conduction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simphys.autograd import runtime, tensor
from simphys.simulators.heat import Heat, Params, State

from ...helpers.contract import System

PLANE = Heat((5, 4), 0.5, 0.02, sides=("fixed", "insulated", "insulated", "fixed"))
SPACE = Heat((3, 4, 3), 0.5, 0.01, sides=("insulated", "fixed", "fixed", "fixed", "insulated", "insulated"))
CLOSED = Heat((6, 5), 0.5, 0.02)
LONG = Heat((4, 37), 0.5, 0.02, sides=("insulated", "fixed", "insulated", "insulated"))
"""Rows so long that a part of them is computed in blocks."""
MODELS = {
    "plane": PLANE,
    "space": SPACE,
    "closed": CLOSED,
    "long rows": LONG,
    "plane, Crank-Nicolson": replace(PLANE, scheme="crank_nicolson", dt=0.1),
    "space, implicit": replace(SPACE, scheme="implicit", dt=0.1),
}


def make_system(
    model: Heat, steps: int = 5, *, batch: int = 0, batched: tuple[str, ...] = (), control: bool = True
) -> System:
    """Make a system with random fields, all of which require gradients."""
    random, dtype = np.random.default_rng(7), runtime.real_dtype()
    shapes = {**model.param_shapes(), **model.state_shapes(), "control": (steps, 2 * model.dim)}
    made = {}
    for name, shape in shapes.items():
        full = (batch, *shape) if name in batched else shape
        positive = name in ("conductivity", "heat_capacity")
        values = random.uniform(0.5, 1.5, full) if positive else random.standard_normal(full)
        made[name] = tensor(values.astype(dtype), requires_grad=True)
    signal, start = made.pop("control"), State(made.pop("temperature"))
    return System(model, Params(**made), start, signal if control and model.open_sides else None)
