"""Which parameters a loss tells about: how much of it each of them makes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simphys.autograd import Tensor
from simphys.rollout import Trajectory
from simphys.simulator import Arrays


@dataclass(frozen=True)
class Sensitivity:
    """How much of a loss a quantity makes: |theta dL/dtheta| of its entries."""

    name: str
    of_start: bool
    """Whether it is a field of the start state, and not a parameter or the control."""
    entries: int
    vanishing: int
    """Entries whose |theta dL/dtheta| is at most the rounding of the loss, eps |L|: of them nothing can be learnt."""
    largest: float
    """The largest |theta dL/dtheta| / |L|; NaN where theta is 0 throughout, so that it has no size."""


def sensitivities(
    trajectory: Trajectory, state: dict[str, Tensor], params: dict[str, Tensor], gradients: Arrays, loss: float
) -> tuple[Sensitivity, ...]:
    """Of parameters, control and start. What is 0 has the size of its field, and a start of rest that of the motion."""
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
