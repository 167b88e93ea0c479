"""Poses of bodies at the impact that splits a step, and the fraction of the step before it."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.simulators.rigid import Plane, RigidBodies, Sphere
from simphys.simulators.rigid.solver.split_step import SplitStep

from ....helpers.rounding import assert_equal_but_for_rounding
from ..free_bodies import leaf

H = 0.1


def balls(dim: int = 2) -> RigidBodies:
    return RigidBodies(dim, H, ((Sphere(0.1),),) * 3, (Plane((0.0,) * (dim - 1) + (1.0,)),))


def make_inputs(model: RigidBodies) -> list[Tensor]:
    """Return position, orientation, twist, time."""
    n, D = model.bodies, model.dim + model.spins
    return [
        leaf(n, model.dim, seed=1),
        leaf(n, model.rotations, seed=2),
        leaf(n, D, seed=3),
        leaf(model.contacts, seed=4, high=H),
    ]


def first_impacts(model: RigidBodies) -> Tensor:
    """Return first impacts: one that reaches the first body, none for the second, another for the third."""
    return tensor([2.0, -1.0, 0.0])


@pytest.mark.parametrize("dim", [2, 3])
def test_every_derivative_is_right(dim: int) -> None:
    model = balls(dim)
    gradcheck(lambda *x: SplitStep.apply(model, first_impacts(model), *x), make_inputs(model), tolerance=1e-8)


def test_bodies_are_where_their_velocities_bring_them() -> None:
    """Time counts from the forces, in the middle of the step."""
    tau, fraction = -0.02, 0.3
    model = balls(2)
    x, q, twist, _ = make_inputs(model)
    time = tensor([tau, 0.9, tau, *[0.9] * (model.contacts - 3)])
    x_impact, q_impact, fractions = SplitStep.apply(model, first_impacts(model), x, q, twist, time)
    assert_equal_but_for_rounding(fractions.data, [fraction, 1.0, fraction])
    moved = np.array([tau, 0.0, tau])[:, None] * twist.data
    assert_equal_but_for_rounding(x_impact.data, x.data + moved[:, :2])
    assert_equal_but_for_rounding(q_impact.data, q.data + moved[:, 2:])
