"""Sensitivity of a loss to each of its parameters, relative to the loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simphys.autograd import Tensor
from simphys.rollout import Trajectory
from simphys.simulator import Arrays


@dataclass(frozen=True)
class Sensitivity:
    """Effect of a quantity theta on the loss, |theta dL/dtheta| for each of its entries."""

    name: str
    of_start: bool
    """True for a field of the initial state; False for a parameter or the control."""
    entries: int
    vanishing: int
    """Number of entries that cannot be identified: |theta dL/dtheta| is at most the rounding of the loss, eps |L|.
    """
    largest: float
    """Largest |theta dL/dtheta| / |L|; NaN if theta is 0 throughout, and so has no scale."""


def sensitivities(
    trajectory: Trajectory, state: dict[str, Tensor], params: dict[str, Tensor], gradients: Arrays, loss: float
) -> tuple[Sensitivity, ...]:
    """Compute the sensitivities to parameters, control and initial state.

    The scale of a zero entry is the largest entry of its field; that of a start at rest, the largest of the motion.
    """
    made = []
    for name, tensor in (*params.items(), *state.items()):
        if not tensor.size:
            continue
        gradient = np.abs(gradients[name].astype(np.float64))
        values = np.abs(tensor.data.astype(np.float64))
        largest = values.max()
        if largest == 0 and name in state:
            largest = np.abs(getattr(trajectory.states, name).data).max()
        size = np.where(values > 0, values, largest)
        with np.errstate(all="ignore"):
            effect = size * gradient
            vanishing = effect <= np.finfo(tensor.dtype).eps * abs(loss) if largest > 0 else gradient == 0
            part = float((effect / abs(loss)).max()) if largest > 0 else np.nan
        made.append(Sensitivity(name, name in state, tensor.size, int(vanishing.sum()), part))
    return tuple(made)
