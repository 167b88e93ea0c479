"""Small flows without symmetry, for tests of incompressible flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from simphys.autograd import Tensor, runtime, tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.simulators.smoke.faces import own_faces
from simphys.simulators.smoke.model import Smoke

CHANNEL = ("inflow", "open", "closed", "closed")
"""Boundaries of a channel: inflow and open side between two walls."""


def small(*cells: int, **options: Any) -> Smoke:
    """Build a model with these numbers of cells, by default 4 by 3."""
    return Smoke(cells or (4, 3), spacing=0.5, dt=0.1, **options)


def variants() -> dict[str, Smoke]:
    """Build models with every kind of side and both grids, in 2-D and 3-D."""
    return {
        "periodic": small(),
        "channel": small(boundaries=CHANNEL),
        "slip": small(boundaries=("closed", "inflow", "open", "closed"), slip=True),
        "collocated": small(grid="collocated", boundaries=("periodic", "periodic", "closed", "closed")),
        "space": small(3, 2, 2, boundaries=("periodic", "periodic", "closed", "open", "inflow", "closed")),
    }


def velocity(model: Smoke, *, seed: int = 0) -> Tensor:
    """Draw a random velocity, 0 beyond the faces of a component."""
    values = np.zeros((model.dim, *model.faces))
    random = np.random.default_rng(seed)
    for component in range(model.dim):
        counts = own_faces(model, component)
        inside: tuple[Any, ...] = (component, *map(slice, counts))
        values[inside] = random.uniform(-1.0, 1.5, counts)
    return leaf(values)


def some(*shape: int, seed: int = 1) -> Tensor:
    """Draw random numbers of either sign."""
    return leaf(np.random.default_rng(seed).uniform(-1.0, 1.5, shape))


def leaf(values: Any) -> Tensor:
    return tensor(np.asarray(values, runtime.real_dtype()), requires_grad=True)


def check(function: Callable[..., Any], model: Smoke, *inputs: Tensor, tolerance: float = 1e-8) -> None:
    """Run gradcheck on function(model, *inputs), in 3-D along random directions."""
    mode: Any = "full" if model.dim == 2 else "projected"
    gradcheck(lambda *x: function(model, *x), inputs, mode=mode, tolerance=tolerance)
