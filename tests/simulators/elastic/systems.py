"""Small random systems of elastic waves in which every term matters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simphys.autograd import runtime, tensor
from simphys.simulators.elastic import Elastic, Params, State

from ...helpers.contract import System

LAYERS = Elastic(
    (14, 20), 0.1, 0.02, order=4, sides=("absorbing", "absorbing", "free", "absorbing"), layer=4, layer_speed=2.0,
    layer_frequency=2.0, sources=2, moments=True, receivers=3, fibre=((0.3, 0.0),),
)  # fmt: skip
"""All that there is; layers cross in corners."""
BOX = Elastic((5, 4), 0.1, 0.02, sources=1, receivers=1)
"""A closed box of order 2 with a force."""
SMALL = replace(LAYERS, cells=(6, 7), order=2, layer=2, sides=("wall", "absorbing", "free", "absorbing"))
"""Fewer cells, a wall, and layers at single sides."""

SPACE = Elastic(
    (4, 5, 6), 0.1, 0.02, sides=("wall", "wall", "wall", "absorbing", "free", "wall"), layer=2, layer_speed=2.0,
    layer_frequency=2.0, sources=1, receivers=1, fibre=((0.1, 0.0, 0.1),),
)  # fmt: skip
"""Three dimensions, a force alone, and a layer across the middle axis: what takes little time to compile."""


def make_system(model: Elastic, steps: int = 4, *, batch: int = 0, batched: tuple[str, ...] = ()) -> System:
    """Make a system with random fields, all of which require gradients."""
    random, real = np.random.default_rng(5), runtime.real_dtype()
    extent = model.spacing * np.array(model.cells)
    ranges = {"vp": (1.6, 2.0), "vs": (0.8, 1.2), "density": (0.8, 1.2)}
    made = {}
    for name, shape in {**model.param_shapes(), **model.state_shapes(), "control": (steps, model.sources)}.items():
        full = (batch, *shape) if name in batched else shape
        if name.endswith("position"):
            values = random.uniform(0.1, 0.9, full) * extent
        else:
            values = random.uniform(*ranges[name], full) if name in ranges else random.standard_normal(full)
        made[name] = tensor(values.astype(real), requires_grad=True)
    params, state = ({name: made[name] for name in record.names()} for record in (Params, State))
    return System(model, Params(**params), State(**state), made["control"] if model.sources else None)
