"""Changes of bodies' velocities by impulses of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, grad, linearize, tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.simulators.rigid import Joint, RigidBodies, Sphere
from simphys.simulators.rigid.contacts.islands import IMPACT, NONE, REST
from simphys.simulators.rigid.solver.mobility import Mobility

from ....helpers.rounding import assert_equal_but_for_rounding
from ..free_bodies import leaf


def make_model(dim: int) -> RigidBodies:
    """Return four balls that may touch; a joint connects the second, which is fixed, to the third."""
    origin = (0.0,) * dim
    return RigidBodies(dim, 0.1, ((Sphere(0.1),),) * 4, joints=(Joint("fixed", 1, 2, origin, origin),), fixed=(1,))


def make_inputs(model: RigidBodies) -> list[Tensor]:
    """Return row, orientation, orientation at the impact, attitude, mass, inertia."""
    n, R, S = model.bodies, model.rotations, model.spins
    return [
        leaf(model.rows, model.dim + 2 * S, seed=1),
        leaf(n, R, seed=2),
        leaf(n, R, seed=6),
        leaf(model.contacts, 2 * R, seed=3),
        leaf(n, seed=4, low=0.5),
        leaf(n, S, seed=5, low=0.5),
    ]


def contact_states(model: RigidBodies) -> Tensor:
    return tensor(np.array([(IMPACT, REST, NONE)[c % 3] for c in range(model.contacts)], float))


@pytest.mark.parametrize("dim", [2, 3])
def test_every_element_of_the_jacobian_is_right(dim: int) -> None:
    model = make_model(dim)
    assert {*model.row_bodies.tolist()} == {0, 1, 2, 3}
    gradcheck(lambda *x: Mobility.apply(model, contact_states(model), *x), make_inputs(model), tolerance=1e-8)


def test_an_impulse_acts_on_the_momentum_at_its_time() -> None:
    """The added and the measured spin follow from L = A w, with A at the time of the impact."""
    model = RigidBodies(3, 0.1, ((Sphere(0.1),),) * 2, fixed=(1,))
    unit, quarter = [1.0, 0.0, 0.0, 0.0], [np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)]
    row = np.zeros((3, 9))
    row[0, 3:6], row[0, 6:] = (1.0, 1.0, 1.0), (1.0, 1.0, 1.0)
    inputs: list[Any] = [row, *[[unit, unit]] * 2, [[*quarter, *unit]], [4.0, 1.0], [[2.0, 5.0, 10.0]] * 2]
    jacobian, response = Mobility.apply(model, tensor([float(REST)]), *[tensor(each) for each in inputs])
    moments, spin_changes = [each.data[0].reshape(2, 2, 3)[:, 1] for each in (jacobian, response)]
    assert_equal_but_for_rounding(spin_changes, [[1 / 2, 1 / 5, 1 / 10], [0, 0, 0]], ulps=32, size=1.0)
    assert_equal_but_for_rounding(moments, [[2 / 5, 5 / 2, 1], [-1, -1, -1]], ulps=32)


@pytest.mark.parametrize("spread", [0.0, 1e-9])
def test_the_orientation_of_a_body_like_a_ball_has_exact_derivatives(spread: float) -> None:
    """They are 0 for equal moments of inertia, and in proportion to the differences of nearly equal ones."""
    model, random = make_model(3), np.random.default_rng(7)
    inputs = make_inputs(model)
    inertia = 0.7 * (1 + spread * np.array([0.0, 1.0, -1.0]))
    inputs[-1] = tensor(np.tile(inertia, (model.bodies, 1)), requires_grad=True)
    outputs = Mobility.apply(model, contact_states(model), *inputs)
    us = [random.standard_normal(each.shape) for each in outputs]
    for place in (2, 3):  # of joint rows, and of contacts
        direction = random.standard_normal(inputs[place].shape)
        (adjoint,) = grad(outputs, [inputs[place]], us, retain_graph=True)
        tangents = linearize(outputs, [inputs[place]])(direction)
        forward = sum(np.vdot(u, dy) for u, dy in zip(us, tangents, strict=True))
        scale = np.linalg.norm(adjoint.data)
        assert (scale > 0) == (spread > 0)
        assert scale < 100 * spread or scale == 0.0
        assert abs(forward - np.vdot(adjoint.data, direction)) <= 1e-12 * scale
