"""The force between charges is Coulomb's, softened, and its adjoint is the transpose of its Jacobian."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import InputError, Tensor, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.rollout import rollout
from simphys.simulators.charges import Charges, Params, State
from simphys.simulators.charges.motion import ChargeForce

from .systems import assert_close, system, two_bodies


def force_of(model: Charges) -> Any:
    def force(*inputs: Tensor) -> Tensor:
        return ChargeForce.apply(model, *inputs)

    return force


def inputs_of(params: Params, state: State) -> tuple[Tensor, ...]:
    return state.position, params.charge, params.coupling, params.softening


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_every_element_of_the_jacobian_is_right(dim: int) -> None:
    model, params, state = system(dim, bodies=4)
    gradcheck(force_of(model), inputs_of(params, state), tolerance=1e-7)
    dot_product_test(force_of(model), inputs_of(params, state), tolerance=1e-13)


@pytest.mark.parametrize("bodies", [2, 37])  # 37 bodies leave an incomplete block for the compiler
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_force_is_the_sum_over_all_others(dim: int, bodies: int) -> None:
    model, params, state = system(dim, bodies=bodies)
    x, q, k, s = (value.data for value in inputs_of(params, state))
    expected = np.zeros_like(x)
    for i in range(bodies):
        for j in set(range(bodies)) - {i}:
            d = x[i] - x[j]
            expected[i] += k * q[i] * q[j] * d / (d @ d + s**2) ** 1.5
    assert_close(force_of(model)(*inputs_of(params, state)).data, expected, 1e-13)


@pytest.mark.parametrize("charge", [(1.0, -1.0), (2.0, 3.0)])
def test_two_bodies_far_apart_feel_coulombs_law(charge: tuple[float, float]) -> None:
    """Like charges repel, unlike ones attract. A softening of 1/50 of the distance weakens this by 3/2 (1/50)^2."""
    model, params, state = two_bodies(5.0, charge=charge, softening=0.1)
    force = force_of(model)(*inputs_of(params, state)).data
    pull = charge[0] * charge[1] / 5.0**2
    np.testing.assert_allclose(force[:, 0], [-pull, pull], rtol=1.5 * 0.02**2)
    np.testing.assert_allclose(force[:, 0], [-pull / (1 + 0.02**2) ** 1.5, pull / (1 + 0.02**2) ** 1.5], rtol=1e-13)
    assert not force[:, 1].any()


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_adjoint_is_that_of_the_sum_over_all_others(dim: int) -> None:
    """37 bodies again; the expected gradient follows from finite differences of the sum along one direction each."""
    model, params, state = system(dim, bodies=37)
    dot_product_test(force_of(model), inputs_of(params, state), tolerance=1e-12)
    gradcheck(force_of(model), inputs_of(params, state), mode="projected", repeats=2)


def test_bodies_at_one_place_do_not_push_each_other() -> None:
    model, params, state = two_bodies(0.0)
    assert not force_of(model)(*inputs_of(params, state)).data.any()


def test_a_single_body_has_no_force() -> None:
    model, params, state = system(3, bodies=1)
    assert not force_of(model)(*inputs_of(params, state)).data.any()


@pytest.mark.parametrize(("softening", "told"), [(0.0, "positive"), (-0.1, "positive"), (1e-70, "at least 1e-60")])
def test_the_softening_is_positive(softening: float, told: str) -> None:
    model, params, state = two_bodies(1.0)
    with pytest.raises(InputError, match=f"softening.*{told}"):
        model.step(params.replace(softening=tensor(softening)), state)
    with pytest.raises(InputError, match=f"softening.*{told}"):
        rollout(model, params.replace(softening=tensor(softening)), state, steps=1)
