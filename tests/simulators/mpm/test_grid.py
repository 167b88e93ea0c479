"""The velocity of grid nodes: gravity, walls and colliders, and the adjoint."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import GradcheckError, dot_product_test, gradcheck
from simphys.simulators.mpm.collider import CONTACTS, Collider
from simphys.simulators.mpm.collision import collide
from simphys.simulators.mpm.model import MPM

from ...helpers.rounding import assert_equal_but_for_rounding
from . import substeps
from .grids import build_env, grid, grid_velocity


def velocity(model: MPM) -> Any:
    def of(mass: Tensor, momentum: Tensor, env: Tensor) -> Tensor:
        return substeps.grid_velocity(model, mass, momentum, env)

    return of


def nodes_of(model: MPM, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Draw masses and momenta away from all kinks."""
    random = np.random.default_rng(seed)
    mass = tensor(random.uniform(0.5, 1.5, model.nodes), requires_grad=True)
    return mass, tensor(random.normal(size=(model.nodes, model.dim)), requires_grad=True)


# --- walls


@pytest.mark.parametrize("dim", [2, 3])
def test_every_element_of_the_jacobian_at_walls_is_right(dim: int) -> None:
    """Walls of each contact are included, and corners of two or three walls."""
    model = grid((6,) * dim, walls=(*CONTACTS, "friction", "separating")[: 2 * dim], margin=2)
    inputs = *nodes_of(model), build_env(model, gravity=(1.0, -2.0, 0.5)[:dim], wall_friction=0.3)
    gradcheck(velocity(model), inputs, mode="full" if dim == 2 else "projected", tolerance=1e-6)
    dot_product_test(velocity(model), inputs, tolerance=1e-12)


def test_separating_walls_are_those_of_mls_mpm_codes() -> None:
    """Compare with a loop over nodes that has a mirrored condition for each axis."""
    model = grid((12, 10), margin=3)
    (mass, momentum), env = nodes_of(model), build_env(model, gravity=(0.5, -3.8))
    expected = momentum.data / (mass.data[:, None] + model.mass_floor) + model.dt * env.data[:2]
    for node, u in enumerate(expected):
        for axis, i in enumerate(divmod(node, 10)):
            if (i < 3 and u[axis] < 0) or (i > model.cells[axis] - 3 and u[axis] > 0):
                u[axis] = 0.0
    assert_equal_but_for_rounding(velocity(model)(mass, momentum, env).data, expected)


@pytest.mark.gpu
@pytest.mark.parametrize("dim", [2, 3])
def test_material_leaves_a_separating_wall_but_not_a_sticking_one(dim: int) -> None:
    up = (0.0,) * (dim - 1) + (1.0,)
    for contact in CONTACTS:
        model = grid((8,) * dim, walls=(contact,) * (2 * dim))
        u = grid_velocity(model, up, build_env(model))[(4,) * (dim - 1) + (1,)]
        np.testing.assert_allclose(u, up if contact in ("separating", "friction") else 0.0, rtol=1e-6)


def test_a_block_that_slides_on_a_wall_slows_down_by_coulombs_law() -> None:
    """It decelerates by mu g, as the wall removes dt g from the fall in each step, and stops without reversing."""
    model = grid((8, 8), walls=("separating", "separating", "friction", "friction"))
    env = build_env(model, gravity=(0.0, -10.0), wall_friction=0.25)
    u, times = np.array([0.18, 0.0]), 0
    while u[0] > 0:
        new = grid_velocity(model, u, env)[4, 1]
        assert new[1] == 0
        np.testing.assert_allclose(new[0], max(u[0] - 0.25 * 10.0 * model.dt, 0.0), rtol=1e-6, atol=1e-12)
        u, times = new, times + 1
    assert times == 4


# --- colliders

CROWDS = {
    2: (Collider("capsule", (0.1, 0.07), "friction"), Collider("plane", (), "slip")),
    3: (Collider("box", (0.08, 0.1, 0.15), "friction"),),
}
"""A few colliders; test_signed_distance.py and test_contact.py cover all shapes and contacts."""


def crowd(dim: int) -> tuple[MPM, Tensor]:
    """Build colliders that rotate and move, between walls with friction."""
    model = grid((6,) * dim, *CROWDS[dim], margin=2, walls=("friction",) * (2 * dim), skin=0.15)
    random, K = np.random.default_rng(3), len(model.colliders)
    env = build_env(
        model,
        gravity=random.normal(size=dim),
        wall_friction=0.2,
        position=random.uniform(0.15, 0.45, (K, dim)),
        rotation=random.normal(size=(K, model.rotations)),
        velocity=random.normal(size=(K, dim)),
        spin=random.normal(size=(K, model.spins)),
        friction=random.uniform(0.2, 0.5, K),
    )
    return model, env


@pytest.mark.parametrize("dim", [2, 3])
def test_every_element_of_the_jacobian_at_colliders_is_right(dim: int) -> None:
    """Differentiate by mass and momentum, and by gravity, friction, pose, velocity and spin."""
    model, env = crowd(dim)
    inputs = *nodes_of(model), env
    gradcheck(velocity(model), inputs, mode="full" if dim == 2 else "projected", tolerance=1e-6)
    dot_product_test(velocity(model), inputs, tolerance=1e-12)
    mass, momentum, _ = (x.detach() for x in inputs)
    total = np.random.default_rng(1).normal(size=momentum.shape)
    gradcheck(lambda env: (velocity(model)(mass, momentum, env) * total).sum(), (env,), tolerance=1e-6)


def test_a_forgotten_turn_of_the_normal_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    model, env = crowd(2)
    first = collide("capsule", "friction", 0)
    backward = first.backward

    def forgetful(ctx: Any, adj_u: Tensor) -> Any:
        _, adj, adj_c, adj_q, *others = backward(ctx, adj_u)
        return None, adj, adj_c, adj_q * (1 + 1e-4), *others

    monkeypatch.setattr(first, "backward", staticmethod(forgetful))
    with pytest.raises(GradcheckError, match="input 2"):
        gradcheck(velocity(model), (*nodes_of(model), env), tolerance=1e-6)


def nodes_at(model: MPM, centre: Any) -> np.ndarray[Any, Any]:
    """Compute the vectors from the centre to each node, [*cells, dim]."""
    return np.stack(np.meshgrid(*(model.spacing * np.arange(n) for n in model.cells), indexing="ij"), -1) - centre


@pytest.mark.gpu
@pytest.mark.parametrize("dim", [2, 3])
def test_a_sticking_collider_drags_what_is_in_it_and_lets_go_beyond_its_skin(dim: int) -> None:
    model = grid((12,) * dim, Collider("sphere", (0.25,), "sticking"))
    centre, v, wind = np.full(dim, 0.57), np.arange(1.0, dim + 1), np.full(dim, -0.3)
    u = grid_velocity(model, wind, build_env(model, position=centre, velocity=v))
    inner = (slice(3, 10),) * dim
    away = np.linalg.norm(nodes_at(model, centre), axis=-1)[inner] - 0.25
    assert (away <= 0).sum() > 10 and (away >= 0.1).any()
    np.testing.assert_allclose(u[inner][away <= 0], np.broadcast_to(v, u.shape)[inner][away <= 0], rtol=1e-5)
    np.testing.assert_allclose(u[inner][away >= 0.1], np.broadcast_to(wind, u.shape)[inner][away >= 0.1], rtol=1e-5)
    t = np.clip(1 - away / 0.1, 0, 1)[..., None]
    np.testing.assert_allclose(u[inner], wind + t**2 * (3 - 2 * t) * (v - wind), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dim", [2, 3])
def test_a_collider_that_spins_drags_by_omega_cross_r(dim: int) -> None:
    model = grid((10,) * dim, Collider("box", (0.21,) * dim, "sticking"))
    centre = np.full(dim, 0.48)
    omega = np.array([0.0, 0.0, 2.0]) if dim == 2 else np.array([0.5, -1.0, 2.0])
    u = grid_velocity(model, 0.0, build_env(model, position=centre, spin=omega[-1:] if dim == 2 else omega))
    r = nodes_at(model, centre)
    within = (np.abs(r) <= 0.21).all(axis=-1)
    padded = np.concatenate([r, np.zeros((*r.shape[:-1], 3 - dim))], axis=-1)
    assert within.sum() == 4**dim
    assert_equal_but_for_rounding(u[within], np.cross(omega, padded)[..., :dim][within], ulps=1000)


def test_a_plane_stops_what_falls_on_it_and_lets_slide_what_lies_on_it() -> None:
    """A frictionless slope of 30 degrees leaves half of dt g, pointing down the slope."""
    model = grid((10, 10), Collider("plane", (), "separating"))
    slope = np.deg2rad(30)
    env = build_env(model, position=(0.45, 0.45), rotation=slope, gravity=(0.0, -10.0))
    u, below = (
        grid_velocity(model, 0.0, env)[3:8, 3:8],
        nodes_at(model, 0.45)[3:8, 3:8] @ (-np.sin(slope), np.cos(slope)) < 0,
    )
    down = -model.dt * 10.0 * 0.5 * np.array([np.cos(slope), np.sin(slope)])
    np.testing.assert_allclose(u[below], np.broadcast_to(down, u[below].shape), rtol=1e-12)


@pytest.mark.parametrize("contact", CONTACTS)
def test_the_velocity_commutes_with_a_quarter_turn(contact: str) -> None:
    model = grid((9, 9), Collider("box", (0.2, 0.11), contact), margin=1)
    random = np.random.default_rng(2)
    u, quarter = random.normal(size=(9, 9, 2)), np.array([[0.0, -1.0], [1.0, 0.0]])
    offset, v = np.array([0.03, 0.05]), np.array([0.4, -0.7])
    plain = build_env(model, position=0.4 + offset, rotation=0.3, velocity=v, spin=2.0, friction=0.3)
    turned = build_env(
        model, position=0.4 + quarter @ offset, rotation=0.3 + np.pi / 2, velocity=quarter @ v, spin=2.0, friction=0.3
    )
    expected = np.rot90(grid_velocity(model, u, plain)) @ quarter.T
    # rot90 turns from the first axis to the second: a value at (x, y) moves to (-y, x)
    found = grid_velocity(model, np.rot90(u) @ quarter.T, turned)
    inner = slice(1, 8)
    assert_equal_but_for_rounding(found[inner, inner], expected[inner, inner], ulps=1000)


@pytest.mark.parametrize("depth", [0.0, 0.1], ids=["surface", "end of the skin"])
def test_the_influence_has_no_kink_where_the_skin_begins_or_ends(depth: float) -> None:
    """The derivatives by position on both sides agree up to the second derivative times 1e-7."""
    model = grid((9, 9), Collider("sphere", (0.2,), "sticking"))
    total = np.zeros((9, 9, 2))
    total[7, 4] = 1.0
    slopes = []
    for shift in (-1e-7, 1e-7):
        env = build_env(model, position=(0.7 - 0.2 - depth + shift, 0.4), velocity=(1.0, 0.0))
        mass, momentum = tensor(np.ones(81)), tensor(np.zeros((81, 2)))
        (velocity(model)(mass, momentum, env) * total.reshape(-1, 2)).sum().backward()
        assert env.grad is not None
        slopes.append(env.grad.data[3])
    np.testing.assert_allclose(slopes, 0.0, atol=6 / 0.1**2 * 2e-7)


def test_the_adjoint_of_mass_is_the_same_without_that_of_the_environment() -> None:
    model, env = crowd(2)
    found = []
    for given_env in (env, env.detach()):
        mass, momentum = nodes_of(model)
        velocity(model)(mass, momentum, given_env).sum().backward()
        assert mass.grad is not None
        found.append(mass.grad.data)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-13)  # two kernels, two roundings


def test_the_helper_builds_an_array_of_all_fields() -> None:
    for dim in (2, 3):
        model, env = crowd(dim)
        assert env.shape == (sum([math.prod(shape) for shape in substeps.environment_shapes(model).values()]),)
