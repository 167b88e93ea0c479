"""Finite differences in space and absorbing layers, and their adjoint."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.numerics.stencil import first_difference, second_difference
from simphys.simulators.wave import layer
from simphys.simulators.wave.curvature import compute_curvature
from simphys.simulators.wave.model import Wave
from simphys.simulators.wave.slab import Slab

from .systems import LINE, PLANE, SMALL_PLANE, SPACE, TORUS, Array, case, tolerance

MODELS = pytest.mark.parametrize("model", [LINE, PLANE, SPACE, TORUS], ids=["line", "plane", "space", "torus"])


def continued(model: Wave, u: Array, axis: int) -> Array:
    """Move this axis of u to the front, and append `halo` values beyond either side."""
    r, n = model.halo, model.cells[axis]
    u = np.moveaxis(u, axis, 0)
    made = np.zeros((n + 2 * r, *u.shape[1:]))
    made[r : r + n] = u
    for k in range(1, r + 1):
        for kind, at, near, far in (
            (model.boundaries[2 * axis], r - k, range(n), n - k),
            (model.boundaries[2 * axis + 1], r + n - 1 + k, range(n)[::-1], k - 1),
        ):
            if kind == "free":
                made[at] = u[near[k - 1]]
            elif kind == "periodic":
                made[at] = u[far]
            elif kind == "zero" and k > 1:
                made[at] = -u[near[k - 2]]  # odd about the first cell beyond the side, where u is 0
    return made


def bend(v: Array, order: int) -> Array:
    """Compute dx^2 v'' along the first axis, except for order / 2 values at either end."""
    r, c = order // 2, second_difference(order)
    n = len(v) - 2 * r
    return c[0] * v[r : r + n] + sum([c[k] * (v[r + k : r + k + n] + v[r - k : r - k + n]) for k in range(1, r + 1)])


def slope(v: Array, order: int) -> Array:
    """Compute dx v' along the first axis, except for order / 2 values at either end."""
    r, c = order // 2, first_difference(order)
    n = len(v) - 2 * r
    return sum([c[k - 1] * (v[r + k : r + k + n] - v[r - k : r - k + n]) for k in range(1, r + 1)], np.zeros(()))


def curvature(model: Wave, u: Array, psi: Array, zeta: Array) -> tuple[Array, Array, Array]:
    """Compute the sub-step from its definition, in NumPy."""
    total, new_psi, new_zeta = np.zeros(model.cells), np.zeros_like(psi), np.zeros_like(zeta)

    def of(memory: Array, slab: Slab) -> Array:
        own = memory[slab.offset : slab.offset + int(np.prod(slab.shape))].reshape(slab.shape)
        return np.moveaxis(own, slab.axis, 0)

    for axis in range(model.dim):
        total += np.moveaxis(bend(continued(model, u, axis), model.order), 0, axis)
    for slab in model.slabs:
        inside, pad = (
            slice(slab.first, slab.first + slab.width),
            ((model.halo, model.halo), *[(0, 0)] * (model.dim - 1)),
        )
        a, b = (values.reshape(-1, *[1] * (model.dim - 1)) for values in layer.profile(model, slab))
        beyond = continued(model, u, slab.axis)
        of(new_psi, slab)[...] = b * of(psi, slab) + a * slope(beyond, model.order)[inside]
        psi_stride = slope(np.pad(of(new_psi, slab), pad), model.order)
        of(new_zeta, slab)[...] = b * of(zeta, slab) + a * (bend(beyond, model.order)[inside] + psi_stride)
        np.moveaxis(total, slab.axis, 0)[inside] += psi_stride + of(new_zeta, slab)
    return total, new_psi, new_zeta


@pytest.mark.gpu
@MODELS
def test_it_agrees_with_its_definition(model: Wave) -> None:
    state = case(model, 1).state
    inputs = state.height, state.slope_memory, state.curvature_memory
    expected = curvature(model, *[x.data for x in inputs])
    for found, value in zip(compute_curvature(model, *inputs), expected, strict=True):
        np.testing.assert_allclose(found.data, value, rtol=0, atol=tolerance(1e-13, 1e-5))


@pytest.mark.parametrize("model", [LINE, SMALL_PLANE, SPACE, TORUS], ids=["line", "plane", "space", "torus"])
def test_every_element_of_the_jacobian_is_right(model: Wave) -> None:
    state = case(model, 1).state
    if model.slabs:
        inputs = state.height, state.slope_memory, state.curvature_memory
        gradcheck(lambda *x: compute_curvature(model, *x), inputs, mode="projected" if model is SPACE else "full")
        dot_product_test(lambda *x: compute_curvature(model, *x), inputs, tolerance=1e-12)
    else:
        empty = tensor(np.zeros(0)), tensor(np.zeros(0))
        gradcheck(lambda u: compute_curvature(model, u, *empty)[0], state.height)


def test_polynomials_are_differentiated_exactly() -> None:
    """The differences are exact up to the degree order + 1, away from the sides."""
    for model, degree in ((PLANE, 5), (TORUS, 9)):
        x, y = np.meshgrid(*[np.linspace(-1, 1, n) for n in model.cells], indexing="ij")
        hx, hy = (2 / (n - 1) for n in model.cells)
        u = x**degree + 2 * y**degree
        expected = degree * (degree - 1) * (hx**2 * x ** (degree - 2) + 2 * hy**2 * y ** (degree - 2))
        rest = tensor(np.zeros(model.layer_cells))
        found = compute_curvature(model, tensor(u), rest, rest)[0].data
        r = max(model.halo, model.layer if model.slabs else 0)
        inside = (slice(r, -r or None),) * 2
        np.testing.assert_allclose(found[inside], expected[inside], atol=1e-12)


def test_layers_begin_gently_and_end_strongly() -> None:
    """A layer absorbs next to nothing at its inner edge, and its memories decay everywhere."""
    for slab in LINE.slabs:
        a, b = layer.profile(LINE, slab)
        inwards = slice(None) if slab.first else slice(None, None, -1)
        assert (np.diff(a[inwards]) < 0).all() and (a <= 0).all() and (a > -1).all()
        assert ((b > 0) & (b < 1)).all()
