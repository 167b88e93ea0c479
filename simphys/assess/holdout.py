"""Prediction of samples that the fit has not seen.

With the covariance S = s^2 I + J C J^T of their residuals, from noise s and values with the covariance C, the sum of
their squares has the mean tr S and the variance 2 tr S^2: it is distributed like tr S / nu times chi^2 of
nu = (tr S)^2 / tr S^2 degrees of freedom. Source: Satterthwaite 1946. As s is found from the residuals of the fit, with
the degrees of freedom mu of those, the ratio of both is distributed like F of nu and mu degrees of freedom.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.experiment.hold_out import held_out, held_out_only
from simphys.experiment.objective import SceneObjective
from simphys.experiment.several import map_measurements

from .criteria import Criterion, grade
from .series import split_residuals

Array = np.ndarray[Any, Any]

LIMITS = (1.5, 5.0)
"""RMSE of held-out samples in multiples of the expected one, beyond which a fit is doubtful or fails."""
LEAST_P = 1e-3
"""Probability below which such a multiple is not taken for chance."""


@dataclass(frozen=True)
class Holdout:
    """Misfit of the held-out samples."""

    samples: int
    misfit: float
    """RMSE / sigma of them."""
    expected: float
    """RMSE / sigma that the noise of the fit and the errors of its values lead one to expect."""
    freedom: float
    """Degrees of freedom nu: misfit^2 / expected^2 is distributed like chi^2 / nu. Few uncertain values lower it."""
    noise_freedom: float = np.inf
    """Degrees of freedom mu of the noise, as the fit tells it."""


def predict_holdout(
    objective: SceneObjective[Any], theta: Array, covariance: Array, noise: tuple[float, int]
) -> Holdout | None:
    """Compare held-out samples with their prediction at theta; None if the scene holds none out, or noise is not known.

    `noise`: RMSE / sigma of the fit, and its degrees of freedom; covariance [p, p] of theta. Errors:
    optimize.FailedTrial.
    """
    sigma, noise_freedom = noise
    if not np.isfinite(sigma) or not any(
        part.observations is not None and held_out(part.observations) for part in objective.scene.parts
    ):
        return None
    unseen = SceneObjective(map_measurements(objective.scene, held_out_only), objective.unknowns)
    split = split_residuals(unseen.scene, unseen.residuals(theta), unseen.jacobian(theta))
    residuals = np.concatenate([each.residuals[each.there] for each in split.series])
    jacobian = np.concatenate([each.jacobian[each.there] for each in split.series])
    misfit = float(np.sqrt(np.mean(residuals**2)))
    spread = np.nan_to_num(covariance) @ (jacobian.T @ jacobian)  # of the same traces as J C J^T
    white, own = residuals.size * sigma**2, float(np.trace(spread))
    squares = white * sigma**2 + 2 * sigma**2 * own + float(np.trace(spread @ spread))
    freedom = (white + own) ** 2 / squares if squares > 0 else np.inf
    return Holdout(residuals.size, misfit, float(np.sqrt((white + own) / residuals.size)), freedom, noise_freedom)


def judge_holdout(found: Holdout) -> Criterion:
    """Judge the prediction of held-out samples."""
    from scipy.stats import chi2, f

    exact = 0.0 if found.misfit == 0 else np.inf
    ratio = found.misfit / found.expected if found.expected > 0 else exact
    few = np.isfinite(found.noise_freedom)
    chance = f(found.freedom, found.noise_freedom) if few else chi2(found.freedom, scale=1 / found.freedom)
    by_chance = np.isfinite(found.freedom) and chance.sf(ratio**2) > LEAST_P
    verdict = "passed" if by_chance else grade(ratio, doubtful=LIMITS[0], failed=LIMITS[1])
    words = (
        f"RMSE / sigma {found.misfit:.3g} of {found.samples} held-out samples, where {found.expected:.3g} is expected"
    )
    remedy = "The model does not predict: look for a force that it lacks, or for another optimum." * (
        verdict != "passed"
    )
    return Criterion("holdout", found.misfit, verdict, words, remedy)
