"""Buoyancy and its adjoint, and means of cells at faces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.simulators.smoke import buoyancy
from simphys.simulators.smoke.buoyancy import Buoyancy
from simphys.simulators.smoke.faces import own_faces
from simphys.simulators.smoke.model import Smoke

from ...helpers.rounding import assert_equal_but_for_rounding
from .flows import check, small, some, variants, velocity
from .parts import check_parts_of_arrays


@pytest.mark.parametrize("name", variants())
def test_every_element_of_the_jacobian_is_right(name: str) -> None:
    model = variants()[name]
    check(Buoyancy.apply, model, velocity(model), some(*model.cells), some(model.dim))


def lifted(model: Smoke, *arrays: Any) -> np.ndarray:
    return Buoyancy.apply(model, *[tensor(array) for array in arrays]).data


@pytest.mark.gpu
@pytest.mark.parametrize("name", variants())
def test_uniform_smoke_accelerates_the_fluid_evenly_but_for_faces_on_sides(name: str) -> None:
    model = variants()[name]
    u = np.zeros_like(velocity(model).data)
    b = some(model.dim).data
    after = lifted(model, u, np.full(model.cells, 2.0, u.dtype), b)
    expected = np.zeros_like(u)
    for component in range(model.dim):
        on_sides = model.grid == "staggered" and model.boundaries[2 * component] != "periodic"
        inside: list[Any] = [slice(n) for n in own_faces(model, component)]
        if on_sides:
            inside[component] = slice(1, -1)
        expected[tuple([component, *inside])] = 2.0 * model.dt * b[component]
    np.testing.assert_allclose(after, expected, rtol=1e-6)


def test_a_puff_pushes_both_faces_of_its_cell_by_half() -> None:
    model = small()
    smoke = np.zeros(model.cells)
    smoke[0, 1] = 1.0
    after = lifted(model, np.zeros((2, *model.cells)), smoke, np.array([3.0, 5.0]))
    expected = np.zeros_like(after)
    expected[0, [0, 1], 1] = 0.5 * model.dt * 3.0
    expected[1, 0, [1, 2]] = 0.5 * model.dt * 5.0
    assert_equal_but_for_rounding(after, expected)


def check_parts(model: Smoke, module: Any = buoyancy) -> None:
    """Check adjoints that lie within arrays."""
    given = {"velocity": velocity(model).data, "smoke": some(*model.cells).data, "buoyancy": some(model.dim).data}
    check_parts_of_arrays(model, module.Buoyancy, module.adj_lift, given, "lifted_velocity")


@pytest.mark.gpu
@pytest.mark.parametrize("name", variants())
def test_an_adjoint_within_an_array_is_set_or_added_to(name: str) -> None:
    check_parts(variants()[name])
