"""Objective of an optimizer: the loss of a scene as a function of its unknowns, with gradient and Jacobian."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np

from simphys import optimize, rollout
from simphys.autograd import Tensor, no_grad, ops, tensor
from simphys.autograd.compose import functional
from simphys.autograd.errors import InputError

from . import losses, misfits
from .lowpass import as_cutoff
from .setup import Setup
from .trajectory import compute_trajectory
from .unknowns import Unknowns, to_theta

S = TypeVar("S", bound=Setup)

Array = np.ndarray[Any, Any]


@contextmanager
def _as_failed_trial() -> Iterator[None]:
    """Turn a blow-up into a failed trial: it is no invalid input here."""
    try:
        yield
    except rollout.BlowUp as error:
        raise optimize.FailedTrial(str(error)) from error


class SceneObjective(Generic[S]):
    """The `optimize.Objective` of a scene: theta [p] in, loss, gradient, residuals and Jacobian out (f64)."""

    def __init__(self, scene: S, unknowns: Unknowns) -> None:
        self.scene = scene
        self.unknowns = unknowns
        self.labels = unknowns.labels
        self.start, self.lower, self.upper = unknowns.start, unknowns.lower, unknowns.upper
        terms = enumerate(scene.config.loss.terms)
        self._pulls = [self._pull(place, term) for place, term in terms if term.kind == "regularization"]

    def until(self, fraction: float) -> SceneObjective[S]:
        """The same on the first part of the horizon: earlier observations only, fewer steps."""
        if self.scene.observations is None:
            raise InputError(
                "optimizer.horizon", "a growing horizon needs observations along time", "none", 'Use horizon = "full".'
            )
        steps = max(1, math.ceil(fraction * self.scene.steps))
        observations = self.scene.observations.until(steps * self.scene.dt)
        return SceneObjective(replace(self.scene, observations=observations, steps=steps, partial=True), self.unknowns)

    def filter_misfits(self, frequency: float) -> SceneObjective[S]:
        """The same of misfits that are low-pass filtered up to a frequency [Hz]; 0 or inf: of all."""
        return SceneObjective(replace(self.scene, lowpass=as_cutoff(frequency)), self.unknowns)

    def scene_at(self, theta: Tensor | Array) -> S:
        """The scene with the unknowns set from theta; its parameters, state, design and controls follow a Tensor."""
        theta = theta if isinstance(theta, Tensor) else self._tensor(theta)
        fields = self.unknowns.fields(theta)

        def at_theta(record: Any) -> Any:
            known = {} if record is None else {name: fields[name] for name in record.names() if name in fields}
            return record.replace(**known) if known else record

        scene = self.scene
        found = {part: at_theta(getattr(scene, part)) for part in ("params", "state", "design", "controls")}
        found["params"] = scene.config.designed(scene.model, found["params"], found["design"])
        found["state"] = scene.config.completed(found["state"])
        return replace(scene, **found)

    @property
    def has_residuals(self) -> bool:
        """True if the loss is available as residuals; sums along time are not, within a memory limit."""
        scene = self.scene
        along = any(term.kind == "running_sum" for term in scene.config.loss.terms)
        return not (along and scene.config.runtime.limited)

    def loss_tensor(self, theta: Tensor) -> Tensor:
        """The loss, recorded."""
        scene = self.scene_at(theta)
        loss = misfits.loss(scene, compute_trajectory(scene, only_seen=True))
        pulls = self._pull_residuals(theta)
        return loss + losses.total(pulls) if pulls else loss

    def residual_tensor(self, theta: Tensor) -> Tensor:
        """All residuals [m], recorded. Errors: InputError where they are not known, see `has_residuals`."""
        scene = self.scene_at(theta)
        trajectory = compute_trajectory(scene, only_seen=True)
        residuals = [*misfits.residuals(scene, trajectory), *self._pull_residuals(theta)]
        flat = [ops.reshape(residual, (-1,)) for residual in residuals]
        return flat[0] if len(flat) == 1 else ops.concatenate(flat)

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        """Loss and gradient [p]. Errors: optimize.FailedTrial."""
        leaf = self._tensor(theta, requires_grad=True)
        with _as_failed_trial():
            loss = self.loss_tensor(leaf)
        loss.backward()
        gradient = np.zeros_like(theta) if leaf.grad is None else leaf.grad.data
        return float(loss), np.asarray(gradient, np.float64)

    def residuals(self, theta: Array) -> Array:
        """Whitened residuals [m]; the loss is half the sum of their squares. Errors: optimize.FailedTrial."""
        with no_grad(), _as_failed_trial():
            return np.asarray(self.residual_tensor(self._tensor(theta)).data, np.float64)

    def jacobian(self, theta: Array) -> Array:
        """d(residuals)/d(theta), [m, p]: forward by tangents where there are fewer unknowns than residuals.

        Errors: optimize.FailedTrial.
        """
        with _as_failed_trial():
            matrix = functional.jacobian(self.residual_tensor, (self._tensor(theta, requires_grad=True),))
        return np.asarray(matrix, np.float64).reshape(-1, theta.size)

    def _tensor(self, theta: Array, *, requires_grad: bool = False) -> Tensor:
        """The unknowns in the precision of the scene."""
        self.scene.start_runtime()
        return tensor(theta, requires_grad=requires_grad)

    def _pull_residuals(self, theta: Tensor) -> list[Tensor]:
        return [losses.regularization(theta[where], towards, weight) for where, towards, weight in self._pulls]

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
