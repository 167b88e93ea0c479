"""The environment of the grid, as an array `env` [P] of numbers for each step; see grid.py.

Its entries, in order: gravity [dim], wall friction, then positions, rotations, velocities, spins and frictions of all
colliders. `build_environment` concatenates them for one nested step. `EnvironmentRows` does so for all steps of a
segment at once. It also moves the colliders, as their motion does not depend on the particles.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from simphys.autograd import Tensor, ops, runtime
from simphys.simulator import Array, Arrays

from . import collider_motion
from .arrays import flatten

if TYPE_CHECKING:
    from .model import MPM, Params, State

FIELDS = (
    "gravity",
    "wall_friction",
    "collider_position",
    "collider_rotation",
    "collider_velocity",
    "collider_spin",
    "collider_friction",
)
"""Fields of Params and State that make up `env`, in order."""
POSES = ("collider_position", "collider_rotation")
MOTIONS = ("collider_velocity", "collider_spin")


def environment_size(model: MPM) -> int:
    """Compute P, the length of `env`."""
    return model.dim + 1 + len(model.colliders) * (2 * model.dim + model.rotations + model.spins + 1)


def field_slices(model: MPM) -> dict[str, slice]:
    """Return the slice of each field in `env`."""
    shapes = {**model.param_shapes(), **model.state_shapes()}
    ends = np.cumsum([0, *[int(np.prod(shapes[name], dtype=int)) for name in FIELDS]]).tolist()
    return {name: slice(ends[k], ends[k + 1]) for k, name in enumerate(FIELDS)}


def control_slices(model: MPM) -> dict[str, slice]:
    """Return the slices of a step's control: signals of actuators, and additions to colliders' velocities and spins."""
    A, K = model.actuators, len(model.colliders)
    spins_at = A + K * model.dim
    return {
        "actuators": slice(0, A),
        "collider_velocity": slice(A, spins_at),
        "collider_spin": slice(spins_at, spins_at + K * model.spins),
    }


def build_environment(model: MPM, params: Params, state: State, control: Tensor | None) -> Tensor:
    """Concatenate the environment of a step, [P]."""
    velocity, spin = controlled_motion(model, params, control)
    fields = (
        params.gravity,
        params.wall_friction,
        state.collider_position,
        state.collider_rotation,
        velocity,
        spin,
        params.collider_friction,
    )
    return ops.concatenate([ops.reshape(field, (-1,)) for field in fields if field.size])


def controlled_motion(model: MPM, params: Params, control: Tensor | None) -> tuple[Tensor, Tensor]:
    """Compute velocity [K, dim] and spin [K, 1 or 3] of the colliders in a step, with the control's additions."""
    if control is None or not model.colliders:
        return params.collider_velocity, params.collider_spin
    slices = control_slices(model)
    velocity = params.collider_velocity + ops.reshape(
        control[slices["collider_velocity"]], params.collider_velocity.shape
    )
    spin = params.collider_spin + ops.reshape(control[slices["collider_spin"]], params.collider_spin.shape)
    return velocity, spin


class EnvironmentRows:
    """The environments of one batch member. Its `params` and `control` [T, ...] (or None) have no batch axis."""

    def __init__(self, model: MPM, params: Arrays, control: Array | None) -> None:
        self._model, self._params, self._control = model, params, control
        self._slices = field_slices(model)

    def move(self, poses: Arrays, *, first: int, start: int, steps: int) -> Array:
        """Compute the poses [rows, K, ...] after row `start` in place, and return `env` of each step, [steps, P].

        `first` is the number of the step that begins at row 0.
        """
        motions = self._compute_motions(first + start, steps)
        if self._model.colliders:
            here = {name: poses[name][start : start + steps + 1] for name in POSES}  # rows aligned with the motions
            arguments = self._flatten(here), self._flatten(motions)
            self._kernels().forward(*arguments[0], *arguments[1], self._model.dt, self._count, 0, steps)
            for name, values in zip(POSES, arguments[0], strict=True):
                if not np.shares_memory(values, here[name]):
                    here[name][:] = values.reshape(here[name].shape)
        return self._fill_rows(poses, motions, start, steps)

    def build(self, poses: Arrays, *, first: int, steps: int) -> Array:
        """Return `env` of each step from row 0 on, [steps, P], for poses that are already computed."""
        return self._fill_rows(poses, self._compute_motions(first, steps), 0, steps)

    def pull(self, poses: Arrays, adj_env: Array, adjoint: Arrays, sums: Arrays, *, first: int, steps: int) -> None:
        """Reverse the motion of the colliders, from the adjoint `adj_env` [steps, P] of `env` in each step.

        `adjoint` of the poses is that of `Engine.pull`. The adjoints of parameters and of "control" are added to
        `sums`.
        """
        K, dense = self._count, adjoint[POSES[0]].shape[0] > 1
        adj_motions = [np.ascontiguousarray(adj_env[:, self._slices[name]]) for name in MOTIONS]
        if K:
            adj_poses = []
            for name in POSES:
                adj_rows = np.zeros((steps + 1, *adjoint[name].shape[1:]), adj_env.dtype)
                adj_rows[:-1] = adj_env[:, self._slices[name]].reshape(adj_rows[:-1].shape)
                adj_rows[-1] = adjoint[name][-1]
                if dense:
                    adj_rows[:-1] += adjoint[name][:-1]
                adj_poses.append(adj_rows)
            rotation, spin = flatten(poses[POSES[1]]), flatten(self._compute_motions(first, steps)[MOTIONS[1]])
            self._kernels().adjoint(
                rotation, spin, self._model.dt, K, 0, steps, *map(flatten, (*adj_poses, *adj_motions))
            )
            for name, adj_rows in zip(POSES, adj_poses, strict=True):
                adjoint[name][:] = adj_rows if dense else adj_rows[:1]
        adj_by_name = dict(zip(MOTIONS, adj_motions, strict=True))
        for name, columns in self._slices.items():
            if name in sums:
                rows = adj_by_name.get(name, adj_env[:, columns])
                for row in reversed(range(steps)):  # one by one, so that the sum does not depend on segments
                    sums[name] += rows[row].reshape(sums[name].shape)
        if "control" in sums and K:
            for name, rows in adj_by_name.items():
                sums["control"][first : first + steps, control_slices(self._model)[name]] += rows

    def push(self, poses: Arrays, dposes: Arrays, tangents: Arrays, *, first: int, steps: int) -> Array:
        """Return the tangent of `env` in each step, [steps, P]; computes the poses' tangents `dposes` from row 0 on."""
        drows = EnvironmentRows(self._model, tangents, tangents.get("control"))
        motions = drows._compute_motions(first, steps)
        if self._model.colliders:
            rotation, spin = flatten(poses[POSES[1]]), flatten(self._compute_motions(first, steps)[MOTIONS[1]])
            arrays = self._flatten(dposes), self._flatten(motions)
            self._kernels().tangent(rotation, spin, self._model.dt, self._count, 0, steps, *arrays[0], *arrays[1])
        return drows._fill_rows(dposes, motions, 0, steps)

    @property
    def _count(self) -> int:
        return len(self._model.colliders)

    def _compute_motions(self, begin: int, steps: int) -> Arrays:
        """Compute the colliders' velocities [steps, K * dim] and spins [steps, K * spins] from step `begin` on."""
        columns, motions = control_slices(self._model), {}
        for name in MOTIONS:
            own = self._params[name].reshape(1, -1)
            motions[name] = np.repeat(own, steps, axis=0)
            if self._control is not None:
                motions[name] += self._control[begin : begin + steps, columns[name]]
        return motions

    def _fill_rows(self, poses: Mapping[str, Array], motions: Arrays, start: int, steps: int) -> Array:
        rows = np.empty((steps, environment_size(self._model)), runtime.real_dtype())
        for name, place in self._slices.items():
            if name in POSES:
                rows[:, place] = poses[name][start : start + steps].reshape(steps, -1)
            else:
                rows[:, place] = motions[name] if name in motions else self._params[name].reshape(-1)
        return rows

    def _flatten(self, arrays: Arrays) -> list[Array]:
        return [flatten(values) for values in arrays.values()]

    def _kernels(self) -> Any:
        return collider_motion.kernels(runtime.real(), self._model.dim)
