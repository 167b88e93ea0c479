"""Residuals and loss of a trajectory: misfits to the measurement, and terms about the motion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from simphys.autograd import Tensor, ops
from simphys.autograd.errors import InputError
from simphys.files.field_file import read_field
from simphys.optimize import RobustLoss
from simphys.rollout import Trajectory
from simphys.rollout.trajectory import Running

from . import density, losses, sampling, sensors, terms
from .lowpass import Lowpass, as_cutoff, gaussian
from .memory_noise import Memory, Whiten, make_memories
from .observe import UNKNOWN
from .observe_field import FieldObservations
from .setup import Setup
from .several import split_batch
from .shown import show

Array = np.ndarray[Any, Any]


def kept_steps(setup: Setup) -> Any:
    """Return the steps whose states predictions need; "final" if they need none."""
    seen = setup.observations
    if seen is None:
        return "final"
    of_field = isinstance(seen, FieldObservations)
    if sensors.is_delayed(setup.config):
        return np.arange(setup.steps + 1)
    around = sampling.steps_of_field if of_field else sampling.steps_around
    needed = around(seen.times, dt=setup.dt, steps=setup.steps)
    return needed if len(needed) else "final"


def seen_fields(setup: Setup) -> set[str] | None:
    """Return the fields that predictions need; None for all."""
    seen = setup.observations
    if seen is None:
        return None
    return (
        {seen.field}
        if isinstance(seen, FieldObservations)
        else {need.field for channel in seen.channels for need in channel.needs}
    )


def predict_channels(
    setup: Setup, fields: Sequence[Tensor], components: Sequence[sampling.Component], kept: Array | None
) -> Tensor:
    """Predict the channels [N, C] from fields along time at the steps `kept`, all by default.

    components: the number of a field, and an index in it, of each component that the channels need, in their order.
    """
    seen, sensor = setup.observations, setup.sensor
    assert seen is not None and not isinstance(seen, FieldObservations) and sensor is not None
    if sensors.is_delayed(setup.config):
        if kept is not None and len(kept) != setup.steps + 1:
            raise InputError(
                "trajectory", "must hold all states for delayed channels", f"{len(kept)} states", "Keep all steps."
            )
        raw = sensors.sample_delayed(seen, components, sensor.channel_delay, setup.dt, fields)
    else:
        plan = sampling.plan(seen.times, components, dt=setup.dt, steps=setup.steps, kept=kept)
        raw = sampling.Sample.apply(plan, *fields)
    return raw if sensors.is_plain(setup.config) else show(setup, raw)


def field_plan(setup: Setup, axis: int, kept: Array | None = None) -> sampling.FieldPlan:
    """Plan how a measured field samples a motion that holds these steps; time is the axis `axis`."""
    assert setup.observations is not None
    return sampling.field_plan(setup.observations.times, axis, dt=setup.dt, steps=setup.steps, kept=kept)


def require_measured_members(setup: Setup) -> None:
    """Raise InputError for a set-up of members with the measurement of one: channels and fields lack their axis."""
    seen, members = setup.observations, setup.members
    if seen is None or members is None:
        return
    if isinstance(seen, FieldObservations):
        fits = seen.axis == 1
    else:
        shapes = setup.moving_shapes()
        fits = all(len(index) == len(shapes[field]) for field, index in sensors.list_components(seen))
    if not fits:
        remedy = "Take one member; scene.losses(scene.rollout(params=BATCH)) of that scene compares a batch."
        found = f"a batch of {members} members"
        raise InputError(f"observations of {seen.file}", "a measurement of one motion needs one member", found, remedy)


def require_one_motion(setup: Setup, trajectory: Trajectory) -> None:
    """Raise InputError for the trajectory of a batch, whose members each have a loss of their own."""
    name, shape = next(iter(setup.moving_shapes().items()))
    last = getattr(trajectory.final, name)
    if last.ndim > len(shape):
        remedy = "Use scene.losses(trajectory), the loss of each member, or the trajectory of one member."
        raise InputError("trajectory", "is that of one motion", f"a batch of {len(last)} members", remedy)


def predict(setup: Setup, trajectory: Trajectory) -> Tensor:
    """Predict the measurement at its times: channels as [N, C], a field in the shape of its `values`.

    Errors: InputError for the trajectory of a batch, and for a set-up of members with the measurement of one.
    """
    seen = setup.observations
    if setup.experiments:
        remedy = "Call predict of each of scene.experiments with its trajectory."
        raise InputError("Scene.predict", "needs one experiment", f"{len(setup.experiments)} experiments", remedy)
    if seen is None:
        raise InputError("Scene.predict", "the setup needs observations", "none", "Add the section [observations].")
    require_measured_members(setup)
    require_one_motion(setup, trajectory)
    if isinstance(seen, FieldObservations):
        plan = field_plan(setup, seen.axis, trajectory.steps)
        return sampling.SampleField.apply(plan, getattr(trajectory.states, seen.field))
    along_time = [_rows_first(setup, field) for field in trajectory.states.tensors()]
    names = setup.state.names()
    components = [(names.index(field), index) for field, index in sensors.list_components(seen)]
    return predict_channels(setup, along_time, components, trajectory.steps)


def memories_of(seen: Any) -> list[Memory | None] | None:
    """Find the neighbours of samples whose noise has a memory; None if no channel has one."""
    if isinstance(seen, FieldObservations) or not any(channel.correlation_time for channel in seen.channels):
        return None
    return make_memories(seen.times, seen.weights, [channel.correlation_time for channel in seen.channels])


def robust_loss(chosen: Any) -> RobustLoss | None:
    """Return the loss of misfits that outliers do not rule; None for squares."""
    if chosen.kind == "squares":
        return None
    return RobustLoss(chosen.kind, chosen.freedom if chosen.kind == "student_t" else chosen.delta)


def sigma_is_stated(setup: Setup) -> bool:
    """Return True if the scene states the noise of all that is measured."""
    sections = [part.config.observations for part in setup.parts]
    return all(
        section is not None
        and (
            section.sigma is not None
            if section.field is not None
            else all(channel.sigma not in (None, UNKNOWN) for channel in section.channels or [])
        )
        for section in sections
    )


def residuals_at_end(setup: Setup, trajectory: Trajectory) -> list[Tensor]:
    """Compute the residuals of observations and of terms about the end."""
    made = []
    chosen, seen = setup.config.loss, setup.observations
    if seen is not None:
        misfit = losses.misfit(predict(setup, trajectory), seen.values, seen.weights)
        if setup.lowpass is not None and isinstance(seen, FieldObservations):
            kernel = gaussian(setup.lowpass, seen.sampling_interval(), len(seen.times))
            misfit = Lowpass.apply(misfit, seen.axis, kernel)
        if (memories := memories_of(seen)) is not None:
            misfit = Whiten.apply(memories, misfit)
        robust = robust_loss(chosen)
        made.append(misfit if robust is None else losses.robust(misfit, robust))
    for place, term in enumerate(chosen.terms):
        if not setup.partial and term.kind in terms.AT_END:
            made.append(term_at_end(setup, trajectory, place))
    return made


def term_at_end(setup: Setup, trajectory: Trajectory, place: int) -> Tensor:
    """Compute the residuals of one term about the end, by its number."""
    term = setup.config.loss.terms[place]
    if term.kind == "final_density":
        return _density(setup, trajectory.final, place, term)
    form = losses.square_of_mean if term.kind == "final_mean" else losses.mean_square
    return form(*_seen(setup, trajectory.final, place, term), term.weight)


def part_of_final(setup: Setup, trajectory: Trajectory, term: Any) -> Array:
    """Return the part of the last state that a term looks at, [nodes, components]."""
    return np.asarray(_part(setup, term).of(getattr(trajectory.final, term.field)).data)


def residuals(setup: Setup, trajectory: Trajectory) -> list[Tensor]:
    """Compute the whitened residuals of observations and loss terms; the loss is half the sum of their squares.

    Those of the measurements of all experiments come first.
    Errors: InputError for sums along time if the trajectory was computed within a memory limit and holds only their
    value.
    """
    if setup.experiments:
        found = [(part, residuals(part, own)) for part, own in _pairs(setup, trajectory)]
        seen = [each[0] for part, each in found if part.observations is not None]
        return [*seen, *[term for part, each in found for term in each[part.observations is not None :]]]
    _require_motion(setup, trajectory)
    sums = terms_of(setup, "running_sum")
    if sums and trajectory.running is not None:
        raise InputError(
            "loss",
            "residuals of sums along time need every state",
            f"runtime.memory = {setup.config.runtime.memory!r}",
            'Use optimizer.method = "lbfgs" on the full horizon, or runtime.memory = "all".',
        )
    running = [running_residuals(setup, trajectory.states, term, slice(1, None)) for term in sums]
    return [*residuals_at_end(setup, trajectory), *running]


def loss(setup: Setup, trajectory: Trajectory) -> Tensor:
    """Compute the loss, a scalar, without the terms about the unknowns themselves."""
    if setup.experiments:
        return losses_of_members(setup, trajectory).sum()
    if trajectory.running is None:
        found = residuals(setup, trajectory)
        if not found:
            raise nothing_to_minimize()
        return losses.total(found)
    _require_motion(setup, trajectory)
    found = residuals_at_end(setup, trajectory)
    return losses.total(found) + trajectory.running if found else trajectory.running


def losses_of_members(setup: Setup, trajectory: Any) -> Tensor:
    """Compute the loss of each experiment, or of each member of a batch that is compared with one measurement, [B]."""
    return ops.stack([loss(part, own) for part, own in _pairs(setup, trajectory)])


def _pairs(setup: Setup, trajectory: Any) -> list[tuple[Setup, Any]]:
    """Pair each experiment with its trajectory, or a set-up with each member of a batch. Errors: InputError."""
    if setup.experiments:
        if isinstance(trajectory, Trajectory) or len(trajectory) != len(setup.experiments):
            count = 1 if isinstance(trajectory, Trajectory) else len(trajectory)
            constraint = f"needs a trajectory of each of the {len(setup.experiments)} experiments"
            raise InputError("Scene.losses", constraint, f"{count} of them", "Pass what scene.rollout() returns.")
        return list(zip(setup.experiments, trajectory, strict=True))
    name, shape = next(iter(setup.moving_shapes().items()))
    if getattr(trajectory.final, name).ndim == len(shape):
        return [(setup, trajectory)]
    count = len(getattr(trajectory.final, name).data)
    return list(zip([setup] * count, split_batch(trajectory, [setup] * count), strict=True))


def _require_motion(setup: Setup, trajectory: Trajectory) -> None:
    """Raise InputError if terms about the end, or sums along time, would belong to another horizon, or to a batch."""
    require_one_motion(setup, trajectory)
    kinds = {"running_sum"} if setup.partial else {"running_sum", *terms.AT_END}
    if trajectory.horizon != setup.steps and any(term.kind in kinds for term in setup.config.loss.terms):
        raise InputError(
            "loss",
            f"its terms about the motion need the scene's horizon of {setup.steps} steps",
            f"a trajectory of {trajectory.horizon} steps",
            "Simulate the whole horizon, or load the scene with another time.steps.",
        )


def running_loss(setup: Setup) -> Running | None:
    """Return the terms that are sums along time as one function of states along time; None without such terms."""
    sums = terms_of(setup, "running_sum")
    if not sums:
        return None
    return lambda states, steps: losses.total([running_residuals(setup, states, term, slice(None)) for term in sums])


def nothing_to_minimize() -> InputError:
    """Make the error for a scene without observations and loss terms."""
    remedy = "Add [observations], or [[loss.terms]] about the motion."
    return InputError("loss", "a loss needs observations or terms", "neither", remedy)


def require_filters(seen: Any, frequencies: Sequence[float]) -> None:
    """Raise InputError where misfits to this measurement cannot be low-pass filtered; 0 and inf are no filter."""
    for cutoff in filter(None, map(as_cutoff, frequencies)):
        gaussian(cutoff, seen.sampling_interval(), len(seen.times))


def running_residuals(setup: Setup, states: Any, term: Any, rows: slice) -> Tensor:
    """Compute the residuals of a sum along time, over some rows of states along time."""
    place = next(i for i, each in enumerate(setup.config.loss.terms) if each is term)
    moved = states.replace(**{term.field: _rows_first(setup, getattr(states, term.field))})
    seen, target = _seen(setup, moved, place, term)
    return losses.running_sum(seen[rows], target, term.weight, setup.dt)


def terms_of(setup: Setup, kind: str) -> list[Any]:
    """Return the loss terms of a kind."""
    return [term for term in setup.config.loss.terms if term.kind == kind]


def targets(setup: Setup) -> dict[int, Array]:
    """Read the targets that come from files, by the index of their term. Errors: InputError."""
    made = {}
    for place, term in enumerate(setup.config.loss.terms):
        if term.kind == "final_density":
            made[place] = density.read(term.file, tuple(term.cells))
        elif isinstance(getattr(term, "target", None), str):
            seen = _part(setup, term).seen
            shapes = [seen] if setup.members is None else [seen, seen[1:]]
            made[place] = read_field(term.target, shapes, greys=term.target_range or (0.0, 1.0))
    return made


def _rows_first(setup: Setup, field: Tensor) -> Tensor:
    """A field along time [rows, ...], with members behind the rows."""
    if setup.members is None:
        return field
    return ops.transpose(field, (1, 0, *range(2, field.ndim)))


def _part(setup: Setup, term: Any) -> terms.Part:
    """Return the part of the state that a term compares; the first axis is that of members if there are several."""
    bodies = setup.bodies if setup.members is None else None
    return terms.part(term, setup.moving_shapes()[term.field], bodies)


def _seen(setup: Setup, states: Any, place: int, term: Any) -> tuple[Tensor, Tensor | Array]:
    """The part of a state, or of states along time, that a loss term looks at, and its target."""
    part = _part(setup, term)
    seen = part.of(getattr(states, term.field))
    if term.kind == "final_state" and term.target is None:
        # The start may be unknown itself: the gradient flows through it on this way, too.
        start = ops.broadcast_to(getattr(setup.state, term.field), part.shape)
        return seen, part.of(start) + part.target(term.target_offset)
    if term.kind == "final_mean":
        return seen, np.asarray(term.target, float)
    return seen, part.target(setup.targets.get(place, term.target))


def _density(setup: Setup, state: Any, place: int, term: Any) -> Tensor:
    """Residuals of a term about the density, one for each cell."""
    cells = density.Cells(tuple(term.cells), term.spacing, tuple(term.origin or [0.0] * len(term.cells)))
    found = density.Density.apply(cells, state.position, setup.params.mass)
    return losses.mean_square(ops.reshape(found, (-1, 1)), setup.targets[place].reshape(-1, 1), term.weight)
