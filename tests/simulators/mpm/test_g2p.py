"""The transfer of velocity and velocity gradient from grid to particles, their motion, and the adjoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import GradcheckError, dot_product_test, gradcheck
from simphys.simulators.mpm.g2p import GridToParticle
from simphys.simulators.mpm.model import MPM

from ...helpers.rounding import assert_equal_but_for_rounding
from . import substeps
from .systems import Array, system
from .test_p2g import places

DIMS = pytest.mark.parametrize("dim", [2, 3])


def parts(dim: int, particles: int) -> tuple[MPM, tuple[Tensor, Tensor]]:
    model, _, state, _ = system(dim, particles=particles)
    u = 0.3 * np.random.default_rng(5).normal(size=(model.nodes, dim))
    return model, (state.position, tensor(u, requires_grad=True))


def transfer(model: MPM, x: Any, u: Any) -> list[Array]:
    return [result.data for result in substeps.to_particles(model, tensor(x), tensor(u))]


@pytest.mark.parametrize(("dim", "particles"), [(2, 2), (3, 1)])
def test_every_element_of_the_jacobian_is_right(dim: int, particles: int) -> None:
    """Check in 3-D only the nodes in the particle's stencil."""
    model, (x, u) = parts(dim, particles)
    seen = np.flatnonzero((abs(places(model) - x.data[0]) < 1.5 * model.spacing).all(axis=1))
    assert len(seen) == 3**dim
    others = u.data.copy()
    others[seen] = 0
    chosen = tensor(np.eye(model.nodes)[:, seen])

    def near_particle(x: Tensor, u: Tensor) -> Any:
        return substeps.to_particles(model, x, others + np.matmul(chosen, u))

    gradcheck(near_particle, (x, tensor(u.data[seen], requires_grad=True)), tolerance=1e-7)
    model, inputs = parts(dim, 8)
    gradcheck(lambda *x: substeps.to_particles(model, *x), inputs, mode="projected", tolerance=1e-7)
    dot_product_test(lambda *x: substeps.to_particles(model, *x), inputs, tolerance=1e-12)


@pytest.mark.gpu
@DIMS
def test_a_linear_velocity_field_is_taken_as_it_is(dim: int) -> None:
    model, (x, _) = parts(dim, 20)
    random = np.random.default_rng(1)
    b, M = random.normal(size=dim), random.normal(size=(dim, dim))
    u = b + places(model) @ M.T
    moved, v, C = transfer(model, x.data, u)
    expected, size = b + x.data @ M.T, float(abs(u).max())
    assert_equal_but_for_rounding(v, expected, ulps=64, size=size)
    assert_equal_but_for_rounding(C, np.broadcast_to(M, C.shape), ulps=64, size=4 * size / model.spacing)
    assert_equal_but_for_rounding(moved, x.data + model.dt * expected, ulps=64, size=1.0)


@DIMS
def test_a_particle_alone_gets_back_what_it_transferred(dim: int) -> None:
    """A particle of mass 1 on an empty grid gets back v and C exactly, as in APIC."""
    model, (x, _) = parts(dim, 1)
    v, C = np.arange(1.0, dim + 1), np.random.default_rng(2).normal(size=(dim, dim))
    _, v_new, C_new = transfer(model, x.data, v + (places(model) - x.data) @ C.T)
    np.testing.assert_allclose(v_new[0], v, rtol=0, atol=1e-13)
    np.testing.assert_allclose(C_new[0], C, rtol=0, atol=1e-12)


@DIMS
@pytest.mark.parametrize("side", [0, 1])
def test_a_particle_that_leaves_along_an_axis_gets_nan_on_it(dim: int, side: int) -> None:
    model, (x, _) = parts(dim, 3)
    position = x.data.copy()
    for axis in range(dim):
        edge = (0.5, model.cells[axis] - 1.5)[side] * model.spacing
        inward = (1, -1)[side]
        position[:, axis] = edge + inward * np.array([1e-6, 1e-3, 0.05])
        u = np.zeros((model.nodes, dim))
        u[:, axis] = -inward * 1e-4 / model.dt  # beyond the edge for the first
        moved, v, _ = transfer(model, position, u)
        assert np.isnan(moved[0, axis]) and np.isfinite(moved[1:]).all() and np.isfinite(v).all()
        assert np.isfinite(np.delete(moved[0], axis)).all()
        position = x.data.copy()


def test_a_missing_term_of_the_adjoint_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    model, inputs = parts(2, 2)
    backward = GridToParticle.backward

    def forgetful(ctx: Any, *adj: Tensor) -> Any:
        _, adj_x, adj_u = backward(ctx, *adj)
        flat = adj_u.reshape(-1, 2)
        flat[np.argmax(abs(flat).sum(axis=1))] *= 1 + 1e-5
        return None, adj_x, adj_u

    monkeypatch.setattr(GridToParticle, "backward", staticmethod(forgetful))
    with pytest.raises(GradcheckError, match="input 1"):
        gradcheck(lambda *x: substeps.to_particles(model, *x)[1], inputs)
