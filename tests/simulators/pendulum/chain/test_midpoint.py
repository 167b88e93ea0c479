"""The midpoint rate of a variational step solves the discrete Euler-Lagrange equations."""

from __future__ import annotations

import math

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.pendulum.chain import Chain, Params
from simphys.simulators.pendulum.chain.midpoint import MidpointRate
from simphys.simulators.pendulum.integrators import make_zeros

from ..chains import chain, energy, mass_matrix, moments, numbers


def system(model: Chain, params: Params) -> tuple[Tensor, ...]:
    """The parameters that the sub-step takes."""
    return params.length, *moments(model, params), params.gravity, params.tilt, params.damping


@pytest.mark.parametrize("links", [1, 2, 5])
def test_every_element_of_the_jacobian_is_right(links: int) -> None:
    model, params, state = chain(links, dt=0.1)

    def midpoint_rate(*inputs: Tensor) -> Tensor:
        return MidpointRate.apply(model, state.rate.detach(), *inputs, model.dt / 2, math.nan)

    inputs = (state.angle, numbers(links, 4), numbers(links), *system(model, params))
    gradcheck(midpoint_rate, inputs, tolerance=1e-6)
    dot_product_test(midpoint_rate, inputs, tolerance=1e-12)


@pytest.mark.parametrize("links", [1, 2, 5, 16])
def test_it_solves_the_discrete_equations_to_rounding(links: int) -> None:
    """Check p = -dL_d/dx - h/2 F with a numerical derivative of L_d = h L((x + x')/2, (x' - x)/h), for two guesses."""
    model, params, state = chain(links, dt=0.02)
    h, x, u, c = model.dt, state.angle.data, numbers(links), params.damping.data
    p = tensor(mass_matrix(params, x) @ state.rate.data)
    v = MidpointRate.apply(model, state.rate, state.angle, p, u, *system(model, params), h / 2, math.nan).data
    other = MidpointRate.apply(
        model, tensor(np.zeros(links)), state.angle, p, u, *system(model, params), h / 2, math.nan
    ).data
    np.testing.assert_allclose(other, v, rtol=0, atol=1e-12 * abs(v).max())

    def discrete(x: np.ndarray, x_new: np.ndarray) -> float:
        middle, rate = (x + x_new) / 2, (x_new - x) / h
        return float(h * (rate @ mass_matrix(params, middle) @ rate - energy(params, middle, rate)))

    joints = u.data - c * np.diff(v, prepend=0.0)
    force = joints - np.append(joints[1:], 0.0)
    eps = 1e-5
    slope = [(discrete(x + s, x + h * v) - discrete(x - s, x + h * v)) / (2 * eps) for s in eps * np.eye(links)]
    np.testing.assert_allclose(-np.array(slope) - h / 2 * force, p.data, rtol=0, atol=1e-6 * abs(p.data).max())


def test_a_step_too_long_to_be_solved_has_no_result() -> None:
    """Within a step of half a second the free end makes more than a full turn, and Newton's method fails."""
    model, params, state = chain(2, dt=0.5, seed=7)
    v = MidpointRate.apply(
        model, state.rate, state.angle, numbers(2, 4), make_zeros(2), *system(model, params), 0.25, math.nan
    )
    assert np.isnan(v.data).all()
