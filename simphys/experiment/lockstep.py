"""Residuals and Jacobians at many values of the unknowns at once: their motions are one batch.

Of a batch of B values theta_b the Jacobians need no more tangents than that of one: each pushes the same direction d at
all of them, r_b(theta_b + d), as no residual depends on the unknowns of another member.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from simphys.autograd import Tensor, no_grad, ops
from simphys.autograd.compose import functional
from simphys.optimize.mapping import Carried, Map
from simphys.optimize.problem import FAILURES

from . import misfits
from .objective import SceneObjective, as_failed_trial
from .trajectory import compute_trajectory

Array = np.ndarray[Any, Any]

PART = 16
"""Largest number of motions of a batch. It is the same on any engine, so that results are, too."""


class Lockstep:
    """An objective at many values of its unknowns, in batches that `each` computes."""

    def __init__(self, objective: SceneObjective[Any], each: Map = map) -> None:
        self._batches, self._each = Carried(_Batches(objective)), each

    def residuals(self, thetas: Array) -> Array:
        """Compute the residuals [B, m] at thetas [B, p]; NaN where a motion is not finite."""
        return self._compute("residuals", thetas)

    def jacobians(self, thetas: Array) -> Array:
        """Compute the Jacobians [B, m, p] at thetas [B, p]; NaN where a motion is not finite."""
        return self._compute("jacobians", thetas)

    def _compute(self, kind: str, thetas: Array) -> Array:
        parts = [thetas[first : first + PART] for first in range(0, len(thetas), PART)]
        return _join(list(self._each(partial(_compute_part, self._batches, kind), parts)))


def _compute_part(batches: Carried[_Batches], kind: str, thetas: Array) -> Array:
    return batches.value.compute(kind, thetas)


def _join(parts: Sequence[Array]) -> Array:
    """Join results of batches; of failures alone their shape is not known."""
    shape = max(parts, key=lambda part: part[0].size).shape[1:]
    return np.concatenate([part if part.shape[1:] == shape else np.full((len(part), *shape), np.nan) for part in parts])


class _Batches:
    """Batches of motions of an objective."""

    def __init__(self, objective: SceneObjective[Any]) -> None:
        self.objective = objective

    def compute(self, kind: str, thetas: Array) -> Array:
        """Compute residuals or Jacobians at thetas [B, p]."""
        return self._divide(thetas, self._residuals if kind == "residuals" else self._jacobians)

    def _divide(self, thetas: Array, compute: Any) -> Array:
        """Compute for all members; where the batch fails, for each half of it, until the one that fails is alone."""
        try:
            with as_failed_trial(), np.errstate(all="ignore"):
                return np.asarray(compute(thetas))
        except FAILURES:
            if len(thetas) == 1:
                return np.full((1, 1), np.nan)
        middle = len(thetas) // 2
        return _join([self._divide(half, compute) for half in (thetas[:middle], thetas[middle:])])

    def _residuals(self, thetas: Array) -> Array:
        with no_grad():
            found = self._record([self.objective.make_tensor(theta) for theta in thetas])
        return np.asarray(found.data, np.float64)

    def _jacobians(self, thetas: Array) -> Array:
        def record(d: Tensor) -> Tensor:
            return self._record([d + theta.astype(d.dtype) for theta in thetas])

        start = self.objective.make_tensor(np.zeros(thetas.shape[1]), requires_grad=True)
        (found,) = functional.jacobian(record, (start,), mode="forward")
        return np.asarray(found, np.float64)

    def _record(self, thetas: list[Tensor]) -> Tensor:
        """Compute the residuals [B, m], recorded."""
        objective = self.objective
        scenes = [objective.scene_at(theta) for theta in thetas]
        parts = [part for scene in scenes for part in scene.parts]
        joined = replace(scenes[0], experiments=tuple(parts), observations=None)
        motions = iter(compute_trajectory(joined, only_seen=True))
        rows = []
        for scene, theta in zip(scenes, thetas, strict=True):
            own: Any = [next(motions) for _ in scene.parts]
            found = misfits.residuals(scene, own if scene.experiments else own[0])
            flat = [ops.reshape(each, (-1,)) for each in (*found, *objective.pull_residuals(theta))]
            rows.append(ops.concatenate(flat))
        return ops.stack(rows)
