"""The change of the identified values by half the time step, and by friction of a sharper sign, from a simulation each.

Around the optimum the values that fit the other motion best differ by a Gauss-Newton step,

    dtheta = -J^+ (r_other - r)

with the residuals of both motions at the same theta. It is a linear estimate: where it is large, its size says only
that the time step matters, or the rate within which dry friction changes its sign.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from simphys import optimize
from simphys.autograd import tensor
from simphys.experiment.objective import SceneObjective
from simphys.experiment.setup import Setup
from simphys.scenefile import TimeSection

Array = np.ndarray[Any, Any]

SHARPNESS = {"transition_rate": "dry_friction", "joint_transition_rate": "joint_dry_friction"}
"""Parameters that smooth the sign of dry friction, and those of its strength."""


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
    return _change(halve_time_step(objective.scene), objective, theta, residuals, jacobian, spread)


def change_by_sharper_friction(
    objective: SceneObjective[Any], theta: Array, residuals: Array, jacobian: Array, spread: Array
) -> Array | None:
    """Estimate the change of theta [p] if dry friction changed its sign at once; None where this is no question.

    That is without dry friction, and where the scene states the rate within which the sign changes, or seeks it: it is
    a property of the joint then. The change is twice that by half the rate, as the error is of first order in it. The
    arguments are those of `change_by_half_step`.
    """
    parts = objective.scene.parts
    names = {name for part in parts for name in SHARPNESS if _has_friction(part.params, name)}
    known = {unknown.parameter for unknown in objective.scene.config.unknowns.values()} & names
    if not names or known or not any(_takes_default(section) for part in parts for section in _sections(part.config)):
        return None
    return 2 * _change(_sharpen(objective.scene, names), objective, theta, residuals, jacobian, spread)


def _has_friction(params: Any, name: str) -> bool:
    friction = getattr(params, SHARPNESS[name], None)
    return friction is not None and bool(friction.data.any())


def _sections(config: Any) -> Iterator[Any]:
    for value in dict(config).values():
        yield from value if isinstance(value, list) else [value]


def _takes_default(section: Any) -> bool:
    """True for a section of joints with dry friction, or with an unknown one, that does not state the rate."""
    return getattr(section, "transition_rate", 0) is None and getattr(section, "dry_friction", 0) != 0


def _sharpen(setup: Any, names: set[str]) -> Any:
    if setup.experiments:
        parts = tuple([_sharpen(part, names) for part in setup.experiments])
        return replace(parts[0], config=setup.config, observations=None, experiments=parts, name="")
    sharper = {name: tensor(0.5 * getattr(setup.params, name).data) for name in names}
    return replace(setup, params=setup.params.replace(**sharper))


def _change(
    other: Any, objective: SceneObjective[Any], theta: Array, residuals: Array, jacobian: Array, spread: Array
) -> Array:
    """The Gauss-Newton step to the optimum of the other scene; NaN if its motion is not finite."""
    scene: Setup = objective.scene
    seen = slice(sum([part.observations.values.size for part in scene.parts if part.observations is not None]))
    try:
        found = SceneObjective(other, objective.unknowns).residuals(theta)
    except optimize.FailedTrial:
        return np.full(theta.size, np.nan)
    return np.asarray(-spread @ (jacobian[seen].T @ (found[seen] - residuals[seen])))
