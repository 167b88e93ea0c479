"""Health of a gradient over a horizon: growth or decay of the adjoint backward in time, and the usable horizon.

With A_t the derivative of state t + 1 with respect to state t, adjoints propagate backward as
adj_t = A_t^T adj_{t+1} + dL/d(state t), and tangents forward by A_t. So both grow at the same rates. For a damped
oscillator x'' = -c x' - k x the rate is -c/2 (for the adjoint, per second counted backward from the end). For a chaotic
system it is the largest Lyapunov exponent.

The rounding of a state, relative to it eps, is a perturbation like any other. If perturbations grow by 1/eps up to the
end, each rounding leads to a different end. The gradient of that motion is noise, although every digit is computed
correctly. Going backward from the end, this begins at the step where the adjoint is 1/eps times as large as the largest
derivative of the loss that has entered so far.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from simphys.autograd import MissingJvp, Tensor, enable_grad, grad, linearize, no_grad
from simphys.autograd.errors import InputError
from simphys.experiment.members import stack_members
from simphys.rollout import BlowUp, Trajectory, rollout
from simphys.simulator import Array, Arrays, Model
from simphys.simulator.events import Event

from .faults import Fault, backward_fault, forward_fault, loss_fault
from .growth import Rate, balance, combine, fit_rate, log_norms
from .sensitivity import Sensitivity, sensitivities

if TYPE_CHECKING:
    from simphys.experiment.scene import Scene

Loss = Callable[[Trajectory], Tensor]


@dataclass(frozen=True)
class Health:
    """Report on a gradient. The rows of arrays are the steps from the start to the end."""

    dt: float
    """Time step [s]."""
    steps: int
    """Number of steps of the horizon; up to the last sound state if the motion blows up."""
    eps: float
    """Relative rounding of the precision of the computation."""
    loss: float
    adjoint: Arrays
    """Derivative of the loss with respect to each field of the state, [steps + 1, *shape]."""
    moving: Arrays
    """Mask of the components of each field that change at all, [*shape]. Those of pinned nodes do not: like parameters,
    they accumulate gradient, and say nothing about growth."""
    log_growth: Array
    """Log of the ratio of the adjoint to the largest derivative of the loss that has entered so far, [steps + 1].

    Norms are over all moving components, each field in units of its typical adjoint."""
    rate: Rate | None
    """Growth rate of the adjoint, backward from the end, including derivatives that the loss adds on the way. None if
    too few values are known."""
    log_tangent_growth: Array | None
    """Log of the growth of a random perturbation of the start, [steps + 1]; None if a Function has no jvp."""
    tangent_rate: Rate | None
    """Growth rate of the tangent, forward from the start: that of the motion itself, whatever the loss."""
    sensitivities: tuple[Sensitivity, ...]
    fault: Fault | None
    """First NaN or inf, if there is one."""
    events: tuple[Event, ...] = ()
    """Events of the motion, where it is not smooth, in the order of time; empty if the model reports none."""

    @property
    def times(self) -> Array:
        """Times of the states [steps + 1, s]."""
        return np.arange(self.steps + 1) * self.dt

    @property
    def noise_step(self) -> int | None:
        """Step, counted backward from the end, at which the growth exceeds 1/eps; None if it does not."""
        with np.errstate(invalid="ignore"):
            return self._last(self.log_growth > -np.log(self.eps))

    @property
    def usable_steps(self) -> int:
        """Longest horizon, in steps backward from the end, with a gradient that is finite and not noise."""
        sizes = [log_norms(each) for each in self.adjoint.values()]
        ends = [self.noise_step, *[self._last(np.isnan(size)) for size in sizes]]
        return min([max(end - 1, 0) for end in ends if end is not None], default=self.steps)

    @property
    def expected_steps(self) -> int | None:
        """Length of the usable horizon if the adjoint went on growing at its rate.

        None if it ends within the present horizon, or if there is no exponential growth.
        """
        there = np.flatnonzero(np.isfinite(self.log_growth))
        if self.usable_steps < self.steps or self.rate is None or not self.rate.exponential or not there.size:
            return None
        left = -np.log(self.eps) - self.log_growth[there[0]]
        return self.steps - int(there[0]) + int(left / (self.rate.value * self.dt))

    @property
    def vanishing(self) -> tuple[str, ...]:
        """Names of quantities without any entry that the loss depends on noticeably."""
        return tuple([each.name for each in self.sensitivities if each.vanishing == each.entries])

    def _last(self, rows: Array) -> int | None:
        """Find the last row that is True, counted backward from the end."""
        found = np.flatnonzero(rows)
        return self.steps - int(found[-1]) if found.size else None


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
    dtype = state.tensors()[0].dtype
    limit = float(np.finfo(dtype).max)
    random = np.random.default_rng(seed)
    moving = _moving(model, params, state, control, random)
    fault = None
    with np.errstate(all="ignore"):
        try:
            trajectory = rollout(model, params, state, steps=steps, control=control, keep_adjoint=True, limit=limit)
        except BlowUp as error:
            fault = forward_fault(model, params, state, control, error, limit=limit)
            steps, loss = max(error.step - 1, 0), None
            if steps == 0:
                return _hopeless(model.dt, _eps(dtype), moving, fault)
            control = None if control is None else control.detach()[:steps].detach().requires_grad_()
            trajectory = rollout(model, params, state, steps=steps, control=control, keep_adjoint=True, limit=limit)
        for name, along in trajectory.states.arrays().items():
            moving[name] |= (along[2:] != along[1:2]).any(axis=0)  # include velocities that only an impact changes
        log_tangent = _log_tangent(trajectory, state, moving, random)
        chosen = loss or _random_weighting(trajectory, random)
        value = chosen(trajectory)
        gradients, entered = _backward(value, trajectory, {**_named(state), **_named(params, control)})
        adjoint = {name: getattr(trajectory.adjoint, name) for name in state.names()}
        if not all(np.isfinite(each).all() for each in (value.data, *entered.values())):
            fault = fault or loss_fault(chosen, trajectory, value.item())
        elif fault is None:
            fault = backward_fault(model, params, trajectory, adjoint, control, gradients)
    logs = {name: log_norms(values[:, moving[name]]) for name, values in adjoint.items()}
    typical = balance(logs)
    level = combine(logs, typical)
    seeds = combine({name: log_norms(values[:, moving[name]]) for name, values in entered.items()}, typical)
    with np.errstate(invalid="ignore"):
        log_growth = level - np.fmax.accumulate(seeds[::-1])[::-1]
    times = np.arange(steps + 1) * model.dt
    return Health(
        dt=model.dt,
        steps=steps,
        eps=_eps(dtype),
        loss=value.item(),
        adjoint=adjoint,
        moving=moving,
        log_growth=log_growth,
        rate=fit_rate(times, level[::-1]),
        log_tangent_growth=log_tangent,
        tangent_rate=None if log_tangent is None else fit_rate(times, log_tangent),
        sensitivities=sensitivities(trajectory, _named(state), _named(params, control), gradients, value.item()),
        fault=fault,
        events=model.events(params.arrays(), trajectory.states.arrays(), None if control is None else control.data),
    )


def scene_health(scene: Scene) -> Health:
    """Report the health of a scene's loss over its horizon; without a loss, of a random weighting of its last state.

    A batch of experiments counts as one motion, whose fields have a batch axis in front.
    """
    scene.start_runtime()
    scene = stack_members(scene)

    def loss(trajectory: Trajectory) -> Tensor:
        # Terms may refer to the start: use that of this trajectory.
        start = {name: getattr(trajectory, name)[0] for name in scene.state.names()}
        return replace(scene, state=scene.state.replace(**start)).loss(trajectory)

    of_motion = [term for term in scene.config.loss.terms if term.kind != "regularization"]
    chosen = loss if scene.observations is not None or of_motion else None
    return health(scene.model, scene.params, scene.state, steps=scene.steps, control=scene.control(), loss=chosen)


def _eps(dtype: Any) -> float:
    return float(np.finfo(dtype).eps)


def _leaves(record: Any) -> Any:
    return record.replace(**{name: getattr(record, name).detach().requires_grad_() for name in record.names()})


def _named(record: Any, control: Tensor | None = None) -> dict[str, Tensor]:
    named = dict(zip(record.names(), record.tensors(), strict=True))
    return named if control is None else {**named, "control": control}


def _hopeless(dt: float, eps: float, moving: Arrays, fault: Fault) -> Health:
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


def _random_weighting(trajectory: Trajectory, random: np.random.Generator) -> Loss:
    weights = {n: random.normal(size=value.shape).astype(value.dtype) for n, value in _named(trajectory.final).items()}

    def loss(trajectory: Trajectory) -> Tensor:
        parts = [(getattr(trajectory.final, name) * weight).sum() for name, weight in weights.items()]
        return sum(parts[1:], parts[0])

    return loss


def _moving(model: Model, params: Any, state: Any, control: Tensor | None, random: np.random.Generator) -> Arrays:
    """Mark the components that still change in the second step from a randomly perturbed start."""
    force = None if control is None else control.detach()[0]
    with no_grad(), np.errstate(all="ignore"):
        start = {}
        for name, value in _named(state).items():
            size = np.abs(value.data).max(initial=0) or 1.0
            start[name] = value + (1e-3 * size * random.normal(size=value.shape)).astype(value.dtype)
        first = model.step(params, state.replace(**start), force)
        second = model.step(params, first, force)
    return {name: first.arrays()[name] != values for name, values in second.arrays().items()}


def _log_tangent(trajectory: Trajectory, state: Any, moving: Arrays, random: np.random.Generator) -> Array | None:
    """Compute log of the growth of a random perturbation of the start, [steps + 1]; None if there is no jvp."""
    try:
        push = linearize(trajectory.states.tensors(), state.tensors())
        found = push(*[random.normal(size=each.shape) * each for each in moving.values()])
    except MissingJvp:
        return None
    tangents = zip(moving.items(), found, strict=True)
    logs = {name: log_norms(values[:, there]) for (name, there), values in tangents}
    level = combine(logs, balance(logs))
    return level - level[0]


def _backward(value: Tensor, trajectory: Trajectory, leaves: dict[str, Tensor]) -> tuple[Arrays, Arrays]:
    """Compute gradients by name, and the loss's direct derivatives with respect to each field along time."""
    if not value.requires_grad:
        remedy = "Compute it from the trajectory's states, by operations on Tensors."
        raise InputError("health", "the loss must depend on the trajectory", "one that does not", remedy)
    entered = {name: np.zeros(states.shape) for name, states in _named(trajectory.states).items()}
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
