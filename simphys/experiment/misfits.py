"""From a scene's trajectory to residuals: of its measurement, and of the terms of its loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simphys.autograd import Tensor, ops
from simphys.autograd.errors import InputError
from simphys.files.field_file import read_field
from simphys.rollout import Trajectory

from . import density, losses, sampling, terms
from .lowpass import Lowpass, as_cutoff, gaussian
from .observe_field import FieldObservations

if TYPE_CHECKING:
    from .scene import Scene

Array = np.ndarray[Any, Any]


def kept_steps(scene: Scene) -> Any:
    """The steps whose states predictions need; "final" where they need none."""
    seen = scene.observations
    if seen is None:
        return "final"
    of_field = isinstance(seen, FieldObservations)
    around = sampling.steps_of_field if of_field else sampling.steps_around
    needed = around(seen.times, dt=scene.dt, steps=scene.steps)
    return needed if len(needed) else "final"


def seen_fields(scene: Scene) -> set[str] | None:
    """The fields of the kept states that predictions need; None for all."""
    seen = scene.observations
    if seen is None:
        return None
    return {seen.field} if isinstance(seen, FieldObservations) else {channel.field for channel in seen.channels}


def channel_plan(scene: Scene, kept: Array | None = None) -> sampling.SamplePlan:
    """How channels see a motion of which these steps are kept; fields go by their place in the state."""
    seen = scene.observations
    assert seen is not None and not isinstance(seen, FieldObservations)
    names = scene.state.names()
    components = [(names.index(channel.field), channel.component) for channel in seen.channels]
    return sampling.plan(seen.times, components, dt=scene.dt, steps=scene.steps, kept=kept)


def field_plan(scene: Scene, axis: int, kept: Array | None = None) -> sampling.FieldPlan:
    """How a measured field is seen in a motion of which these steps are kept, time being the axis `axis`."""
    assert scene.observations is not None
    return sampling.field_plan(scene.observations.times, axis, dt=scene.dt, steps=scene.steps, kept=kept)


def predicted(scene: Scene, trajectory: Trajectory) -> Tensor:
    """What the measurement would have seen at its times: of channels [N, C], of a field what `values` are."""
    seen = scene.observations
    if seen is None:
        raise InputError("Scene.predict", "the scene needs observations", "none", "Add the section [observations].")
    if isinstance(seen, FieldObservations):
        plan = field_plan(scene, seen.axis, trajectory.steps)
        return sampling.SampleField.apply(plan, getattr(trajectory.states, seen.field))
    along_time = [_rows_first(scene, field) for field in trajectory.states.tensors()]
    return sampling.Sample.apply(channel_plan(scene, trajectory.steps), *along_time)


def of_observations_and_end(scene: Scene, trajectory: Trajectory) -> list[Tensor]:
    """The residuals that need no sums along time."""
    made = []
    chosen, seen = scene.config.loss, scene.observations
    if seen is not None:
        misfit = losses.misfit(predicted(scene, trajectory), seen.values, seen.weights)
        if scene.lowpass is not None and isinstance(seen, FieldObservations):
            kernel = gaussian(scene.lowpass, seen.sampling_interval(), len(seen.times))
            misfit = Lowpass.apply(misfit, seen.axis, kernel)
        made.append(losses.huber(misfit, chosen.delta) if chosen.kind == "huber" else misfit)
    for place, term in enumerate(chosen.terms):
        if scene.partial or term.kind not in terms.AT_END:
            continue
        if term.kind == "final_density":
            made.append(_density(scene, trajectory.final, place, term))
            continue
        form = losses.square_of_mean if term.kind == "final_mean" else losses.mean_square
        made.append(form(*_seen(scene, trajectory.final, place, term), term.weight))
    return made


def require_filters(seen: Any, frequencies: Sequence[float]) -> None:
    """Raise InputError where misfits to this measurement cannot be low-pass filtered; 0 and inf are no filter."""
    for cutoff in filter(None, map(as_cutoff, frequencies)):
        gaussian(cutoff, seen.sampling_interval(), len(seen.times))


def along(scene: Scene, states: Any, term: Any, rows: slice) -> Tensor:
    """The residuals of a sum along time over some rows of states along time."""
    place = next(i for i, each in enumerate(scene.config.loss.terms) if each is term)
    moved = states.replace(**{term.field: _rows_first(scene, getattr(states, term.field))})
    seen, target = _seen(scene, moved, place, term)
    return losses.running_sum(seen[rows], target, term.weight, scene.dt)


def terms_of(scene: Scene, kind: str) -> list[Any]:
    """The terms of a kind."""
    return [term for term in scene.config.loss.terms if term.kind == kind]


def targets(scene: Scene) -> dict[int, Array]:
    """The targets that come from files, by the place of their term. Errors: InputError."""
    made = {}
    for place, term in enumerate(scene.config.loss.terms):
        if term.kind == "final_density":
            made[place] = density.read(term.file, tuple(term.cells))
        elif isinstance(getattr(term, "target", None), str):
            seen = _part(scene, term).seen
            shapes = [seen] if scene.members is None else [seen, seen[1:]]
            made[place] = read_field(term.target, shapes, greys=term.target_range or (0.0, 1.0))
    return made


def _rows_first(scene: Scene, field: Tensor) -> Tensor:
    """A field along time [rows, ...], with members behind the rows."""
    if scene.members is None:
        return field
    return ops.transpose(field, (1, 0, *range(2, field.ndim)))


def _part(scene: Scene, term: Any) -> terms.Part:
    """What a term looks at: of several members nodes are numbers, the first axis is that of members."""
    bodies = scene.bodies if scene.members is None else None
    return terms.part(term, scene.moving_shapes()[term.field], bodies)


def _seen(scene: Scene, states: Any, place: int, term: Any) -> tuple[Tensor, Tensor | Array]:
    """The part of a state, or of states along time, that a loss term looks at, and its target."""
    part = _part(scene, term)
    seen = part.of(getattr(states, term.field))
    if term.kind == "final_state" and term.target is None:
        # The start may be unknown itself: the gradient flows through it on this way, too.
        start = ops.broadcast_to(getattr(scene.state, term.field), part.shape)
        return seen, part.of(start) + part.target(term.target_offset)
    if term.kind == "final_mean":
        return seen, np.asarray(term.target, float)
    return seen, part.target(scene.targets.get(place, term.target))


def _density(scene: Scene, state: Any, place: int, term: Any) -> Tensor:
    """Residuals of a term about the density, one for each cell."""
    cells = density.Cells(tuple(term.cells), term.spacing, tuple(term.origin or [0.0] * len(term.cells)))
    found = density.Density.apply(cells, state.position, scene.params.mass)
    return losses.mean_square(ops.reshape(found, (-1, 1)), scene.targets[place].reshape(-1, 1), term.weight)
