"""The force of an external field and its adjoint."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.charges import Charges
from simphys.simulators.charges.motion import FieldForce


def force(charge: Tensor, field: Tensor) -> Tensor:
    result: Tensor = FieldForce.apply(Charges(len(charge.data), len(field.data), 0.1), charge, field)
    return result


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_every_element_of_the_jacobian_is_right(dim: int) -> None:
    random = np.random.default_rng(0)
    inputs = tensor(random.normal(size=4), requires_grad=True), tensor(random.normal(size=dim), requires_grad=True)
    gradcheck(force, inputs, tolerance=1e-9)
    dot_product_test(force, inputs, tolerance=1e-13)


def test_the_force_is_charge_times_field() -> None:
    found = force(tensor([2.0, -1.0]), tensor([0.5, 3.0]))
    np.testing.assert_array_equal(found.data, [[1.0, 6.0], [-0.5, -3.0]])
