"""Measurement of a gradient's health: one rollout with its adjoint, and a random tangent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from simphys.autograd import MissingJvp, Tensor, enable_grad, grad, linearize, no_grad
from simphys.autograd.errors import InputError
from simphys.experiment.members import control_of, stack_members
from simphys.rollout import BlowUp, Trajectory, rollout
from simphys.simulator import Array, Arrays, Model

from ..faults import Fault, backward_fault, forward_fault, loss_fault
from .growth import combine_norms, fit_rate, log_norms, typical_sizes
from .report import Health
from .sensitivity import sensitivities

if TYPE_CHECKING:
    from simphys.experiment.scene import Scene

Loss = Callable[[Trajectory], Tensor]


def health(
    model: Model,
    params: Any,
    state: Any,
    *,
    steps: int,
    loss: Loss | None = None,
    control: Tensor | None = None,
    seed: int = 0,
) -> Health:
    """Differentiate `loss` of a rollout's trajectory, and report the growth of its adjoint and of a random tangent.

    By default the loss is a random weighting of the last state, drawn from `seed`, so that the result depends on the
    motion alone. A motion that blows up is a `fault`; the rest of the report is then about its sound part, with the
    default loss.
    Errors: InputError for inputs that do not fit, for a batch, and for a loss that does not depend on the trajectory.
    """
    _require_single(model, params, state)
    params, state = _leaves(params), _leaves(state)
    control = None if control is None else control.detach().requires_grad_()
    eps, random = float(np.finfo(state.tensors()[0].dtype).eps), np.random.default_rng(seed)
    moving = _find_moving(model, params, state, control, random)
    with np.errstate(all="ignore"):
        trajectory, control, fault = _simulate(model, params, state, control, steps)
        if trajectory is None:
            return _report_without_steps(model.dt, eps, moving, fault)
        for name, along in trajectory.states.arrays().items():
            moving[name] |= (along[2:] != along[1:2]).any(axis=0)  # include velocities that only an impact changes
        log_tangent = _compute_log_tangent(trajectory, state, moving, random)
        chosen = loss if loss is not None and fault is None else _make_random_weighting(trajectory, random)
        value = chosen(trajectory)
        starts, constants = _tensors_by_name(state), _tensors_by_name(params, control)
        gradients, entered = _differentiate(value, trajectory, {**starts, **constants})
        adjoint = {name: getattr(trajectory.adjoint, name) for name in state.names()}
        if not all(np.isfinite(each).all() for each in (value.data, *entered.values())):
            fault = fault or loss_fault(chosen, trajectory, value.item())
        elif fault is None:
            fault = backward_fault(model, params, trajectory, adjoint, control, gradients)
    level, log_growth = _compute_log_growth(adjoint, entered, moving)
    times = np.arange(len(level)) * model.dt
    return Health(
        dt=model.dt,
        steps=len(level) - 1,
        eps=eps,
        loss=value.item(),
        adjoint=adjoint,
        moving=moving,
        log_growth=log_growth,
        rate=fit_rate(times, level[::-1]),
        log_tangent_growth=log_tangent,
        tangent_rate=None if log_tangent is None else fit_rate(times, log_tangent),
        sensitivities=sensitivities(trajectory, starts, constants, gradients, value.item()),
        fault=fault,
        events=model.events(params.arrays(), trajectory.states.arrays(), None if control is None else control.data),
    )


def scene_health(scene: Scene) -> Health:
    """Report the health of a scene's loss over its horizon; without a loss, of a random weighting of its last state.

    A batch of members counts as one motion, whose fields have a batch axis in front. Errors: InputError for several
    experiments.
    """
    if scene.experiments:
        remedy = "Call it with each of scene.experiments."
        raise InputError("scene_health", "needs one experiment", f"{len(scene.experiments)} experiments", remedy)
    scene.start_runtime()
    scene = stack_members(scene)

    def loss(trajectory: Trajectory) -> Tensor:
        # Terms may refer to the start: use that of this trajectory.
        start = {name: getattr(trajectory, name)[0] for name in scene.state.names()}
        return replace(scene, state=scene.state.replace(**start)).loss(trajectory)

    of_motion = [term for term in scene.config.loss.terms if term.kind != "regularization"]
    chosen = loss if scene.observations is not None or of_motion else None
    found = health(scene.model, scene.params, scene.state, steps=scene.steps, control=control_of(scene), loss=chosen)
    return replace(found, units=scene.units)


def _simulate(
    model: Model, params: Any, state: Any, control: Tensor | None, steps: int
) -> tuple[Trajectory | None, Tensor | None, Fault | None]:
    """Simulate a motion, or its sound part if it blows up, with the control of that part; and say why it does.

    There is no trajectory if the first step blows up.
    """
    limit = float(np.finfo(state.tensors()[0].dtype).max)
    try:
        whole = rollout(model, params, state, steps=steps, control=control, keep_adjoint=True, limit=limit)
        return whole, control, None
    except BlowUp as error:
        fault = forward_fault(model, params, state, control, error, limit=limit)
        sound = error.step - 1
    if sound < 1:
        return None, control, fault
    control = None if control is None else control.detach()[:sound].detach().requires_grad_()
    part = rollout(model, params, state, steps=sound, control=control, keep_adjoint=True, limit=limit)
    return part, control, fault


def _compute_log_growth(adjoint: Arrays, entered: Arrays, moving: Arrays) -> tuple[Array, Array]:
    """Compute log of the adjoint's norm, and of its growth since it entered the motion, both [steps + 1]."""
    logs = {name: log_norms(values[:, moving[name]]) for name, values in adjoint.items()}
    typical = typical_sizes(logs)
    level = combine_norms(logs, typical)
    seeds = combine_norms({name: log_norms(values[:, moving[name]]) for name, values in entered.items()}, typical)
    with np.errstate(invalid="ignore"):
        return level, level - np.fmax.accumulate(seeds[::-1])[::-1]


def _leaves(record: Any) -> Any:
    return record.replace(**{name: getattr(record, name).detach().requires_grad_() for name in record.names()})


def _tensors_by_name(record: Any, control: Tensor | None = None) -> dict[str, Tensor]:
    named = dict(zip(record.names(), record.tensors(), strict=True))
    return named if control is None else {**named, "control": control}


def _report_without_steps(dt: float, eps: float, moving: Arrays, fault: Fault | None) -> Health:
    """Make the report on a motion whose very first step is not finite."""
    return Health(
        dt=dt,
        steps=0,
        eps=eps,
        loss=np.nan,
        adjoint={},
        moving=moving,
        log_growth=np.full(1, np.nan),
        rate=None,
        log_tangent_growth=None,
        tangent_rate=None,
        sensitivities=(),
        fault=fault,
    )


def _require_single(model: Model, params: Any, state: Any) -> None:
    for record, shapes in ((params, model.param_shapes()), (state, model.state_shapes())):
        for name, shape in shapes.items():
            value = getattr(record, name)
            if value.ndim == len(shape) + 1:
                remedy = "Pass one batch member at a time; each has a health of its own."
                raise InputError(f"health, {name}", "there is no batch axis", list(value.shape), remedy)


def _make_random_weighting(trajectory: Trajectory, random: np.random.Generator) -> Loss:
    weights = {
        n: random.normal(size=value.shape).astype(value.dtype)
        for n, value in _tensors_by_name(trajectory.final).items()
    }

    def loss(trajectory: Trajectory) -> Tensor:
        parts = [(getattr(trajectory.final, name) * weight).sum() for name, weight in weights.items()]
        return sum(parts[1:], parts[0])

    return loss


def _find_moving(model: Model, params: Any, state: Any, control: Tensor | None, random: np.random.Generator) -> Arrays:
    """Mark the components that still change in the second step from a randomly perturbed start."""
    force = None if control is None else control.detach()[0]
    with no_grad(), np.errstate(all="ignore"):
        start = {}
        for name, value in _tensors_by_name(state).items():
            size = np.abs(value.data).max(initial=0) or 1.0
            start[name] = value + (1e-3 * size * random.normal(size=value.shape)).astype(value.dtype)
        first = model.step(params, state.replace(**start), force)
        second = model.step(params, first, force)
    return {name: first.arrays()[name] != values for name, values in second.arrays().items()}


def _compute_log_tangent(
    trajectory: Trajectory, state: Any, moving: Arrays, random: np.random.Generator
) -> Array | None:
    """Compute log of the growth of a random perturbation of the start, [steps + 1]; None if there is no jvp."""
    try:
        push = linearize(trajectory.states.tensors(), state.tensors())
        found = push(*[random.normal(size=each.shape) * each for each in moving.values()])
    except MissingJvp:
        return None
    tangents = zip(moving.items(), found, strict=True)
    logs = {name: log_norms(values[:, there]) for (name, there), values in tangents}
    level = combine_norms(logs, typical_sizes(logs))
    return level - level[0]


def _differentiate(value: Tensor, trajectory: Trajectory, leaves: dict[str, Tensor]) -> tuple[Arrays, Arrays]:
    """Compute gradients by name, and the loss's direct derivatives with respect to each field along time."""
    if not value.requires_grad:
        remedy = "Compute it from the trajectory's states, by operations on Tensors."
        raise InputError("health", "the loss must depend on the trajectory", "one that does not", remedy)
    entered = {name: np.zeros(states.shape) for name, states in _tensors_by_name(trajectory.states).items()}
    handles = []
    for name, along in entered.items():
        for tensor, rows in ((getattr(trajectory.states, name), slice(None)), (getattr(trajectory.final, name), -1)):

            def add(adjoint: Tensor, along: Array = along, rows: Any = rows) -> None:
                along[rows] += adjoint.data

            handles.append(tensor.register_hook(add))
    with enable_grad():
        found = grad(value, list(leaves.values()), allow_unused=True)
    for handle in handles:
        handle.remove()
    gradients = {
        name: np.zeros(leaf.shape) if each is None else each.data
        for (name, leaf), each in zip(leaves.items(), found, strict=True)
    }
    return gradients, entered
