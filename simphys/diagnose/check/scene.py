"""Certificate of a scene, for its own loss: proven in f64, and compared with what the scene's own settings give."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from simphys import scenefile as scene_files
from simphys.autograd import Tensor, no_grad, runtime, tensor
from simphys.experiment.members import control_of, stack_members, take_members
from simphys.experiment.scene import Scene, build_scene, require_scene
from simphys.experiment.terms import AT_END
from simphys.optimize.mapping import Map
from simphys.rollout import Trajectory

from ..faults import blow_ups_as_input_errors
from . import check, make_case
from .asked import compare_asked
from .beside import check_controls, check_sensor
from .case import Case, Loss
from .certificate import Certificate, Statement, join_certificates
from .modes import OnStatement, ignore_statement


def check_file(
    path: str | Path,
    overrides: Sequence[str] = (),
    *,
    seed: int = 0,
    on_statement: OnStatement = ignore_statement,
    each: Map = map,
) -> Certificate:
    """Check a scene file with the overrides in its section [check]; `overrides` take precedence over these.

    The options are those of `check_scene`.
    Errors: ConfigError, InputError.
    """
    smaller = scene_files.load(path, overrides).check.overrides
    config = scene_files.load(path, [*smaller, *overrides])
    with runtime.keep_settings():
        found = check_scene(build_scene(config), seed=seed, on_statement=on_statement, each=each)
    return replace(found, smaller=tuple(smaller))


def check_scene(
    scene: Scene, *, seed: int = 0, on_statement: OnStatement = ignore_statement, each: Map = map
) -> Certificate:
    """Check this scene with its loss or, if it has none, with a random combination of its states.

    A batch of members is checked as one motion with the loss of all of them, or of the first ones if the section
    [check] limits their number. What enters beside the motion, such as a camera, or gain and delay of a sensor or a
    measured input, is compared with finite differences, too. Several recordings are checked one after another. A scene
    in f32, or for a GPU, is built again for the processor in f64, with the values that it has, and proven so; then its
    gradient in the precision and on the arch that it asks for is compared with that (see asked.py). The settings before
    come back in force. `each` computes the finite differences of the leaves, see `simphys.app.mapping.map_on`.
    Errors: InputError for a motion that blows up.
    """
    require_scene("check", scene)
    if scene.experiments:
        return join_certificates(_check_each(scene.experiments, seed, on_statement, each))
    with runtime.keep_settings():
        chosen = scene.config.runtime
        exact = scene if (chosen.precision, chosen.arch) == ("f64", "cpu") else in_f64(scene)
        exact.start_runtime()
        found = _check_scene(exact, seed, on_statement, each)
        if exact is scene:
            return found
        with blow_ups_as_input_errors("check"):
            statements, finding = compare_asked(
                functools.partial(case_of, exact, seed), functools.partial(case_of, scene, seed), seed=seed
            )
    for statement in statements:
        on_statement(statement)
    findings = (*found.findings, finding)
    return replace(found, statements=(*found.statements, *statements), findings=findings)


def _check_each(
    experiments: Sequence[Scene], seed: int, on_statement: OnStatement, each: Map
) -> dict[str, Certificate]:
    """Check each experiment; statements are passed on with its name."""
    found = {}
    for part in experiments:

        def tell(one: Statement, name: str = part.name) -> None:
            on_statement(replace(one, name=f"{name}: {one.name}"))

        found[part.name] = check_scene(part, seed=seed, on_statement=tell, each=each)
    return found


def _check_scene(scene: Scene, seed: int, on_statement: OnStatement, each: Map) -> Certificate:
    case = _case(scene, seed)
    with blow_ups_as_input_errors("check"):
        found = check(
            case.model,
            case.params,
            case.state,
            steps=case.steps,
            control=case.control,
            loss=case.loss,
            keep=case.keep,
            seed=seed,
            on_statement=on_statement,
            each=each,
        )
    beside = [*check_controls(scene, seed=seed)]
    if isinstance(case.loss, _SceneLoss):
        with no_grad():
            motion = case.trajectory()
        beside += check_sensor(case.loss.scene, motion, seed=seed)
    statements, sizes = list(found.statements), dict(found.sizes)
    for gradient, made in beside:
        sizes[made[0].name] = float(np.linalg.norm(gradient))
        for statement in made:
            statements.append(statement)
            on_statement(statement)
    return replace(found, statements=tuple(statements), sizes=sizes)


def case_of(scene: Scene, seed: int) -> Case:
    """Put the settings of a scene in force, and make its case under them."""
    scene.start_runtime()
    return _case(scene, seed)


def _case(scene: Scene, seed: int) -> Case:
    """The gradient that a scene asks for; without a loss, that of random weights."""
    scene = stack_members(take_members(scene, scene.config.check.members))
    signal = control_of(scene)
    return make_case(scene.model, scene.params, scene.state, scene.steps, signal, _loss(scene), None, seed)


def _loss(scene: Scene) -> Loss | None:
    terms = {term.kind for term in scene.config.loss.terms} - {"regularization"}
    if scene.partial:
        terms -= AT_END
    return None if scene.observations is None and not terms else _SceneLoss(scene)


@dataclass(frozen=True)
class _SceneLoss:
    """The loss of a scene as a function of a trajectory."""

    scene: Scene

    def __call__(self, trajectory: Trajectory) -> Tensor:
        # Targets may be relative to the start: use that of this trajectory, so that its gradient includes them.
        first = {name: getattr(trajectory.states, name)[0] for name in self.scene.state.names()}
        return replace(self.scene, state=self.scene.state.replace(**first)).loss(trajectory)


def in_f64(scene: Scene) -> Scene:
    """Build a scene again for the processor in f64, with its present values, horizon and measurement."""
    scene.start_runtime()
    chosen = scene.config.runtime.model_copy(update={"precision": "f64", "arch": "cpu"})
    exact = build_scene(scene.config.model_copy(update={"runtime": chosen}))
    changed: dict[str, Any] = {}
    for part in ("params", "state", "controls", "sensor"):
        if getattr(exact, part) is not None:
            values = {name: tensor(array) for name, array in getattr(scene, part).arrays().items()}
            changed[part] = getattr(exact, part).replace(**values)
    return replace(exact, **changed, steps=scene.steps, partial=scene.partial, observations=scene.observations)
