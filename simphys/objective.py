"""What an optimizer minimizes: the loss of a scene as a function of its unknowns, with gradient and Jacobian."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from . import losses
from .autograd import Tensor, functional, no_grad, ops, tensor
from .autograd.errors import InputError
from .unknowns import Unknowns, to_theta

if TYPE_CHECKING:
    from .scene import Scene

Array = np.ndarray[Any, Any]


class SceneObjective:
    """The `optimize.Objective` of a scene: theta [p] in, loss, gradient, residuals and Jacobian out (f64)."""

    def __init__(self, scene: Scene, unknowns: Unknowns) -> None:
        self.scene = scene
        self.unknowns = unknowns
        self.labels = unknowns.labels
        self.start, self.lower, self.upper = unknowns.start, unknowns.lower, unknowns.upper
        terms = enumerate(scene.config.loss.terms)
        self._pulls = [self._pull(place, term) for place, term in terms if term.kind == "regularization"]

    def until(self, fraction: float) -> SceneObjective:
        """The same on the first part of the horizon: earlier observations only, fewer steps."""
        if self.scene.observations is None:
            raise InputError(
                "optimizer.horizon", "a growing horizon needs observations along time", "none", 'Use horizon = "full".'
            )
        steps = max(1, math.ceil(fraction * self.scene.steps))
        keep = self.scene.observations.times <= steps * self.scene.dt
        given = self.scene.observations
        observations = replace(given, times=given.times[keep], values=given.values[keep], weights=given.weights[keep])
        return SceneObjective(replace(self.scene, observations=observations, steps=steps, partial=True), self.unknowns)

    def scene_at(self, theta: Tensor | Array) -> Scene:
        """The scene with the unknowns set from theta; its parameters and state are functions of a Tensor theta."""
        theta = theta if isinstance(theta, Tensor) else tensor(theta)
        fields = self.unknowns.fields(theta)
        scene = self.scene
        params = {name: value for name, value in fields.items() if hasattr(scene.params, name)}
        state = {name: value for name, value in fields.items() if hasattr(scene.state, name)}
        return replace(scene, params=scene.params.replace(**params), state=scene.state.replace(**state))

    def residual_tensor(self, theta: Tensor) -> Tensor:
        """All residuals [m], recorded."""
        scene = self.scene_at(theta)
        residuals = [ops.reshape(r, (-1,)) for r in scene.residuals(scene.rollout())]
        residuals += [
            ops.reshape(r, (-1,))
            for r in [losses.regularization(theta[where], towards, weight) for where, towards, weight in self._pulls]
        ]
        return residuals[0] if len(residuals) == 1 else ops.concatenate(residuals)

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        """Loss and gradient [p]."""
        leaf = tensor(theta, requires_grad=True)
        loss = losses.total([self.residual_tensor(leaf)])
        loss.backward()
        gradient = np.zeros_like(theta) if leaf.grad is None else leaf.grad.data
        return float(loss), np.asarray(gradient, np.float64)

    def residuals(self, theta: Array) -> Array:
        """Whitened residuals [m]; the loss is half the sum of their squares."""
        with no_grad():
            return np.asarray(self.residual_tensor(tensor(theta)).data, np.float64)

    def jacobian(self, theta: Array) -> Array:
        """d(residuals)/d(theta), [m, p]: forward by tangents where there are fewer unknowns than residuals."""
        matrix = functional.jacobian(self.residual_tensor, (tensor(theta, requires_grad=True),))
        return np.asarray(matrix, np.float64).reshape(-1, theta.size)

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
