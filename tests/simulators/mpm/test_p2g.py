"""The transfer of mass and momentum from particles to grid, and its adjoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import GradcheckError, dot_product_test, gradcheck
from simphys.simulators.mpm.model import MPM
from simphys.simulators.mpm.p2g import ParticleToGrid

from ...helpers.rounding import assert_equal_but_for_rounding
from . import substeps
from .systems import Array, system

DIMS = pytest.mark.parametrize("dim", [2, 3])


def parts(dim: int, particles: int, *, stress: float = 1.0) -> tuple[MPM, tuple[Tensor, ...]]:
    """Draw x, v, C, tau, mass and volume of particles, some of which share nodes."""
    model, params, state, _ = system(dim, particles=particles)
    tau = stress * np.random.default_rng(5).normal(size=state.affine.shape)
    x = 0.35 + 0.3 * (state.position.data - 0.35)
    inputs = x, state.velocity.data, state.affine.data, tau, params.mass.data, params.volume.data
    return model, tuple([tensor(each, requires_grad=True) for each in inputs])


def transfer(model: MPM, inputs: tuple[Tensor, ...]) -> tuple[Array, Array]:
    mass, momentum = substeps.to_grid(model, *[x.detach() for x in inputs])
    return mass.data, momentum.data


def places(model: MPM) -> Array:
    """Compute the positions of the nodes, [nodes, dim]."""
    axes = [model.spacing * np.arange(count) for count in model.cells]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, model.dim)


def moment(x: Array, p: Array) -> Array:
    """Compute the sum of x_i p_j - x_j p_i."""
    outer = x.T @ p
    return outer - outer.T


@pytest.mark.parametrize(("dim", "particles"), [(2, 3), (3, 1)])
def test_every_element_of_the_jacobian_is_right(dim: int, particles: int) -> None:
    """Check in 3-D only the nodes in the particle's stencil."""
    model, inputs = parts(dim, particles)
    seen = np.flatnonzero(transfer(model, inputs)[0]) if dim == 3 else np.arange(model.nodes)
    gradcheck(lambda *x: tuple([y[seen] for y in substeps.to_grid(model, *x)]), inputs, tolerance=1e-7)
    model, inputs = parts(dim, 8)
    gradcheck(lambda *x: substeps.to_grid(model, *x), inputs, mode="projected", tolerance=1e-7)
    dot_product_test(lambda *x: substeps.to_grid(model, *x), inputs, tolerance=1e-12)


@pytest.mark.gpu
@DIMS
def test_mass_and_momentum_are_those_of_the_particles(dim: int) -> None:
    """This holds for any stress, as its forces balance."""
    model, inputs = parts(dim, 8)
    mass, momentum = transfer(model, inputs)
    _, v, _, _, m, _ = (x.data for x in inputs)
    assert_equal_but_for_rounding(mass.sum(), m.sum(), ulps=64)
    assert_equal_but_for_rounding(momentum.sum(axis=0), m @ v, ulps=64, size=float(abs(momentum).sum()))


@DIMS
def test_angular_momentum_is_that_of_the_particles_including_their_affine_part(dim: int) -> None:
    """A particle has the moment of m x v, and m C dx^2/4 from its C; a symmetric stress adds nothing."""
    model, inputs = parts(dim, 8)
    x, v, C, tau, m, _ = (each.data for each in inputs)
    symmetric = (*inputs[:3], tensor(tau + tau.transpose(0, 2, 1)), *inputs[4:])
    _, momentum = transfer(model, symmetric)
    within = np.einsum("n,nij->ji", m, C) * model.spacing**2 / 4  # contribution of C to x_i p_j
    expected = moment(x, m[:, None] * v) + within - within.T
    size = float((places(model).T @ abs(momentum)).max())
    assert_equal_but_for_rounding(moment(places(model), momentum), expected, ulps=64, size=size)


@DIMS
def test_each_node_gets_what_the_equations_say(dim: int) -> None:
    model, inputs = parts(dim, 8)
    x, v, C, tau, m, V = (each.data for each in inputs)
    r = places(model)[:, None] - x  # [nodes, n, dim]
    s = abs(r) / model.spacing
    w = np.where(s < 0.5, 0.75 - s**2, np.where(s < 1.5, (1.5 - s) ** 2 / 2, 0)).prod(axis=-1)
    A = m[:, None, None] * C - 4 * model.dt / model.spacing**2 * V[:, None, None] * tau
    expected = np.einsum("in,nj->ij", w, m[:, None] * v) + np.einsum("in,njk,ink->ij", w, A, r)
    mass, momentum = transfer(model, inputs)
    assert_equal_but_for_rounding(mass, w @ m, ulps=64)
    assert_equal_but_for_rounding(momentum, expected, ulps=64)


def test_a_missing_term_of_the_adjoint_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    model, inputs = parts(2, 3)
    backward = ParticleToGrid.backward

    def forgetful(ctx: Any, *adj: Tensor) -> Any:
        _, adj_x, *others = backward(ctx, *adj)
        adj_x[0, 1] *= 1 + 1e-5
        return None, adj_x, *others

    monkeypatch.setattr(ParticleToGrid, "backward", staticmethod(forgetful))
    with pytest.raises(GradcheckError, match="input 0"):
        gradcheck(lambda *x: substeps.to_grid(model, *x)[1][:, 1], inputs[:1] + tuple([x.detach() for x in inputs[1:]]))
