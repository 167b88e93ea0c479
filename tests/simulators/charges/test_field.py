"""The force of an external field and its adjoint."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.charges.field import FieldForce


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_every_element_of_the_jacobian_is_right(dim: int) -> None:
    random = np.random.default_rng(0)
    inputs = tensor(random.normal(size=4), requires_grad=True), tensor(random.normal(size=dim), requires_grad=True)
    gradcheck(FieldForce.apply, inputs, tolerance=1e-9)
    dot_product_test(FieldForce.apply, inputs, tolerance=1e-13)


def test_the_force_is_charge_times_field() -> None:
    force = FieldForce.apply(tensor([2.0, -1.0]), tensor([0.5, 3.0]))
    np.testing.assert_array_equal(force.data, [[1.0, 6.0], [-0.5, -3.0]])
