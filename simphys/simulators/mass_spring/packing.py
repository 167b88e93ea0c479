"""Memory layout of parameters for the fused kernels: packs values and tangents, and unpacks adjoints.

Kernels index parameters in groups: of the springs, of the nodes, and of the whole system. If all members of the batch
share every parameter of a group, kernels get one copy of each. Otherwise all of them are broadcast along the batch
axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.simulator import Array, Arrays
from simphys.simulator.actuators import extend_control

from . import fused_elements
from .model import MassSpring

BLOCK = 4
"""Springs per block of the fused kernels: enough for the compiler to vectorize, few enough for the registers."""

UNUSED = np.zeros(1, np.int32)
"""Placeholder for a list that a kernel variant does not read."""

SPRINGS = ("stiffness", "damping", "rest_length", "amplitude")
NODES = ("mass", "drag")
WORLD = ("gravity", "ground_height", "ground_stiffness", "ground_friction")


class Packing:
    """Memory layout for given parameters and control, each of its own shape or with a leading batch axis."""

    def __init__(self, model: MassSpring, params: Arrays, control: Array | None, *, batch: int) -> None:
        self._model, self._batch = model, batch
        self._shapes = model.param_shapes()
        self._batched = {name: value.ndim > len(self._shapes[name]) for name, value in params.items()}
        self._batched["control"] = control is not None and control.ndim > 2
        self.actuated = control is not None
        self.width = BLOCK if model.springs >= 4 * BLOCK else 1
        self.springs = -(-model.springs // self.width) * self.width
        """Number of springs, including those that fill the last block."""
        self.steps = 0 if control is None else control.shape[-2]
        self.control_length = model.actuators + 1 if self.actuated else 0
        """Length of the extended control: one entry per actuator, and one for the springs without."""

    def _count_copies(self, names: tuple[str, ...]) -> int:
        """Number of copies of each of these parameters that kernels get."""
        return self._batch if any([self._batched[name] for name in names]) else 1

    def arrays(self, params: Arrays, control: Array | None, *, gathers: bool) -> Arrays:
        """Array arguments of kernels, in order and by name: parameters, control and connectivity.

        Arrays with two axes hold vectors. Placeholders take the place of the actuator list without actuators, and of
        the gather lists without `gathers`.
        """
        model = self._model
        ends = np.ascontiguousarray(model.ends, np.int32).reshape(-1, 2)
        start, incidence = model.incidence if gathers else (UNUSED, UNUSED)
        missing = self.springs - model.springs
        if missing:  # springs that fill the last block join node 0 with itself
            ends = np.concatenate([ends, np.zeros((missing, 2), np.int32)])
        columns = UNUSED
        if self.actuated:
            columns = np.append(model.control_columns, np.full(missing, model.actuators, np.int32))
        drifts = np.array([stage.drift for stage in model.stages], runtime.real_dtype())
        return {
            **dict(zip(SPRINGS, self._spring_arrays(params), strict=True)),
            "control_columns": columns,
            "control": self._control_array(control),
            **{"ends": ends, "start": start, "incidence": incidence},
            **dict(zip(("a", "b", "mass"), self._node_arrays(params), strict=True)),
            **dict(zip(("gravity", "ground"), self._world_arrays(params), strict=True)),
            "drifts": drifts,
        }

    def sizes(self) -> tuple[int, ...]:
        """Integer arguments of kernels after the arrays: nodes, springs, columns of the control, stages, strides."""
        sizes = {SPRINGS: self.springs // self.width, NODES: self._model.nodes, WORLD: 1}
        strides = [size if self._count_copies(names) > 1 else 0 for names, size in sizes.items()]
        control_stride = self.steps * self.control_length if self._batched["control"] else 0
        counts = (self._model.nodes, self.springs, self.control_length, len(self._model.stages))
        return *counts, *strides, control_stride

    def tangents(self, params: Arrays, control: Array | None, given: Arrays) -> list[Any]:
        """Arguments of the tangent kernel for the tangents of parameters and control, on the device."""
        changes = {name: given.get(name, np.zeros_like(value)) for name, value in params.items()}
        dcontrol = given.get("control", None if control is None else np.zeros_like(control))
        flat = (*self._spring_arrays(changes), self._control_array(dcontrol), *self._node_arrays(params, changes))
        return [runtime.to_device(a, vector=a.ndim > 1) for a in (*flat, *self._world_arrays(changes))]

    def _spring_arrays(self, given: Arrays) -> list[Array]:
        """Stiffness, damping, rest length and amplitude, [members * springs] each."""
        return [self._pad_springs(array).reshape(-1) for array in self._broadcast_group(given, SPRINGS)]

    def _control_array(self, control: Array | None) -> Array:
        """Extended control, [members * steps * columns]."""
        return np.zeros(1, runtime.real_dtype()) if control is None else extend_control(control).reshape(-1)

    def _node_arrays(self, given: Arrays, tangents: Arrays | None = None) -> list[Array]:
        """Kick coefficients a, b [members * stages * n] and mass [members * n]; given `tangents`, those of these."""
        mass, drag = self._broadcast_group(given, NODES)
        launch, shape = fused_elements.coefficient_kernels(runtime.real()), (len(mass), len(self._model.stages))
        a, b = (np.empty((*shape, self._model.nodes), mass.dtype) for _ in range(2))
        a_q, b_q = (np.empty_like(mass) for _ in range(2))
        changes = None if tangents is None else self._broadcast_group(tangents, NODES)
        for q, arguments in enumerate(self._coefficient_arguments(mass, drag)):
            if changes is None:
                launch.forward(*arguments, a_q.reshape(-1), b_q.reshape(-1))
            else:
                dmass, ddrag = (change.reshape(-1) for change in changes)
                launch.tangent(*arguments, ddrag, dmass, a_q.reshape(-1), b_q.reshape(-1))
            a[:, q], b[:, q] = a_q, b_q
        return [a.reshape(-1), b.reshape(-1), (mass if changes is None else changes[0]).reshape(-1)]

    def _world_arrays(self, given: Arrays) -> list[Array]:
        """Gravity [members, dim], and the ground as one vector [members, 3]."""
        gravity, *ground = self._broadcast_group(given, WORLD)
        return [gravity, np.stack(ground, axis=-1)]

    def gradients(self, given: Arrays, sums: Arrays, needs: frozenset[str]) -> Arrays:
        """Adjoints of the wanted parameters, from the kernels' adjoint sums of each member."""
        found: Arrays = {}
        if "springs" in sums:
            rows = sums["springs"].reshape(self._batch, len(SPRINGS), self.springs)[..., : self._model.springs]
            found = {name: rows[:, row] for row, name in enumerate(SPRINGS) if self.actuated or name != "amplitude"}
        if "control" in sums:
            found["control"] = sums["control"].reshape(self._batch, self.steps, self.control_length)[..., :-1]
        if "nodes" in sums:
            found["mass"], found["drag"] = self._adj_nodes(given, sums["nodes"])
        if "gravity" in sums:
            found["gravity"] = sums["gravity"].reshape(self._batch, self._model.nodes, -1).sum(axis=1)
        if "ground" in sums:
            ground = sums["ground"].reshape(self._batch, self._model.nodes, 3).sum(axis=1)
            found |= dict(zip(WORLD[1:], ground.T, strict=True))
        return {name: self._reduce(name, found[name]) if name in found else self._zero_gradient(name) for name in needs}

    def _adj_nodes(self, given: Arrays, sums: Array) -> tuple[Array, Array]:
        """Adjoints of mass and drag, [B, n]: through the weight, and through the kick coefficients."""
        mass, drag = (self._broadcast(name, given[name], self._batch) for name in NODES)
        rows = sums.reshape(self._batch, -1, self._model.nodes)
        *adj_coefficients, adj_mass = np.ascontiguousarray(rows.swapaxes(0, 1))
        adj_drag = np.zeros_like(adj_mass)
        launch = fused_elements.coefficient_kernels(runtime.real()).adjoint
        for q, arguments in enumerate(self._coefficient_arguments(mass, drag)):
            launch(
                *arguments,
                *[adj_coefficients[2 * q + ab].reshape(-1) for ab in (0, 1)],
                adj_drag.reshape(-1),
                adj_mass.reshape(-1),
            )
        return adj_mass, adj_drag

    def _coefficient_arguments(self, mass: Array, drag: Array) -> list[tuple[Any, ...]]:
        """Leading arguments of the kick coefficient kernels, for each stage."""
        free = np.broadcast_to(self._model.free, mass.shape).reshape(-1)
        return [
            (drag.reshape(-1), mass.reshape(-1), free, stage.kick, stage.damp, mass.size)
            for stage in self._model.stages
        ]

    def _broadcast_group(self, given: Arrays, names: tuple[str, ...]) -> list[Array]:
        """Parameters of a group, [members, *shape] each."""
        return [self._broadcast(name, given[name], self._count_copies(names)) for name in names]

    def _broadcast(self, name: str, value: Array, members: int) -> Array:
        """Broadcast a parameter to [members, *shape]."""
        shape = (members, *self._shapes[name])
        return value.reshape(shape) if members == 1 else np.ascontiguousarray(np.broadcast_to(value, shape))

    def _pad_springs(self, array: Array) -> Array:
        """Append zeros for the springs that fill the last block, which thus exert no force."""
        missing = self.springs - self._model.springs
        return np.concatenate([array, np.zeros((len(array), missing), array.dtype)], axis=1) if missing else array

    def _reduce(self, name: str, value: Array) -> Array:
        """Bring an adjoint [B, *shape] to the shape of its parameter: sum over the batch if it is shared."""
        return np.array(value) if self._batched[name] else _sum_members(value)

    def _zero_gradient(self, name: str) -> Array:
        """Zero adjoint of a parameter that nothing depends on."""
        shape = (self._batch, *self._shapes[name]) if self._batched[name] else self._shapes[name]
        return np.zeros(shape, runtime.real_dtype())


def _sum_members(adjoints: Array) -> Array:
    """Sum over batch members, in order."""
    total = adjoints[0].copy()
    for adjoint in adjoints[1:]:
        total += adjoint
    return total
