"""The sub-steps of shallow water and their adjoints and tangents."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import Tensor, jvp, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.wave.shallow import ShallowWater
from simphys.simulators.wave.shallow.advance import advance
from simphys.simulators.wave.shallow.fluxes import add_up_height, compute_fluxes
from simphys.simulators.wave.shallow.friction import damp_velocity

from .basins import BASIN, CHANNEL, basin, random_leaf

GRIDS = pytest.mark.parametrize(("cells", "boundaries"), [CHANNEL, BASIN], ids=["channel", "basin"])


def find_fluxes(model: ShallowWater, eta: Tensor, u: Tensor, depth: Tensor, g: Tensor) -> tuple[Tensor, ...]:
    """Compute transport, potential vorticity and head."""
    return compute_fluxes(model, eta, u, add_up_height(model, eta, depth), g)


def run_stage(model: ShallowWater, part: float, eta: Tensor, u: Tensor, *fluxes: Tensor) -> tuple[Tensor, Tensor]:
    """Advance elevation and velocity by a stage."""
    transport, vorticity, head = fluxes
    return advance(model, part, eta, u, (transport, vorticity, head))


def apply_friction(model: ShallowWater, u: Tensor, eta: Tensor, depth: Tensor, friction: Tensor) -> Tensor:
    """Compute the velocity after friction."""
    return damp_velocity(model, u, add_up_height(model, eta, depth), friction)


@GRIDS
def test_every_element_of_the_fluxes_jacobian_is_right(cells: tuple[int, ...], boundaries: tuple[str, ...]) -> None:
    model, params, state = basin(cells, boundaries)
    inputs = *state.tensors(), params.depth, params.gravity
    gradcheck(lambda *x: find_fluxes(model, *x), inputs)
    dot_product_test(lambda *x: find_fluxes(model, *x), inputs, tolerance=1e-12)


@GRIDS
def test_every_element_of_a_stages_jacobian_is_right(cells: tuple[int, ...], boundaries: tuple[str, ...]) -> None:
    model, _, state = basin(cells, boundaries)
    fluxes = random_leaf(model.dim, *cells), random_leaf(*cells, seed=1), random_leaf(*cells, seed=2)
    gradcheck(lambda *x: run_stage(model, 0.5, *x), (*state.tensors(), *fluxes))
    dot_product_test(lambda *x: run_stage(model, 0.5, *x), (*state.tensors(), *fluxes), tolerance=1e-12)


@GRIDS
def test_every_element_of_frictions_jacobian_is_right(cells: tuple[int, ...], boundaries: tuple[str, ...]) -> None:
    model, params, state = basin(cells, boundaries, dt=1.0)
    inputs = state.velocity, state.elevation, params.depth, params.friction
    gradcheck(lambda *x: apply_friction(model, *x), inputs)
    dot_product_test(lambda *x: apply_friction(model, *x), inputs, tolerance=1e-12)


def test_where_the_water_rests_friction_changes_nothing_to_first_order() -> None:
    """There, and only there, friction has no second derivative; du'/du is 1, and all other derivatives are 0."""
    model, params, state = basin((3,), ("periodic",), dt=1.0)
    rest = tensor(np.zeros((1, 3)), requires_grad=True)
    others = state.elevation, params.depth, params.friction
    damp = apply_friction(model, rest, *others)
    weights = np.array([[0.3, -1.2, 0.7]])
    (damp * weights).sum().backward()
    assert rest.grad is not None
    np.testing.assert_array_equal(rest.grad.data, weights)
    assert not any(x.grad is not None and x.grad.data.any() for x in others)
    moved = jvp(lambda u: apply_friction(model, u, *[x.detach() for x in others]), (rest.detach(),), (weights,))[1][0]
    np.testing.assert_array_equal(moved, weights)


def test_friction_never_reverses_the_velocity() -> None:
    _, params, state = basin()
    model = ShallowWater(*BASIN[:1], 0.5, 1e9, BASIN[1])
    damp = apply_friction(model, state.velocity, state.elevation, params.depth, params.friction).data
    moving = damp != 0
    assert not moving[0, 0].any() and moving[0, 1:].all() and moving[1].all()
    np.testing.assert_array_equal(np.sign(damp[moving]), np.sign(state.velocity.data[moving]))
    assert np.abs(damp).max() < 1e-7


def fluxes_of(model: ShallowWater, u: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the fluxes of water of unit depth with a level surface."""
    depth, rest = tensor(np.ones(model.cells)), tensor(np.zeros(model.cells))
    transport, vorticity, head = find_fluxes(model, rest, tensor(u), depth, tensor(2.0))
    return transport, vorticity, head


def test_fluxes_of_a_solid_rotation_have_its_vorticity_and_kinetic_energy() -> None:
    model = ShallowWater((6, 6), 0.5, 0.1, ("periodic", "periodic"))
    i, j = np.indices(model.cells) * 0.5
    u = np.stack([-0.3 * (j + 0.25), 0.3 * (i + 0.25)])
    transport, vorticity, head = fluxes_of(model, u)
    np.testing.assert_allclose(vorticity.data[1:, 1:], 0.6, rtol=1e-13)
    np.testing.assert_allclose(transport.data, u, rtol=1e-13)
    kinetic = 0.5 * 0.3**2 * ((i + 0.25) ** 2 + (j + 0.25) ** 2)
    np.testing.assert_allclose(head.data[:-1, :-1], kinetic[:-1, :-1], rtol=1e-12)
