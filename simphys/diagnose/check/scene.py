"""Certificate of a scene, for its own loss, always in f64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from simphys import scenefile as scene_files
from simphys.autograd import Tensor, runtime, tensor
from simphys.experiment.members import stack_members, take_members
from simphys.experiment.scene import Scene, build_scene
from simphys.experiment.terms import AT_END
from simphys.rollout import Trajectory

from ..faults import blow_ups_as_input_errors
from . import check
from .case import Loss
from .certificate import Certificate
from .modes import OnStatement, ignore_statement

EXACT = "runtime.precision=f64"


def check_file(
    path: str | Path, overrides: Sequence[str] = (), *, seed: int = 0, on_statement: OnStatement = ignore_statement
) -> Certificate:
    """Check a scene file with the overrides in its section [check]; `overrides` take precedence over these.

    Errors: ConfigError, InputError.
    """
    smaller = scene_files.load(path, overrides).check.overrides
    exact = [EXACT]
    if scene_files.load(path, overrides).runtime.arch in ("vulkan", "metal"):  # these have no f64
        exact.append("runtime.arch=cpu")
    config = scene_files.load(path, [*smaller, *overrides, *exact])
    with runtime.keep_settings():
        found = check_scene(build_scene(config), seed=seed, on_statement=on_statement)
    return replace(found, smaller=tuple(smaller))


def check_scene(scene: Scene, *, seed: int = 0, on_statement: OnStatement = ignore_statement) -> Certificate:
    """Check this scene with its loss or, if it has none, with a random combination of its states.

    A batch of experiments is checked as one motion with the loss of all of them, or of the first ones if the section
    [check] limits their number. A scene in f32 is built again in f64, with the values that it has; the settings before
    come back in force. Errors: InputError for a motion that blows up.
    """
    with runtime.keep_settings():
        if scene.config.runtime.precision != "f64":
            scene = _in_f64(scene)
        scene.start_runtime()
        return _check_scene(scene, seed, on_statement)


def _check_scene(scene: Scene, seed: int, on_statement: OnStatement) -> Certificate:
    scene = stack_members(take_members(scene, scene.config.check.members))
    with blow_ups_as_input_errors("check"):
        return check(
            scene.model,
            scene.params,
            scene.state,
            steps=scene.steps,
            control=scene.control(),
            loss=_loss(scene),
            seed=seed,
            on_statement=on_statement,
        )


def _loss(scene: Scene) -> Loss | None:
    terms = {term.kind for term in scene.config.loss.terms} - {"regularization"}
    if scene.partial:
        terms -= AT_END
    if scene.observations is None and not terms:
        return None

    def loss(trajectory: Trajectory) -> Tensor:
        # Targets may be relative to the start: use that of this trajectory, so that its gradient includes them.
        start = scene.state.replace(**{n: getattr(trajectory.states, n)[0] for n in scene.state.names()})
        return replace(scene, state=start).loss(trajectory)

    return loss


def _in_f64(scene: Scene) -> Scene:
    """Build a scene again in f64, with its present values, horizon and measurement."""
    tables = scene_files.to_dict(scene.config)
    chosen = tables.setdefault("runtime", {})
    chosen["precision"] = "f64"
    if chosen.get("arch") in ("vulkan", "metal"):
        chosen["arch"] = "cpu"
    exact = build_scene(scene_files.from_dict(tables))
    changed: dict[str, Any] = {}
    for part in ("params", "state", "controls"):
        if getattr(exact, part) is not None:
            values = {name: tensor(array) for name, array in getattr(scene, part).arrays().items()}
            changed[part] = getattr(exact, part).replace(**values)
    return replace(exact, **changed, steps=scene.steps, partial=scene.partial, observations=scene.observations)
