"""The change of the identified values by half the time step, and by friction of a sharper sign, from a simulation each.

Around the optimum the values that fit the other motion best differ by a Gauss-Newton step,

    dtheta = -J^+ (r_other - r)

with the residuals of both motions at the same theta. It is a linear estimate: where it is large, its size says only
that the time step matters, or the rate within which dry friction changes its sign.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    sought = {unknown.parameter for unknown in objective.scene.config.unknowns.values()}
    smooth = [_find_smooth(part, sought) for part in objective.scene_at(theta).parts]
    if not any(smooth):
        return None
    return 2 * _change(_sharpen(objective.scene, smooth), objective, theta, residuals, jacobian, spread)


def _find_smooth(part: Any, sought: set[str]) -> dict[str, Array]:
    """Find the joints whose friction has a rate by default: for each parameter of rates, True where it is so."""
    found: dict[str, Array] = {}
    for name, strength in SHARPNESS.items():
        friction = getattr(part.params, strength, None)
        if friction is not None and friction.data.any() and name not in sought:
            taken = (friction.data != 0) & _is_unstated(part.config, friction.shape)
            if taken.any():
                found[name] = taken
    return found


def _is_unstated(config: Any, shape: tuple[int, ...]) -> Array:
    """True for joints whose section does not state the rate; one section may be that of all joints."""
    for value in dict(config).values():
        sections = value if isinstance(value, list) else [value]
        if sections and hasattr(sections[0], "transition_rate"):
            return np.broadcast_to([each.transition_rate is None for each in sections], shape)
    return np.zeros(shape, bool)


def _sharpen(setup: Any, smooth: Sequence[dict[str, Array]]) -> Any:
    """Return the same set-up with half the rates of some joints, for each experiment."""
    if setup.experiments:
        parts = tuple([_sharpen(part, [own]) for part, own in zip(setup.experiments, smooth, strict=True)])
        return replace(parts[0], config=setup.config, observations=None, experiments=parts, name="")
    rates = {name: tensor(np.where(at, 0.5, 1.0) * getattr(setup.params, name).data) for name, at in smooth[0].items()}
    return replace(setup, params=setup.params.replace(**rates))


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
