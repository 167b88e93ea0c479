"""The effect of a collider on a grid node, and its derivatives by pose and motion."""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.kernels.runtime import ti
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.mpm import collision
from simphys.simulators.mpm.collider import SHAPES

from ...helpers.elements import element
from ...helpers.rounding import assert_equal_but_for_rounding

SIZES = {"sphere": (0.5, 0.0, 0.0), "box": (0.5, 0.25, 0.625), "capsule": (0.4, 0.35, 0.0), "plane": (0.0, 0.0, 0.0)}
SKIN = 0.8


@functools.cache
def collide(shape: str, law: str, dim: int) -> Any:
    """Return a function from rows (u, r, q, v, omega, mu) to u'."""

    @no_type_check
    def pack(real: Any) -> SimpleNamespace:
        f = collision.functions(real, dim, shape, law)
        size = SIZES[shape]
        widths = (dim, dim, 1 if dim == 2 else 4, dim, 1 if dim == 2 else 3, 1)
        first = [sum(widths[:k]) for k in range(6)]
        vec, vec3, row = (ti.types.vector(n, real) for n in (dim, 3, sum(widths)))
        quat, spin = (ti.types.vector(widths[k], real) for k in (2, 4))

        @ti.func
        def vector(x: row, k: ti.template()) -> vec:
            return vec([x[first[k] + j] for j in ti.static(range(dim))])

        @ti.func
        def rotation(x: row) -> quat:
            return quat([x[first[2] + j] for j in ti.static(range(widths[2]))])

        @ti.func
        def angular(x: row) -> spin:
            return spin([x[first[4] + j] for j in ti.static(range(widths[4]))])

        @ti.func
        def value(x: row) -> vec:
            body = ti.static(collision.Body(rotation(x), vector(x, 3), angular(x), x[first[5]]))
            return f.velocity(vector(x, 0), vector(x, 1), body, vec3(size), SKIN)

        @ti.func
        def adj(x: row, g: vec) -> row:
            body = ti.static(collision.Body(rotation(x), vector(x, 3), angular(x), x[first[5]]))
            adj_u, adj_r, adj_q, adj_v, adj_omega, adj_mu = f.adj(vector(x, 0), vector(x, 1), body, vec3(size), SKIN, g)
            adj_x = row(adj_mu)
            for j in ti.static(range(dim)):
                adj_x[first[0] + j] = adj_u[j]
                adj_x[first[1] + j] = adj_r[j]
                adj_x[first[3] + j] = adj_v[j]
            for j in ti.static(range(widths[2])):
                adj_x[first[2] + j] = adj_q[j]
            for j in ti.static(range(widths[4])):
                adj_x[first[4] + j] = adj_omega[j]
            return adj_x

        @ti.func
        def jvp(x: row, dx: row) -> vec:
            body = ti.static(collision.Body(rotation(x), vector(x, 3), angular(x), x[first[5]]))
            dbody = ti.static(collision.Body(rotation(dx), vector(dx, 3), angular(dx), dx[first[5]]))
            return f.jvp(vector(x, 0), vector(x, 1), body, vec3(size), SKIN, vector(dx, 0), vector(dx, 1), dbody)

        return SimpleNamespace(f=value, adj=adj, jvp=jvp)

    return element(pack, dim)


def some(dim: int, count: int = 12, *, mu: float = 0.4) -> Tensor:
    """Draw nodes in the body, in its skin and beyond."""
    rows = np.random.default_rng(0).normal(size=(count, 3 * dim + (3 if dim == 2 else 8)))
    rows[:, dim : 2 * dim] *= np.linspace(0.2, 0.9, count)[:, None]
    rows[:, -1] = mu
    return tensor(rows, requires_grad=True)


@pytest.mark.parametrize(
    ("shape", "dim"), [*[(shape, 2) for shape in SHAPES], ("box", 3), ("plane", 3)], ids=lambda value: str(value)
)
def test_every_element_of_the_jacobian_is_right(shape: str, dim: int) -> None:
    """Differentiate by the node's velocity, and by position, rotation, velocity, spin and friction of the collider."""
    x = some(dim)
    gradcheck(collide(shape, "friction", dim), x, tolerance=1e-6)
    dot_product_test(collide(shape, "friction", dim), x, tolerance=1e-12)


def test_a_sticking_collider_takes_along_what_is_in_it_and_leaves_alone_what_is_beyond_its_skin() -> None:
    x = some(3).data.copy()
    u, r, v, omega = x[:, :3], x[:, 3:6], x[:, 10:13], x[:, 13:16]
    r *= np.array([0.3, 0.7, 1.5])[np.arange(12) % 3, None] / np.linalg.norm(r, axis=1, keepdims=True)
    found = collide("sphere", "sticking", 3)(tensor(x)).data
    collider_velocity = v + np.cross(omega, r)
    t = 1 - 0.2 / SKIN
    np.testing.assert_allclose(found[::3], collider_velocity[::3], rtol=1e-13)
    np.testing.assert_allclose(found[1::3], (u + t**2 * (3 - 2 * t) * (collider_velocity - u))[1::3], rtol=1e-13)
    np.testing.assert_array_equal(found[2::3], u[2::3])


@pytest.mark.parametrize("law", ["slip", "separating", "friction"])
def test_turning_collider_and_velocities_turns_the_result(law: str) -> None:
    """Rotate by an angle of 0.7 in 2-D."""
    x, c, s = some(2).data, np.cos(0.7), np.sin(0.7)
    turn = np.array([[c, -s], [s, c]])
    turned = x.copy()
    for first in (0, 2, 5):  # u, r and v
        turned[:, first : first + 2] = x[:, first : first + 2] @ turn.T
    turned[:, 4] += 0.7
    found = collide("box", law, 2)(tensor(turned)).data
    assert_equal_but_for_rounding(found, collide("box", law, 2)(tensor(x)).data @ turn.T, ulps=1000)


def test_the_length_of_a_quaternion_has_no_effect() -> None:
    x = some(3).data
    longer = x.copy()
    longer[:, 6:10] *= 2.5
    found = collide("box", "friction", 3)(tensor(longer)).data
    assert_equal_but_for_rounding(found, collide("box", "friction", 3)(tensor(x)).data, ulps=1000)
