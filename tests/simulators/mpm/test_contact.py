"""The effect of contact on a velocity, and its adjoint."""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.kernels.runtime import ti
from simphys.autograd.proof.gradcheck import GradcheckError, dot_product_test, gradcheck
from simphys.simulators.mpm import contact
from simphys.simulators.mpm.collider import CONTACTS

from ...helpers.elements import element
from ...helpers.rounding import assert_equal_but_for_rounding


@functools.cache
def law(name: str, dim: int) -> Any:
    """Return the contact as a function of rows (w, n, mu)."""

    @no_type_check
    def pack(real: Any) -> SimpleNamespace:
        f = contact.functions(real, dim, name)
        vec, row = ti.types.vector(dim, real), ti.types.vector(2 * dim + 1, real)

        @ti.func
        def part(x: row, first: ti.template()) -> vec:
            return vec([x[first + j] for j in ti.static(range(dim))])

        @ti.func
        def value(x: row) -> vec:
            return f.velocity(part(x, 0), part(x, dim), x[2 * dim])

        @ti.func
        def adj(x: row, g: vec) -> row:
            adj_w, adj_n, adj_mu = f.adj(part(x, 0), part(x, dim), x[2 * dim], g)
            adj_x = row(adj_mu)
            for j in ti.static(range(dim)):
                adj_x[j] = adj_w[j]
                adj_x[dim + j] = adj_n[j]
            return adj_x

        @ti.func
        def jvp(x: row, dx: row) -> vec:
            return f.jvp(part(x, 0), part(x, dim), x[2 * dim], part(dx, 0), part(dx, dim), dx[2 * dim])

        return SimpleNamespace(f=value, adj=adj, jvp=jvp)

    return element(pack, dim)


def rows(w: Any, n: Any, mu: Any) -> Tensor:
    w = np.atleast_2d(np.asarray(w, np.float64))
    n, mu = np.broadcast_to(n, w.shape), np.broadcast_to(np.reshape(mu, (-1, 1)), (len(w), 1))
    return tensor(np.concatenate([w, n, mu], axis=1), requires_grad=True)


def some(dim: int, *, seed: int = 0) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Draw velocities that arrive, leave, slide and stick at a friction of 0.6, and unit normals."""
    random = np.random.default_rng(seed)
    w, n = random.normal(size=(12, dim)), random.normal(size=(12, dim))
    return w, n / np.linalg.norm(n, axis=1, keepdims=True)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("name", CONTACTS)
def test_every_element_of_the_jacobian_is_right(name: str, dim: int) -> None:
    """Differentiate by the velocity, the normal and the friction."""
    x = rows(*some(dim), 0.6)
    gradcheck(law(name, dim), x, tolerance=1e-6)
    dot_product_test(law(name, dim), x, tolerance=1e-13)


@pytest.mark.gpu
@pytest.mark.parametrize("dim", [2, 3])
def test_what_contact_does_to_velocity(dim: int) -> None:
    """A friction of 0.6 lets some velocities slide and stops others."""
    w, n = some(dim)
    w_n = (w * n).sum(axis=1, keepdims=True)
    slip = w - w_n * n
    speed = np.linalg.norm(slip, axis=1, keepdims=True)
    slides = np.maximum(speed + 0.6 * np.minimum(w_n, 0), 0) / speed
    assert (w_n > 0).any() and ((w_n < 0) & (slides > 0)).any() and (slides == 0).any()
    expected = {
        "sticking": np.zeros_like(w),
        "slip": slip,
        "separating": np.where(w_n < 0, slip, w),
        "friction": np.where(w_n < 0, slides * slip, w),
    }
    x = tensor(rows(w, n, 0.6).data)
    for name in CONTACTS:
        np.testing.assert_allclose(law(name, dim)(x).data, expected[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", CONTACTS)
def test_contact_commutes_with_rotation(name: str) -> None:
    w, n = some(3)
    turn = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
    plain, turned = law(name, 3)(rows(w, n, 0.6)).data, law(name, 3)(rows(w @ turn.T, n @ turn.T, 0.6)).data
    assert_equal_but_for_rounding(turned, plain @ turn.T, ulps=1000)


@pytest.mark.parametrize("name", CONTACTS)
def test_friction_takes_energy_and_contact_never_gives_any(name: str) -> None:
    w, n = some(3, seed=4)
    after = law(name, 3)(rows(w, n, 0.6)).data
    assert (np.linalg.norm(after, axis=1) <= np.linalg.norm(w, axis=1) * (1 + 1e-13)).all()


def gradient(name: str, w: Any, g: Any, mu: float = 0.5) -> np.ndarray[Any, Any]:
    """Compute the gradient by w at a floor."""
    x = rows(w, (0.0, 1.0), mu)
    law(name, 2)(x).backward(np.array([g], np.float64))
    assert x.grad is not None
    return x.grad.data[0]


@pytest.mark.parametrize("name", ["separating", "friction"])
def test_a_normal_velocity_of_zero_counts_as_leaving(name: str) -> None:
    assert gradient(name, (1.0, 0.0), (0.3, 0.7))[:2].tolist() == [0.3, 0.7]
    assert not gradient(name, (1.0, 0.0), (0.3, 0.7))[4].any()


def test_slip_that_just_stops_has_derivative_zero() -> None:
    assert not gradient("friction", (0.25, -0.5), (0.3, 0.7)).any()
    assert gradient("friction", (0.2500001, -0.5), (0.3, 0.7)).any()


@pytest.mark.parametrize("w", [(0.0, -1.0), (0.0, 1.0), (0.0, 0.0)])
def test_without_a_slip_there_is_no_direction_to_brake_in_and_no_nan(w: tuple[float, float]) -> None:
    found = gradient("friction", w, (0.3, 0.7))
    assert found[:2].tolist() == ([0.0, 0.0] if w[1] < 0 else [0.3, 0.7])
    assert np.isfinite(found).all()


def test_at_the_kink_gradcheck_does_not_trust_differences() -> None:
    with pytest.raises(GradcheckError) as raised:
        gradcheck(law("separating", 2), rows((1.0, 0.0), (0.0, 1.0), 0.5))
    assert raised.value.report is not None and raised.value.report.outcome == "untrusted"
