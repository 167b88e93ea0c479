"""Objective of an optimizer: the loss of a scene as a function of its unknowns, with gradient and Jacobian."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from simphys import optimize, rollout
from simphys.autograd import Tensor, grad, no_grad, ops, tensor
from simphys.autograd.compose import functional
from simphys.autograd.errors import InputError

from . import losses, misfits
from .lowpass import as_cutoff
from .sensors import count_steps
from .setup import Setup
from .trajectory import compute_trajectory
from .unknowns import Unknowns, to_theta

S = TypeVar("S", bound=Setup)

Array = np.ndarray[Any, Any]


@contextmanager
def as_failed_trial() -> Iterator[None]:
    """Turn a blow-up into a failed trial: it is no invalid input here."""
    try:
        yield
    except rollout.BlowUp as error:
        raise optimize.FailedTrial(f"{error.constraint}; found {error.found}.") from error


@dataclass(frozen=True, eq=False)
class Linearization:
    """Residuals of a motion at some theta [p], recorded, and products with their derivative J [m, p]."""

    theta: Tensor
    recorded: Tensor

    @property
    def residuals(self) -> Array:
        """Whitened residuals [m]."""
        return np.asarray(self.recorded.data, np.float64)

    @cached_property
    def _push(self) -> functional.Push:
        return functional.linearize(self.recorded, self.theta)

    def multiply(self, direction: Array) -> Array:
        """J^T (J v) of a direction v [p]: a tangent and an adjoint of the motion, without the matrix."""
        (tangent,) = self._push(direction)
        (found,) = grad(self.recorded, (self.theta,), [tensor(tangent)], retain_graph=True)
        return np.asarray(found.data, np.float64)


class SceneObjective(Generic[S]):
    """The `optimize.Objective` of a scene: theta [p] in, loss, gradient, residuals and Jacobian out (f64)."""

    def __init__(self, scene: S, unknowns: Unknowns) -> None:
        self.scene = scene
        self.unknowns = unknowns
        self.start, self.lower, self.upper = unknowns.start, unknowns.lower, unknowns.upper
        terms = enumerate(scene.config.loss.terms)
        self.pulls = [self._pull(place, term) for place, term in terms if term.kind == "regularization"]
        """Regularization terms: the part of theta that each holds, where to, and its weight."""

    @cached_property
    def labels(self) -> list[str]:
        """Name of each element of theta."""
        return self.unknowns.labels

    def until(self, fraction: float) -> SceneObjective[S]:
        """The same on the first part of the horizon: earlier observations only, fewer steps."""
        if not self.scene.measured:
            raise InputError(
                "optimizer.horizon", "a growing horizon needs observations along time", "none", 'Use horizon = "full".'
            )
        return SceneObjective(_shorten(self.scene, fraction), self.unknowns)

    def filter_misfits(self, frequency: float) -> SceneObjective[S]:
        """The same of misfits that are low-pass filtered up to a frequency [Hz]; 0 or inf: of all."""
        cutoff = as_cutoff(frequency)
        parts = tuple([replace(part, lowpass=cutoff) for part in self.scene.experiments])
        return SceneObjective(replace(self.scene, lowpass=cutoff, experiments=parts), self.unknowns)

    def with_squares(self) -> SceneObjective[S]:
        """The same of misfits whose squares count, whatever the loss."""
        return SceneObjective(_with_squares(self.scene), self.unknowns)

    def with_start(self, start: Array) -> SceneObjective[S]:
        """The same with another start [p], within the bounds."""
        other = copy.copy(self)
        other.start = np.clip(start, self.lower, self.upper)
        return other

    def with_bounds(self, lower: Array, upper: Array) -> SceneObjective[S]:
        """The same with other bounds [p]."""
        other = copy.copy(self)
        other.lower, other.upper = lower, upper
        return other

    def scene_at(self, theta: Tensor | Array) -> S:
        """The scene with the unknowns set from theta; its parameters, state, design and controls follow a Tensor."""
        theta = theta if isinstance(theta, Tensor) else self.make_tensor(theta)
        scene = self.scene
        if not scene.experiments:
            return _with_fields(scene, self.unknowns.fields(theta))
        fields = self.unknowns.fields_of_experiments(theta)
        parts = tuple([_with_fields(part, own) for part, own in zip(scene.experiments, fields, strict=True)])
        return replace(_with_fields(scene, fields[0]), experiments=parts)

    @property
    def has_residuals(self) -> bool:
        """True if the loss is available as residuals; sums along time are not, within a memory limit."""
        scene = self.scene
        along = any(term.kind == "running_sum" for term in scene.config.loss.terms)
        return not (along and scene.config.runtime.limited)

    @property
    def is_whitened(self) -> bool:
        """True if residuals are in units of a stated noise: the scene states that of all that is measured."""
        terms = {term.kind for term in self.scene.config.loss.terms}
        return self.scene.measured and terms <= {"regularization"} and misfits.sigma_is_stated(self.scene)

    def loss_tensor(self, theta: Tensor) -> Tensor:
        """The loss, recorded."""
        scene = self.scene_at(theta)
        return self.loss_of(scene, compute_trajectory(scene, only_seen=True), theta)

    def loss_of(self, scene: S, trajectory: Any, theta: Tensor) -> Tensor:
        """The loss of a trajectory that was computed from `scene_at(theta)`, recorded."""
        loss = misfits.loss(scene, trajectory)
        pulls = self.pull_residuals(theta)
        return loss + losses.total(pulls) if pulls else loss

    def residual_tensor(self, theta: Tensor) -> Tensor:
        """All residuals [m], recorded. Errors: InputError where they are not known, see `has_residuals`."""
        return _join([*self._residuals_of_motion(theta), *self.pull_residuals(theta)])

    def _residuals_of_motion(self, theta: Tensor) -> list[Tensor]:
        """Residuals without those of regularization terms, recorded."""
        scene = self.scene_at(theta)
        return misfits.residuals(scene, compute_trajectory(scene, only_seen=True))

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        """Loss and gradient [p]. Errors: optimize.FailedTrial."""
        leaf = self.make_tensor(theta, requires_grad=True)
        with as_failed_trial():
            loss = self.loss_tensor(leaf)
        loss.backward()
        gradient = np.zeros_like(theta) if leaf.grad is None else leaf.grad.data
        return float(loss), np.asarray(gradient, np.float64)

    def residuals(self, theta: Array) -> Array:
        """Whitened residuals [m]; the loss is half the sum of their squares. Errors: optimize.FailedTrial."""
        with no_grad(), as_failed_trial():
            return np.asarray(self.residual_tensor(self.make_tensor(theta)).data, np.float64)

    def jacobian(self, theta: Array) -> Array:
        """d(residuals)/d(theta), [m, p]: forward by tangents where there are fewer unknowns than residuals.

        Errors: optimize.FailedTrial.
        """
        with as_failed_trial():
            matrix = functional.jacobian(self.residual_tensor, (self.make_tensor(theta, requires_grad=True),))
        return np.asarray(matrix, np.float64).reshape(-1, theta.size)

    def linearize(self, theta: Array) -> Linearization:
        """The residuals of the motion at theta, without those of regularization, and products with their derivative.

        Errors: optimize.FailedTrial.
        """
        with as_failed_trial():
            leaves, residuals = functional.record(
                lambda theta: _join(self._residuals_of_motion(theta)), self.make_tensor(theta)
            )
        return Linearization(leaves[0], residuals)

    def make_tensor(self, theta: Array, *, requires_grad: bool = False) -> Tensor:
        """The unknowns in the precision of the scene."""
        self.scene.start_runtime()
        return tensor(theta, requires_grad=requires_grad)

    def pull_residuals(self, theta: Tensor) -> list[Tensor]:
        """Residuals of regularization terms, recorded."""
        return [losses.regularization(theta[where], towards, weight) for where, towards, weight in self.pulls]

    def priors(self) -> tuple[Array, Array]:
        """Means and standard deviations [p] of the normal priors of theta that regularization terms are.

        A term weight |theta - towards|^2 has the deviation 1 / sqrt(2 weight). Without one, it is infinite.
        """
        precision, pull = np.zeros(self.start.size), np.zeros(self.start.size)
        for where, towards, weight in self.pulls:
            precision[where] += 2 * weight
            pull[where] += 2 * weight * towards
        held = precision > 0
        safe = np.where(held, precision, 1.0)
        return np.where(held, pull / safe, self.start), np.where(held, 1 / np.sqrt(safe), np.inf)

    def _pull(self, place: int, term: Any) -> tuple[slice, Array, float]:
        """A regularization term as the part of theta that it holds, where to, and its weight."""
        who = f"loss.terms.{place}"
        block = next((block for block in self.unknowns.blocks if block.label == term.unknown), None)
        if block is None:
            raise InputError(
                who, "regularization needs the label of an unknown", term.unknown, "Correct or drop this term."
            )
        towards = self.start[block.where]
        if term.towards is not None:
            try:
                towards = to_theta(block, np.broadcast_to(np.asarray(term.towards, float), towards.shape))
            except ValueError as error:
                found, remedy = f"{np.size(term.towards)} numbers", f"Give one, or {towards.size}."
                raise InputError(who, f"towards fits the unknown {block.label}", found, remedy) from error
            if not np.isfinite(towards).all():
                remedy = "Give a positive value."
                raise InputError(who, "an unknown with the log transform is positive", term.towards, remedy)
        return block.where, towards, term.weight


def _join(residuals: list[Tensor]) -> Tensor:
    """Join residuals of any shapes as one vector."""
    flat = [ops.reshape(each, (-1,)) for each in residuals]
    return flat[0] if len(flat) == 1 else ops.concatenate(flat)


def _shorten(scene: S, fraction: float) -> S:
    """Keep the first part of the horizon, of each experiment if there are several."""
    parts = tuple([_shorten(part, fraction) for part in scene.experiments])
    steps = max(1, math.ceil(fraction * scene.steps))
    seen = None if scene.observations is None else scene.observations.until(steps * scene.dt)
    return replace(scene, observations=seen, steps=steps, partial=True, experiments=parts)


def _with_squares(scene: S) -> S:
    loss = scene.config.loss.model_copy(update={"kind": "squares", "delta": None})
    parts = tuple([_with_squares(part) for part in scene.experiments])
    return replace(scene, config=scene.config.model_copy(update={"loss": loss}), experiments=parts)


def _with_fields(scene: S, fields: dict[str, Tensor]) -> S:
    """Give parameters, state, design and controls these fields, as far as they have them."""

    def changed(record: Any) -> Any:
        known = {} if record is None else {name: fields[name] for name in record.names() if name in fields}
        return record.replace(**known) if known else record

    found = {part: changed(getattr(scene, part)) for part in ("params", "state", "design", "controls", "sensor")}
    found["params"] = scene.config.designed(scene.model, found["params"], found["design"])
    found["state"] = scene.config.completed(found["state"], found["design"], found["params"])
    if found["sensor"] is not scene.sensor:
        found["steps"] = count_steps(scene, found["sensor"])
    return replace(scene, **found)
