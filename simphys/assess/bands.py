"""Bands of the prediction: how uncertain the values leave the motion, by linearization or by samples of the posterior.

var(y_i) = (J C J^T)_ii        J the derivatives of the predictions y by theta, C the covariance of theta
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from simphys.autograd import Tensor, no_grad, ops
from simphys.autograd.compose import functional
from simphys.experiment import misfits
from simphys.experiment.objective import SceneObjective, as_failed_trial
from simphys.experiment.observe import Observations
from simphys.experiment.trajectory import compute_trajectory

from .uncertainty import Uncertainty

Array = np.ndarray[Any, Any]

MOST = 200
"""Largest number of samples of the posterior that are simulated."""
BETWEEN = (2.5, 97.5)
"""Percentiles of their predictions between which a band lies."""


def predict_bands(objective: SceneObjective[Any], uncertainty: Uncertainty) -> dict[str, Array]:
    """Compute the standard deviation [N, C] of the prediction at each sample, held out or not, in units of channels.

    The covariance is the larger one of the two that the uncertainty holds, for each number. Returned by the name of the
    experiment; without measured fields, and nothing where no unknown has a standard error.
    """
    covariances = [np.nan_to_num(each) for each in (uncertainty.standard.covariance, uncertainty.robust_covariance)]
    if not _has_channels(objective) or not any(each.any() for each in covariances):
        return {}
    theta = objective.make_tensor(uncertainty.theta, requires_grad=True)
    jacobian = np.asarray(functional.jacobian(partial(_predict, objective), (theta,)), np.float64)
    jacobian = jacobian.reshape(-1, uncertainty.theta.size)
    variance = np.maximum(*[np.einsum("mp,pq,mq->m", jacobian, each, jacobian) for each in covariances])
    return _split(objective, np.sqrt(np.maximum(variance, 0.0)))


def sample_bands(objective: SceneObjective[Any], samples: Array) -> dict[str, Array]:
    """Compute the limits [2, N, C] between which 95 % of the predictions of samples of theta [n, p] lie.

    At most MOST of the samples are simulated, spread over all of them. Returned like those of `predict_bands`.
    Errors: optimize.FailedTrial.
    """
    if not _has_channels(objective):
        return {}
    chosen = samples[np.unique(np.linspace(0, len(samples) - 1, MOST).astype(int))]
    with no_grad(), as_failed_trial():
        made = [_predict(objective, objective.make_tensor(theta)).data for theta in chosen]
    lower, upper = (_split(objective, limit) for limit in np.percentile(made, BETWEEN, axis=0))
    return {name: np.stack([lower[name], upper[name]]) for name in lower}


def _has_channels(objective: SceneObjective[Any]) -> bool:
    return any([isinstance(part.observations, Observations) for part in objective.scene.parts])


def _predict(objective: SceneObjective[Any], theta: Tensor) -> Tensor:
    """Predict the channels of all experiments, [m]."""
    scene = objective.scene_at(theta)
    motions = compute_trajectory(scene, only_seen=True)
    pairs = zip(scene.parts, motions if scene.experiments else [motions], strict=True)
    seen = [(part, motion) for part, motion in pairs if isinstance(part.observations, Observations)]
    made = [ops.reshape(misfits.predict(part, motion), (-1,)) for part, motion in seen]
    return made[0] if len(made) == 1 else ops.concatenate(made)


def _split(objective: SceneObjective[Any], numbers: Array) -> dict[str, Array]:
    """Split numbers of the channels of all experiments [m] into those of each, [N, C] by its name."""
    found, begin = {}, 0
    for part in objective.scene.parts:
        seen = part.observations
        if isinstance(seen, Observations):
            found[part.name] = numbers[begin : begin + seen.values.size].reshape(seen.values.shape)
            begin += seen.values.size
    return found
