"""Velocities prescribed at sides, and their adjoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.simulators.smoke import sides
from simphys.simulators.smoke.model import Smoke
from simphys.simulators.smoke.sides import ApplySides

from .flows import check, some, variants, velocity
from .parts import check_parts_of_arrays


@pytest.mark.parametrize("name", variants())
def test_every_element_of_the_jacobian_is_right(name: str) -> None:
    model = variants()[name]
    check(ApplySides.apply, model, velocity(model), some(2 * model.dim, model.dim))


def prescribed(model: Smoke, *arrays: Any) -> np.ndarray:
    return ApplySides.apply(model, *[tensor(array) for array in arrays]).data


@pytest.mark.gpu
def test_walls_stop_the_fluid_and_inflow_has_its_velocity() -> None:
    model = variants()["channel"]
    u, given = velocity(model).data, some(4, 2).data
    after = prescribed(model, u, given)
    np.testing.assert_array_equal(after[0, 0, :3], np.full(3, given[0, 0]))
    assert not after[1, :, [0, 3]].any()
    np.testing.assert_array_equal(after[0, 1:], u[0, 1:])  # the open side, too
    np.testing.assert_array_equal(after[1, :, 1:3], u[1, :, 1:3])
    assert not after[0, 0, 3]  # no face of this component


@pytest.mark.parametrize("name", ["periodic", "collocated"])
def test_nothing_is_prescribed_if_no_velocity_entry_is_on_a_side(name: str) -> None:
    model = variants()[name]
    u = velocity(model).data
    np.testing.assert_array_equal(prescribed(model, u, some(4, 2).data), u)


def check_parts(model: Smoke, module: Any = sides) -> None:
    """Check adjoints that lie within arrays."""
    given = {"velocity": velocity(model).data, "boundary_velocity": some(2 * model.dim, model.dim).data}
    check_parts_of_arrays(model, module.ApplySides, module.adj_prescribe, given, "prescribed_velocity")


@pytest.mark.gpu
@pytest.mark.parametrize("name", variants())
def test_an_adjoint_within_an_array_is_set_or_added_to(name: str) -> None:
    check_parts(variants()[name])
