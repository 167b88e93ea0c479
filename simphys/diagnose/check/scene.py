"""Certificate of a scene, for its own loss, always in f64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from simphys import scenefile as scene_files
from simphys.autograd import Tensor, runtime
from simphys.experiment.members import stack_members, take_members
from simphys.experiment.scene import Scene, build_scene
from simphys.experiment.terms import AT_END
from simphys.rollout import Trajectory

from ..faults import blow_ups_as_input_errors
from . import check
from .case import Loss
from .certificate import Certificate
from .modes import OnLine, nothing
from .process import Job, in_f64

EXACT = "runtime.precision=f64"


def check_file(
    path: str | Path, overrides: Sequence[str] = (), *, seed: int = 0, on_line: OnLine = nothing
) -> Certificate:
    """Check a scene file with the overrides in its section [check]; `overrides` take precedence over these.

    Errors: ConfigError, InputError.
    """
    smaller = scene_files.load(path, overrides).check.overrides
    exact = [EXACT]
    if scene_files.load(path, overrides).runtime.arch in ("vulkan", "metal"):  # these have no f64
        exact.append("runtime.arch=cpu")
    config = scene_files.load(path, [*smaller, *overrides, *exact])
    if runtime.initialised() and runtime.settings().precision != "f64":
        found = in_f64(Job(scene_files.to_dict(config), seed))
    else:
        found = check_scene(build_scene(config), seed=seed, on_line=on_line)
    return replace(found, smaller=tuple(smaller))


def check_scene(scene: Scene, *, seed: int = 0, on_line: OnLine = nothing) -> Certificate:
    """Check this scene with its loss or, if it has none, with a random combination of its states.

    A batch of experiments is checked as one motion with the loss of all of them, or of the first ones if the section
    [check] limits their number. In a process with precision f32, the check runs in another process in f64, and
    `on_line` is not called. Errors: InputError for a motion that blows up.
    """
    if runtime.settings().precision != "f64":
        as_it_is = {"steps": scene.steps, "partial": scene.partial, "observations": scene.observations}
        return in_f64(Job(_exact(scene), seed, scene.values(), as_it_is))
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
            on_line=on_line,
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


def _exact(scene: Scene) -> dict[str, Any]:
    """Convert the scene to tables, in f64."""
    tables = scene_files.to_dict(scene.config)
    chosen = tables.setdefault("runtime", {})
    chosen["precision"] = "f64"
    if chosen.get("arch") in ("vulkan", "metal"):
        chosen["arch"] = "cpu"
    return tables
