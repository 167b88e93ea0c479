"""The change of the identified values by half the time step, from one more simulation.

Around the optimum the values that fit the finer motion best differ by a Gauss-Newton step,

    dtheta = -J^+ (r_half - r)

with the residuals of both time steps at the same theta. It is a linear estimate: where it is large, its size says only
that the time step matters.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from simphys import optimize
from simphys.experiment.objective import SceneObjective
from simphys.experiment.setup import Setup
from simphys.scenefile import TimeSection

Array = np.ndarray[Any, Any]


def halve_time_step(setup: Any) -> Any:
    """Return the same set-up with twice as many steps of half the size."""
    if setup.experiments:
        parts = tuple([halve_time_step(part) for part in setup.experiments])
        parts = tuple([replace(part, model=parts[0].model) for part in parts])
        return replace(parts[0], config=setup.config, observations=None, experiments=parts, name="")
    half, steps = setup.config.time.dt / 2, 2 * setup.steps
    config = setup.config.model_copy(update={"time": TimeSection(dt=half, steps=steps)})
    controls = setup.controls
    if controls is not None:
        spread = {"steps": 2 * controls.steps} if hasattr(controls, "steps") else {}
        controls = replace(controls, dt=half, **spread)
    return replace(setup, config=config, model=config.build_model(), steps=steps, controls=controls)


def change_by_half_step(
    objective: SceneObjective[Any], theta: Array, residuals: Array, jacobian: Array, spread: Array
) -> Array:
    """Estimate the change of theta [p] by half the time step; NaN if the finer motion is not finite.

    residuals [m], jacobian [m, p] and spread, (J^T J)^-1 [p, p], are those at theta. Only the measurement counts.
    """
    scene: Setup = objective.scene
    seen = slice(sum([part.observations.values.size for part in scene.parts if part.observations is not None]))
    try:
        finer = SceneObjective(halve_time_step(scene), objective.unknowns).residuals(theta)
    except optimize.FailedTrial:
        return np.full(theta.size, np.nan)
    return np.asarray(-spread @ (jacobian[seen].T @ (finer[seen] - residuals[seen])))
