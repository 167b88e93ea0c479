"""The solver of rows: what its sweeps converge to, its adjoint, and what it does at its kinks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.gradcheck import gradcheck
from simphys.rigid import WORLD, Joint, Plane, RigidBodies, Sphere
from simphys.rigid.rows import flat
from simphys.rigid.solve import Solve

Inputs = tuple[Tensor, ...]


def model_of(dim: int, sweeps: int = 3) -> RigidBodies:
    """Three balls, two of which are joined, on a floor: of all rows some are of joints, some of contacts."""
    up = (0.0, 1.0) if dim == 2 else (0.0, 0.0, 1.0)
    origin = (0.0,) * dim
    joint = Joint("revolute", 0, 1, origin, origin, axis=None if dim == 2 else up)
    return RigidBodies(dim, 0.01, ((Sphere(0.1),),) * 3, (Plane(up),), joints=(joint,), sweeps=sweeps)


def rows_of(model: RigidBodies, seed: int = 0, **changes: Any) -> Inputs:
    """Random rows of these bodies: row, target, limit, inverse mass, what rows turn, time, twist."""
    random = np.random.default_rng(seed)
    n, S, N, M = model.bodies, model.spins, model.rows, model.contacts
    row, half = random.normal(size=(N, model.dim + 2 * S)), random.normal(size=(n, S, S))
    inverse = np.concatenate([half @ half.transpose(0, 2, 1) + np.eye(S), np.zeros((1, S, S))])  # the last: the world's
    moments = row[:, model.dim :].reshape(N, 2, S)
    values = {
        "row": row,
        "target": random.normal(size=N),
        "limit": random.uniform(0.2, 3.0, M),
        "inverse_mass": random.uniform(0.5, 1.5, n),
        "turned": np.einsum("rbij,rbj->rbi", inverse[bodies_of(model)], moments).reshape(N, 2 * S),
        "time": random.normal(size=M),
        "twist": random.normal(size=(n, model.dim + S)),
    }
    values |= changes
    return tuple([tensor(value, requires_grad=True) for value in values.values()])


def bodies_of(model: RigidBodies) -> np.ndarray:
    """Both bodies of each row."""
    blocks, NJ = model.row_bodies.reshape(-1, 2), model.joint_rows
    return np.concatenate([blocks[:NJ], np.repeat(blocks[NJ:], model.dim, axis=0)])


def speeds(model: RigidBodies, row: Tensor, twist: Tensor) -> np.ndarray:
    """u of each row of the joints, and of each contact's."""
    dim, S, bodies = model.dim, model.spins, bodies_of(model)
    V = np.concatenate([twist.data, np.zeros((1, dim + S))])  # the last is the world, WORLD = -1
    a, b = V[bodies[:, 0]], V[bodies[:, 1]]
    J = row.data
    moved = np.einsum("rd,rd->r", J[:, :dim], a[:, :dim] - b[:, :dim])
    turned = np.einsum("rs,rs->r", J[:, dim : dim + S], a[:, dim:]) - np.einsum("rs,rs->r", J[:, dim + S :], b[:, dim:])
    return moved + turned


@pytest.mark.parametrize("dim", [2, 3])
def test_the_adjoint_is_that_of_the_sweeps(dim: int) -> None:
    """With contacts that stick, slide, part and do not count, and joints; by every input."""
    model = model_of(dim)
    active = tensor(np.array([1.0, 1, 0, 1, 1]))
    inputs = rows_of(model, seed=2)
    _, _, impulse = Solve.apply(model, *inputs, active)
    contacts = impulse.data[model.joint_rows :].reshape(-1, dim)
    pressed = contacts[:, 0] > 0
    at_limit = np.linalg.norm(contacts[:, 1:], axis=1) >= inputs[2].data * contacts[:, 0] * (1 - 1e-12)
    assert (pressed & at_limit).any() and (pressed & ~at_limit).any() and (active.data[~pressed] > 0).any()
    gradcheck(lambda *x: Solve.apply(model, *x, active), inputs)


@pytest.mark.parametrize("dim", [2, 3])
def test_sweeps_converge_to_what_rows_ask_for(dim: int) -> None:
    """Joints reach their target; contacts do not approach faster than theirs, and press only where they reach it."""
    model = model_of(dim, sweeps=3000)
    row, target, limit, im, turned, time, twist = rows_of(model, seed=5)
    new, _, impulse = Solve.apply(model, row, target, limit, im, turned, time, twist, tensor(np.ones(model.contacts)))
    NJ = model.joint_rows
    miss = speeds(model, row, new) - target.data
    np.testing.assert_allclose(miss[:NJ], 0, atol=1e-9)
    normal, pressed = miss[NJ::dim], impulse.data[NJ::dim]
    assert (pressed >= 0).all() and (normal > -1e-9).all()
    np.testing.assert_allclose(normal * pressed, 0, atol=1e-9)
    for c in range(model.contacts):
        friction = impulse.data[NJ + c * dim + 1 : NJ + (c + 1) * dim]
        slip = miss[NJ + c * dim + 1 : NJ + (c + 1) * dim]
        bound = limit.data[c] * pressed[c]
        assert np.linalg.norm(friction) <= bound + 1e-12
        if np.linalg.norm(friction) < bound - 1e-9:
            np.testing.assert_allclose(slip, 0, atol=1e-9)
        elif bound > 0:  # slides: friction is opposite to the slip, in the plane of both tangents
            np.testing.assert_allclose(friction / bound, -slip / np.linalg.norm(slip), atol=1e-6)


def test_impulses_are_equal_and_opposite() -> None:
    model = replace(model_of(3), planes=())
    inputs = rows_of(model, seed=7)
    new, _, _ = Solve.apply(model, *inputs, tensor(np.ones(model.contacts)))
    mass = 1 / inputs[3].data
    momenta = [(mass[:, None] * twist.data[:, :3]).sum(axis=0) for twist in (inputs[6], new)]
    np.testing.assert_allclose(momenta[1], momenta[0], atol=1e-12)


def test_a_shift_is_what_impulses_change_times_their_time() -> None:
    model = replace(model_of(2), joints=())
    *inputs, _, twist = rows_of(model, seed=9)
    active = tensor(np.ones(model.contacts))
    new, shift, _ = Solve.apply(model, *inputs, tensor(np.full(model.contacts, 0.3)), twist, active)
    np.testing.assert_allclose(shift.data, 0.3 * (new.data - twist.data), atol=1e-13)


def kink(mu: float, slip: float) -> tuple[RigidBodies, list[np.ndarray], np.ndarray]:
    """A ball without spin that meets the floor at speed 1, mass 1, and slides at `slip`."""
    model = RigidBodies(2, 0.01, ((Sphere(0.1),),), (Plane((0.0, 1.0)),), sweeps=2)
    row = np.array([[0.0, 1.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0]])
    values = [row, np.zeros(2), np.array([mu]), np.ones(1), np.zeros((2, 2)), np.zeros(1)]
    return model, values, np.array([[slip, -1.0, 0.0]])


def test_a_contact_without_an_impulse_counts_as_separated() -> None:
    """Its lambda is exactly 0: nothing depends on its target."""
    model, values, _ = kink(0.5, 0.0)
    leaves = [tensor(value, requires_grad=True) for value in (*values, np.zeros((1, 3)))]
    _, _, impulse = Solve.apply(model, *leaves, tensor(np.ones(1)))
    impulse.sum().backward()
    assert not impulse.data.any()
    assert leaves[1].grad is not None and leaves[1].grad.data[0] == 0.0


def test_friction_at_the_edge_of_its_cone_counts_as_sticking() -> None:
    """mu = 0.5 just stops a slip of 0.5: the velocity after is 0, and its derivatives are those of sticking."""
    model, values, twist = kink(0.5, 0.5)
    leaves = [tensor(value, requires_grad=True) for value in (*values, twist)]
    new, _, _ = Solve.apply(model, *leaves, tensor(np.ones(1)))
    new[0, 0].backward()
    assert new.data[0, 0] == 0.0
    limit, velocity = leaves[2].grad, leaves[6].grad
    assert limit is not None and velocity is not None
    assert limit.data[0] == 0.0 and velocity.data[0, 0] == 0.0


def test_a_contact_where_nothing_slides_has_finite_derivatives() -> None:
    """The direction of friction is nowhere then."""
    model, values, twist = kink(0.5, 0.0)
    leaves = [tensor(value, requires_grad=True) for value in (*values, twist)]
    new, shift, impulse = Solve.apply(model, *leaves, tensor(np.ones(1)))
    (new.sum() + shift.sum() + impulse.sum()).backward()
    assert all(leaf.grad is None or np.isfinite(leaf.grad.data).all() for leaf in leaves)


def test_the_world_is_the_last_body_of_none() -> None:
    assert WORLD == -1
    assert all(each.size for each in flat(np.zeros(0), np.zeros((0, 3))))
