"""The velocity of the grid's nodes: gravity and walls, and the adjoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.gradcheck import dot_product_test, gradcheck
from simphys.mpm.collider import CONTACTS
from simphys.mpm.grid import GridVelocity

from .grids import grid


def velocity(model: Any) -> Any:
    def of(mass: Tensor, momentum: Tensor, env: Tensor) -> Tensor:
        return GridVelocity.apply(model, mass, momentum, env)

    return of


def inputs_of(model: Any, *, friction: float = 0.3, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Nodes of mass and momentum off all kinks; each may require a gradient."""
    random = np.random.default_rng(seed)
    mass = tensor(random.uniform(0.5, 1.5, model.nodes), requires_grad=True)
    momentum = tensor(random.normal(size=(model.nodes, model.dim)), requires_grad=True)
    gravity = random.normal(size=model.dim)
    return mass, momentum, tensor(np.concatenate([gravity, [friction]]), requires_grad=True)


@pytest.mark.parametrize("contact", CONTACTS)
@pytest.mark.parametrize("dim", [2, 3])
def test_every_element_of_the_jacobian_at_walls_is_right(dim: int, contact: str) -> None:
    model = grid((6,) * dim, walls=(contact,) * (2 * dim), margin=2)
    gradcheck(velocity(model), inputs_of(model), mode="full" if dim == 2 else "projected", tolerance=1e-6)
    dot_product_test(velocity(model), inputs_of(model), tolerance=1e-12)


def test_separating_walls_are_those_of_mls_mpm_codes() -> None:
    """As a loop over nodes with a mirrored condition for each axis says it."""
    model = grid((12, 10), margin=3)
    mass, momentum, env = inputs_of(model)
    expected = momentum.data / (mass.data[:, None] + model.mass_floor) + model.dt * env.data[:2]
    for node, u in enumerate(expected):
        for axis, i in enumerate(divmod(node, 10)):
            if (i < 3 and u[axis] < 0) or (i > model.cells[axis] - 3 and u[axis] > 0):
                u[axis] = 0.0
    np.testing.assert_allclose(velocity(model)(mass, momentum, env).data, expected, rtol=1e-14)
