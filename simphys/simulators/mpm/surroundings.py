"""The environment of the grid over the steps of a segment: the motion of the colliders, its adjoint and its tangent.

It does not depend on the particles, so the rows of all steps are computed at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from simphys.autograd import runtime
from simphys.simulator import Array, Arrays

from . import collider_motion, environment
from .arrays import flat

if TYPE_CHECKING:
    from .model import MPM

POSES = ("collider_position", "collider_rotation")
MOTIONS = ("collider_velocity", "collider_spin")


class Surroundings:
    """The environments of one batch member. Its `params` and `control` [T, ...] (or None) have no batch axis."""

    def __init__(self, model: MPM, params: Arrays, control: Array | None) -> None:
        self._model, self._params, self._control = model, params, control
        self._where = environment.parts(model)

    def move(self, poses: Arrays, *, first: int, start: int, steps: int) -> Array:
        """Compute the poses [rows, K, ...] after row `start` in place, and return `env` of each step, [steps, P].

        `first` is the number of the step that begins at row 0.
        """
        motions = self._motions(first + start, steps)
        if self._model.colliders:
            here = {name: poses[name][start : start + steps + 1] for name in POSES}  # rows aligned with the motions
            arguments = self._flat(here), self._flat(motions)
            self._kernels().forward(*arguments[0], *arguments[1], self._model.dt, self._count, 0, steps)
            for name, values in zip(POSES, arguments[0], strict=True):
                if not np.shares_memory(values, here[name]):
                    here[name][:] = values.reshape(here[name].shape)
        return self._rows(poses, motions, start, steps)

    def rows(self, poses: Arrays, *, first: int, steps: int) -> Array:
        """Return `env` of each step from row 0 on, [steps, P], for poses that are already computed."""
        return self._rows(poses, self._motions(first, steps), 0, steps)

    def pull(self, poses: Arrays, found: Array, adjoint: Arrays, sums: Arrays, *, first: int, steps: int) -> None:
        """Reverse the motion of the colliders, from the adjoint `found` [steps, P] of `env` in each step.

        `adjoint` of the poses is that of `Engine.pull`. The adjoints of parameters and of "control" are added to
        `sums`.
        """
        K, dense = self._count, adjoint[POSES[0]].shape[0] > 1
        of_motions = [np.ascontiguousarray(found[:, self._where[name]]) for name in MOTIONS]
        if K:
            of_poses = []
            for name in POSES:
                along = np.zeros((steps + 1, *adjoint[name].shape[1:]), found.dtype)
                along[:-1] = found[:, self._where[name]].reshape(along[:-1].shape)
                along[-1] = adjoint[name][-1]
                if dense:
                    along[:-1] += adjoint[name][:-1]
                of_poses.append(along)
            rotation, spin = flat(poses[POSES[1]]), flat(self._motions(first, steps)[MOTIONS[1]])
            self._kernels().adjoint(rotation, spin, self._model.dt, K, 0, steps, *map(flat, (*of_poses, *of_motions)))
            for name, along in zip(POSES, of_poses, strict=True):
                adjoint[name][:] = along if dense else along[:1]
        of = dict(zip(MOTIONS, of_motions, strict=True))
        for name, where in self._where.items():
            if name in sums:
                rows = of.get(name, found[:, where])
                for row in reversed(range(steps)):  # one by one, so that the sum does not depend on segments
                    sums[name] += rows[row].reshape(sums[name].shape)
        if "control" in sums and K:
            for name, rows in of.items():
                sums["control"][first : first + steps, environment.control_parts(self._model)[name]] += rows

    def push(self, poses: Arrays, moved: Arrays, tangents: Arrays, *, first: int, steps: int) -> Array:
        """Return the tangent of `env` in each step, [steps, P]; computes the poses' tangents `moved` from row 0 on."""
        turned = Surroundings(self._model, tangents, tangents.get("control"))
        motions = turned._motions(first, steps)
        if self._model.colliders:
            rotation, spin = flat(poses[POSES[1]]), flat(self._motions(first, steps)[MOTIONS[1]])
            arrays = self._flat(moved), self._flat(motions)
            self._kernels().tangent(rotation, spin, self._model.dt, self._count, 0, steps, *arrays[0], *arrays[1])
        return turned._rows(moved, motions, 0, steps)

    @property
    def _count(self) -> int:
        return len(self._model.colliders)

    def _motions(self, begin: int, steps: int) -> Arrays:
        """Compute the colliders' velocities [steps, K * dim] and spins [steps, K * spins] from step `begin` on."""
        inside, found = environment.control_parts(self._model), {}
        for name in MOTIONS:
            own = self._params[name].reshape(1, -1)
            found[name] = np.repeat(own, steps, axis=0)
            if self._control is not None:
                found[name] += self._control[begin : begin + steps, inside[name]]
        return found

    def _rows(self, poses: Mapping[str, Array], motions: Arrays, start: int, steps: int) -> Array:
        rows = np.empty((steps, environment.size(self._model)), runtime.real_dtype())
        for name, place in self._where.items():
            if name in POSES:
                rows[:, place] = poses[name][start : start + steps].reshape(steps, -1)
            else:
                rows[:, place] = motions[name] if name in motions else self._params[name].reshape(-1)
        return rows

    def _flat(self, arrays: Arrays) -> list[Array]:
        return [flat(values) for values in arrays.values()]

    def _kernels(self) -> Any:
        return collider_motion.kernels(runtime.real(), self._model.dim)
