"""Standard errors with a robust loss are the scatter of fits, also with outliers, where those of squares are not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import least_squares

from simphys.optimize import RobustLoss, m_estimate_sigma, standard_errors
from simphys.optimize.robust import RobustKind

COUNT, OUTLIERS = 120, 6
DESIGN = np.column_stack([np.ones(COUNT), np.linspace(-1, 1, COUNT)])


def fit(loss: RobustLoss, seen: np.ndarray) -> np.ndarray:
    def residuals(theta: np.ndarray) -> np.ndarray:
        return loss.residual(DESIGN @ theta - seen)[0]

    def jacobian(theta: np.ndarray) -> np.ndarray:
        return loss.residual(DESIGN @ theta - seen)[1][:, None] * DESIGN

    return np.asarray(least_squares(residuals, np.zeros(2), jac=jacobian).x)


@pytest.mark.parametrize("kind", ["huber", "soft_l1", "cauchy", "student_t"])
@pytest.mark.parametrize("outliers", [0, OUTLIERS])
def test_errors_are_the_scatter_of_fits_to_fresh_noise(kind: RobustKind, outliers: int) -> None:
    loss = RobustLoss(kind, 4.0 if kind == "student_t" else 1.5)
    random = np.random.default_rng(8)
    found, stated = [], []
    for _ in range(200):
        noise = random.standard_normal(COUNT)
        noise[random.choice(COUNT, outliers, replace=False)] = 1000.0
        theta = fit(loss, noise)
        residuals = DESIGN @ theta - noise
        sigma, _ = m_estimate_sigma(loss, residuals, 2)
        standard = standard_errors(DESIGN, residuals)
        found.append(theta)
        stated.append(standard.values * sigma / standard.sigma)
    scatter = np.std(found, axis=0)  # with 200 fits good to 5 %
    np.testing.assert_allclose(np.mean(stated, axis=0), scatter, rtol=0.15)


@pytest.mark.parametrize("kind", ["huber", "soft_l1", "cauchy", "student_t"])
def test_a_residual_is_known_from_what_a_loss_makes_of_it(kind: RobustKind) -> None:
    sizes = np.array([0.0, 1e-3, 0.7, 1.5, 4.0, 30.0])
    loss = RobustLoss(kind, 1.5)
    np.testing.assert_allclose(loss.inverse(loss.residual(sizes)[0]), sizes, rtol=1e-9)
