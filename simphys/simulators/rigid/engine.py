"""`RigidEngine`: fused loops over the arrays of one rollout; see `simphys.simulator.Engine`."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.nn.fused import Layout
from simphys.nn.network import NAMES
from simphys.simulator import Array, Arrays
from simphys.simulator.array_engine import ArrayEngine

from . import fused, fused_adjoint, fused_tangent, joint_tables
from .arrays import Candidates, Constants, Motion, Packed, System, Table, Times, flat
from .checks import COMPLIANT, check_params
from .model import RigidBodies
from .rows import flatten
from .spring_damper import springs
from .sweeps import COUNTS
from .workspace import AT, PARAMS, Workspace

MIN_PARALLEL_MEMBERS = 2
"""Minimum number of batch members to be distributed over threads."""


class RigidEngine(ArrayEngine):
    """Rollout of a batch of systems of rigid bodies."""

    model: RigidBodies

    def __init__(self, model: RigidBodies, params: Arrays, control: Array | None, **options: Any) -> None:
        check_params(params)
        super().__init__(model, params, control, **options)
        self._regions = Workspace(model)
        self._packed = np.concatenate([self.params[name].reshape(self.batch, -1) for name in PARAMS], axis=1)

    def advance(self, segment: Arrays, *, first: int, start: int, steps: int) -> None:
        fused.forward_kernel(self._variant)(*self._arguments(segment), first, start, start + steps)

    def pull(self, segment: Arrays, *, first: int, steps: int, adjoint: Arrays) -> None:
        given = adjoint["position"].shape[1]
        adj_control = self.sums.get("control", self._workspaces[0])
        adj_segment = Motion(*[adjoint[name].reshape(-1) for name in self.model.State.names()])
        fused_adjoint.adjoint_kernel(self._variant)(
            *self._arguments(segment), first, steps, given, adj_segment, *flatten(self._packed_sums, adj_control)
        )

    def push(self, segment: Arrays, *, first: int, steps: int, tangent: Arrays) -> Arrays:
        pushed = {}
        for name in self.model.State.names():
            pushed[name] = np.zeros((self.batch, steps + 1, *tangent[name].shape[1:]), runtime.real_dtype())
            pushed[name][:, 0] = tangent[name]
        fused_tangent.tangent_kernel(self._variant)(
            *self._arguments(segment), first, steps, Motion(*flatten(*pushed.values())), self._packed_tangents
        )
        return pushed

    def segment_bytes(self, steps: int, *, dense: bool) -> int:
        """Include the workspace of a step and the packed parameters of each member."""
        own = self.batch * (self._regions.size + self._regions.params) * runtime.real_dtype().itemsize
        return super().segment_bytes(steps, dense=dense) + own

    def _zeros(self) -> Arrays:
        """Return sums as views of one array, the form that kernels take."""
        shapes = self.model.param_shapes()
        self._packed_sums = np.zeros((self.batch, sum([int(np.prod(shape)) for shape in shapes.values()])))
        self._packed_sums = self._packed_sums.astype(runtime.real_dtype())
        sums, at = {}, 0
        for name in PARAMS:
            size = int(np.prod(shapes[name]))
            sums[name] = self._packed_sums[:, at : at + size].reshape(self.batch, *shapes[name])
            at += size
        if "control" in self._given:
            sums["control"] = np.zeros((self.batch, *self._shapes["control"]), runtime.real_dtype())
        return sums

    @cached_property
    def _variant(self) -> fused.Variant:
        model = self.model
        return fused.Variant(
            real=runtime.real(),
            dim=model.dim,
            kinds=model.candidates.kinds,
            is_compliant=model.law == COMPLIANT,
            joints=bool(model.joints),
            springs=bool(model.springs),
            driven=joint_tables.tabulate_free_rows(model).rows > 0,
            controller=model.controller,
            network=model.network,
            parallel=self.batch >= MIN_PARALLEL_MEMBERS and runtime.settings().threads > 1,
        )

    @cached_property
    def _workspaces(self) -> tuple[Array, Array]:
        """Return the workspaces of all members, and their lists of active contacts."""
        return self._make_workspace(self.params), np.zeros(
            self.batch * (self.model.candidates.count + COUNTS), np.int32
        )

    def _make_workspace(self, params: Arrays) -> Array:
        """Make the workspace of all members; it has the weights of the network, or their tangents."""
        workspace = np.zeros((self.batch, self._regions.size), runtime.real_dtype())
        if self.model.network is not None:
            weights = Layout(self.model.network).pack({name: params[name] for name in NAMES})
            start = self._regions.layout[AT.weights]
            workspace[:, start : start + weights.shape[1]] = weights
        return workspace.reshape(-1)

    @cached_property
    def _packed_tangents(self) -> Packed:
        """Return the tangents of `_packed_arrays`: zero where none was given."""
        given = {name: self._of_members(name, values) for name, values in self._given_tangents.items()}
        params = {name: given.get(name, np.zeros_like(self.params[name])) for name in PARAMS}
        packed = np.concatenate([params[name].reshape(self.batch, -1) for name in PARAMS], axis=1)
        control = np.zeros(1, packed.dtype) if self.control is None else np.zeros_like(self.control)
        values = flatten(packed, given.get("control", control), self._make_workspace(params))
        return self._packed_arrays._replace(**dict(zip(("params", "control", "work"), values, strict=True)))

    @cached_property
    def _constants(self) -> Constants:
        model = self.model
        joints, free_rows = joint_tables.tabulate_constraints(model), joint_tables.tabulate_free_rows(model)
        counts = model.bodies, model.joint_rows, model.candidates.count, model.sweeps
        threshold = model.slip_speed if model.law == COMPLIANT else model.rest_speed
        return Constants(
            system=flat(System(model.free, model.row_bodies, *counts)),
            candidates=flat(Candidates(*model.candidates.arrays(), model.candidates.count)),
            joints=Table(joints.links, joints.parts, joints.rows),
            free_rows=Table(free_rows.links, free_rows.parts, free_rows.rows),
            springs=springs(model),
            times=Times(model.dt, threshold, model.joint_correction / model.dt),
        )

    @cached_property
    def _packed_arrays(self) -> Packed:
        control = self._workspaces[0] if self.control is None else self.control
        T, A = (0, 0) if self.control is None else self.control.shape[1:]
        params, control, work, order = flatten(self._packed, control, *self._workspaces)
        order_size = self.model.candidates.count + COUNTS
        layout, size = self._regions.layout, self._regions.size
        return Packed(params, control, work, order, layout, self._packed.shape[1], T, A, size, order_size)

    def _arguments(self, segment: Arrays) -> tuple[Any, ...]:
        """Return the arguments that both kernels take before the steps."""
        rows = segment["position"].shape[1]
        return Motion(*flatten(*segment.values())), self._packed_arrays, self._constants, self.batch, rows
