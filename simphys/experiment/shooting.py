"""Multiple shooting: a chaotic recording in segments with starts of their own, whose gaps close.

    minimize  sum_k |r_k(theta, s_k)|^2 + w sum_k |(end_k(theta, s_k) - s_{k+1}) / scale|^2

with the residuals r_k of segment k, its start s_k, and a weight w that grows until no gap is left. Within a segment
nothing grows far, so that the first of these problems is nearly linear however long the recording is; the last one
has the same minimum as the whole horizon. Segments run as one batch, and their Jacobian takes as many tangents as
theta and one start have numbers, since a segment depends on no start but its own.
Source: Bock 1983, Recent advances in parameter identification techniques for ODE.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from simphys.autograd import Tensor, no_grad, ops
from simphys.autograd.compose import functional
from simphys.autograd.errors import InputError
from simphys.optimize.problem import FAILURES

from . import misfits, sensors
from .control import Controls
from .objective import SceneObjective, as_failed_trial
from .observe import Observations
from .trajectory import compute_trajectory

Array = np.ndarray[Any, Any]

SAMPLES_PER_NUMBER = 1.5
"""Measured numbers in a segment for each number of its start."""
LEAST_SAMPLES, MOST_SEGMENTS = 4, 24
DERIVATIVES = {"position": "velocity", "angle": "rate"}
"""Fields of the state that are the derivatives in time of others of the same shape."""
WEIGHTS = 10.0 ** np.array([0.0, 1.5, 3.0, 4.5, 6.0, 8.0, 10.0])
"""Square roots of w, one round each."""
ITERATIONS = 15
"""Largest number of iterations of a round: the next one starts from its result, converged or not."""


@dataclass(frozen=True)
class _Later(Controls):
    """A control from a later step on."""

    whole: Controls
    first: int

    def signal(self, steps: int) -> Tensor:
        return self.whole.signal(self.first + steps)[self.first :]


class Shooting:
    """Residuals of all segments and gaps, as a function of theta [p] and the scaled starts of all segments but one."""

    def __init__(self, objective: SceneObjective[Any]) -> None:
        scene = objective.scene
        _require_suitable(scene)
        self.objective, self.scene = objective, scene
        self.names = [
            name for name, tensor in zip(scene.state.names(), scene.state.tensors(), strict=True) if tensor.size
        ]
        self.sizes = [getattr(scene.state, name).data.size for name in self.names]
        seen = scene.observations
        samples = max(LEAST_SAMPLES, math.ceil(SAMPLES_PER_NUMBER * sum(self.sizes) / len(seen.channels)))
        count = int(np.clip(len(seen.times) // samples, 1, MOST_SEGMENTS))
        self.length = math.ceil(scene.steps / count)
        self.firsts = list(range(0, scene.steps, self.length))
        self.windows = [self._window(first) for first in self.firsts]
        self.scale = np.ones(sum(self.sizes))
        self.weight = 0.0
        """Square root of w."""

    @property
    def count(self) -> int:
        """Number of segments."""
        return len(self.firsts)

    def _window(self, first: int) -> Observations:
        """The samples of a segment; a sample at a seam belongs to the segment that it ends."""
        seen, dt = self.scene.observations, self.scene.dt
        low, high = first * dt, (first + self.length) * dt
        there = (seen.times <= high + 1e-9 * dt) & ((seen.times > low + 1e-9 * dt) | (first == 0))
        return replace(
            seen, times=seen.times[there] - low, values=seen.values[there], weights=seen.weights[there], validation=None
        )

    def guess_starts(self) -> Array:
        """Guess the scaled starts [segments - 1, n]: what channels see there, how fast it changes, else what the motion
        begins with."""
        stacked = np.array([self._guess_start(first * self.scene.dt) for first in self.firsts[1:]])
        sizes = np.abs(stacked).max(axis=0, initial=0.0)
        fields = np.repeat(np.arange(len(self.sizes)), self.sizes)
        largest = np.array([sizes[fields == place].max() for place in range(len(self.sizes))])
        self.scale = np.where(largest > 0, largest, 1.0)[fields]
        return np.asarray(stacked / self.scale)

    def _guess_start(self, now: float) -> Array:
        """Guess the state at a time."""
        scene, seen = self.scene, self.scene.observations
        own = {name: getattr(scene.state, name).data.astype(float) for name in self.names}
        for place, channel in enumerate(seen.channels):
            if not sensors.shows_component(scene, place):
                continue
            there = seen.weights[:, place] > 0
            times, values = seen.times[there], seen.values[there, place]
            own[channel.field][channel.component] = np.interp(now, times, values)
            changes = own.get(DERIVATIVES.get(channel.field, ""))
            if changes is not None and changes.shape == own[channel.field].shape and len(times) >= LEAST_SAMPLES:
                near = np.argsort(np.abs(times - now))[:LEAST_SAMPLES]
                changes[channel.component] = np.polyfit(times[near] - now, values[near], 1)[0]
        return np.concatenate([own[name].reshape(-1) for name in self.names])

    def _record(self, theta: Tensor, starts: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """Compute the residuals of each segment, and the scaled ends of all but the last one, recorded."""
        scene = self.objective.scene_at(theta)
        parts = []
        for place, (first, window) in enumerate(zip(self.firsts, self.windows, strict=True)):
            state = scene.state if place == 0 else self._state(scene.state, starts[place - 1])
            controls = scene.controls and _Later(scene.dt, scene.controls.unit, whole=scene.controls, first=first)
            parts.append(
                replace(
                    scene,
                    state=state,
                    steps=min(self.length, scene.steps - first),
                    observations=window if len(window.times) else None,
                    controls=controls,
                    partial=True,
                    name=str(place),
                )
            )
        joined = replace(scene, experiments=tuple(parts), observations=None)
        motions = compute_trajectory(joined, only_seen=True)
        rows = [
            ops.reshape(misfits.residuals(part, motion)[0], (-1,))
            for part, motion in zip(parts, motions, strict=True)
            if part.observations is not None
        ]
        ends = [self._flat(motion.final) for motion in motions[:-1]]
        return [*rows, *[ops.reshape(each, (-1,)) for each in self.objective.pull_residuals(theta)]], ends

    def _flat(self, state: Any) -> Tensor:
        values = ops.concatenate([ops.reshape(getattr(state, name), (-1,)) for name in self.names])
        return values * (1 / self.scale).astype(values.dtype)

    def _state(self, state: Any, flat: Tensor) -> Any:
        natural, ends = flat * self.scale.astype(flat.dtype), np.cumsum([0, *self.sizes])
        fields = {
            name: ops.reshape(natural[int(low) : int(high)], getattr(state, name).shape)
            for name, low, high in zip(self.names, ends[:-1], ends[1:], strict=True)
        }
        return self.scene.config.completed(state.replace(**fields))

    def split(self, x: Array) -> tuple[Array, Array]:
        """Split the vector of all numbers into theta [p] and starts [segments - 1, n]."""
        p = self.objective.start.size
        return x[:p], x[p:].reshape(self.count - 1, -1)

    def residuals(self, x: Array) -> Array:
        """Compute all residuals, the gaps last; infinite where a motion is not finite."""
        theta, starts = self.split(x)
        make = self.objective.make_tensor
        try:
            with no_grad(), as_failed_trial(), np.errstate(all="ignore"):
                rows, ends = self._record(make(theta), [make(start) for start in starts])
        except FAILURES:
            return np.full(self._rows(), 1e30)
        gaps = [self.weight * (end.data - start) for end, start in zip(ends, starts, strict=True)]
        return np.concatenate([*[row.data for row in rows], *gaps]).astype(float)

    def _rows(self) -> int:
        pulls = self.objective.pull_residuals(self.objective.make_tensor(self.objective.start))
        seen = sum([window.values.size for window in self.windows])
        return int(seen + sum([each.data.size for each in pulls]) + (self.count - 1) * len(self.scale))

    def jacobian(self, x: Array) -> Array:
        """Compute the derivative of all residuals by all numbers."""
        theta, starts = self.split(x)
        p, n = theta.size, len(self.scale)
        make = self.objective.make_tensor

        def record(at: Tensor, delta: Tensor) -> Tensor:
            rows, ends = self._record(at, [delta + start.astype(delta.dtype) for start in starts])
            return ops.concatenate([*rows, *ends])

        inputs = (make(theta, requires_grad=True), make(np.zeros(n), requires_grad=True))
        by_theta, by_start = [np.asarray(each, float) for each in functional.jacobian(record, inputs, mode="forward")]
        matrix = np.zeros((len(by_theta), x.size))
        matrix[:, :p] = by_theta
        gaps = len(matrix) - (self.count - 1) * n
        row = 0
        for place, window in enumerate(self.windows):
            rows = slice(row, row + window.values.size)
            if place:
                matrix[rows, p + (place - 1) * n : p + place * n] = by_start[rows]
            row = rows.stop
        for place in range(self.count - 1):
            rows = slice(gaps + place * n, gaps + (place + 1) * n)
            if place:
                matrix[rows, p + (place - 1) * n : p + place * n] = by_start[rows]
            matrix[rows, p + place * n : p + (place + 1) * n] = -np.eye(n)
        matrix[gaps:] *= self.weight
        return matrix


def close_gaps(objective: SceneObjective[Any], *, on_round: Callable[[int, float], None] | None = None) -> Array:
    """Find theta [p] by multiple shooting, from the objective's start: a start for the whole horizon.

    `on_round` is called with the number of the round and the loss of the segments without their gaps.
    Errors: InputError for a scene that has no segments: see `_require_suitable`.
    """
    from scipy.optimize import least_squares

    shooting = Shooting(objective)
    x = np.concatenate([objective.start, shooting.guess_starts().reshape(-1)])
    free = np.full(x.size - objective.start.size, np.inf)
    bounds = np.concatenate([objective.lower, -free]), np.concatenate([objective.upper, free])
    for number, weight in enumerate(WEIGHTS):
        shooting.weight = float(weight)
        end = least_squares(
            shooting.residuals, x, jac=shooting.jacobian, bounds=bounds, x_scale="jac", max_nfev=ITERATIONS, ftol=1e-6
        )
        x = end.x
        if on_round is not None:
            inside = end.fun[: len(end.fun) - free.size]
            on_round(number, 0.5 * float(inside @ inside))
    return shooting.split(x)[0]


def _require_suitable(scene: Any) -> None:
    """Raise InputError for a scene that cannot be cut into segments."""
    terms = [term.kind for term in scene.config.loss.terms if term.kind != "regularization"]
    reasons = {
        "several experiments": bool(scene.experiments),
        "several members": scene.members is not None,
        "no channels along time": not isinstance(scene.observations, Observations),
        f"terms of the loss ({', '.join(terms)})": bool(terms),
        "delayed channels": sensors.is_delayed(scene.config),
        "a memory limit": scene.config.runtime.limited,
    }
    for found, there in reasons.items():
        if there:
            remedy = 'Use horizon = "growing".'
            raise InputError("optimizer.horizon", "shooting needs one recording by channels", found, remedy)
