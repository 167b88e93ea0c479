"""Engine of a rollout under a controller; its kernels are in controlled.py."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.errors import MissingJvp
from simphys.nn.fused import Layout, sum_kernel
from simphys.nn.network import NAMES
from simphys.simulator import Array, Arrays, Shape

from . import controlled, fused
from .engine import SPREAD, MassSpringEngine
from .model import MassSpring
from .segment import Segment

NOT_CONTROLLED = ("control", "start", "incidence")
"""Array arguments of the kernels in fused.py that those under a controller lack: the control and the gather lists."""


class ControlledSegment(Segment):
    """States of some steps, with the inputs, hidden values and outputs of the network in each."""

    def __init__(self, model: MassSpring, steps: int, *, batch: int, layout: Layout) -> None:
        super().__init__(model, steps, batch=batch)
        self.steps = steps
        sizes = (layout.inputs, layout.hidden, layout.outputs)
        self.inputs, self.hidden, self.outputs = (_device_zeros((batch, steps, size)) for size in sizes)


class ControlledEngine(MassSpringEngine):
    """Engine of a batch of systems under a controller. Its `control` is the pattern that enters the network."""

    def __init__(
        self,
        model: MassSpring,
        params: Arrays,
        control: Array | None,
        *,
        batch: int,
        needs: frozenset[str],
        deterministic: bool,
        tangents: Arrays | None = None,
    ) -> None:
        assert model.network is not None and model.controller is not None, "this engine needs a controller"
        assert control is not None, "a controller needs a pattern"
        placeholder = np.zeros((1, model.actuators), runtime.real_dtype())
        network_fields = frozenset(NAMES) | {"control"}
        self._network, self._controller = model.network, model.controller
        self._layout = Layout(model.network)
        own_params = {name: values for name, values in params.items() if name not in network_fields}
        super().__init__(
            model, own_params, placeholder, batch=batch, needs=needs - network_fields, deterministic=deterministic
        )
        self._network_needs = needs & network_fields
        self._network_inputs = {name: params[name] for name in NAMES} | {"control": control}
        self._shapes: dict[str, Shape] = {**model.network.shapes(), "control": control.shape[-2:]}
        self._sum_shapes_of_weights = self._layout.sum_shapes(batch)
        self._reset_sums()
        shared = all([self._network_inputs[name].ndim == len(self._shapes[name]) for name in NAMES])
        members = 1 if shared else batch
        self._weights = runtime.to_device(
            self._layout.pack({name: self._broadcast(name, members) for name in NAMES}).reshape(-1)
        )
        self._weight_stride = 0 if shared else self._layout.size
        batched = control.ndim > 2
        self._pattern = runtime.to_device(self._broadcast("control", batch if batched else 1).reshape(-1))
        self._pattern_stride = prod(control.shape[-2:]) if batched else 0
        self._goal = runtime.to_device(np.array([model.controller.goal], runtime.real_dtype()), vector=True)

    def _choose(self, *, deterministic: bool) -> fused.Variant:
        """Keep batch members serial, since the network couples all nodes of a member at each step."""
        chosen = runtime.settings()
        spread = 1 if chosen.on_gpu else SPREAD if self._batch > 1 and chosen.threads > 1 else 0
        return replace(super()._choose(deterministic=deterministic), serial=True, spread=spread)

    def _choose_adjoints(self, variant: fused.Variant) -> fused.Variant:
        return replace(super()._choose_adjoints(variant), control=True)

    def segment_bytes(self, steps: int, *, dense: bool) -> int:
        """Count the rows of the network twice, for values and adjoints."""
        rows = 2 * self._batch * steps * (self._layout.inputs + self._layout.hidden + self._layout.outputs)
        sums = sum([prod(shape) for shape in self._sum_shapes_of_weights.values()]) + self._adj_pattern.size
        return super().segment_bytes(steps, dense=dense) + (rows + sums) * runtime.real_dtype().itemsize

    def segment(self, steps: int) -> ControlledSegment:
        return ControlledSegment(self._model, steps, batch=self._batch, layout=self._layout)

    def advance(self, segment: Any, *, first: int, start: int, steps: int) -> None:
        n, S, _, stages, *strides, _, members, tasks = self._sizes
        work = runtime.device_array((self._batch * n,), components=self._model.dim)
        controlled.forward_kernel(self._variant, self._network, self._controller.waves)(
            segment.x, segment.v, *self._arrays, self._weights, self._pattern, self._goal,
            segment.inputs, segment.hidden, segment.outputs, work,
            n, S, stages, *strides, self._weight_stride, self._pattern_stride, self._controller.scale,
            members, tasks, segment.steps, first, start, start + steps,
        )  # fmt: skip

    def pull(self, segment: Any, *, first: int, steps: int, adjoint: Arrays) -> None:
        given = [adjoint["position"], adjoint["velocity"]]
        dense = given[0].shape[1] > 1
        n, S, _, stages, *strides, _, members, tasks = self._sizes
        running = [value[:, -1].copy() for value in given] if not dense else [np.zeros_like(v[:, 0]) for v in given]
        running_device = [
            runtime.to_device(np.ascontiguousarray(v).reshape(-1, v.shape[-1]), vector=True) for v in running
        ]
        dense_device = (
            [runtime.to_device(v.reshape(-1, v.shape[-1]), vector=True) for v in given] if dense else running_device
        )
        layout, rows = self._layout, (self._batch, segment.steps)
        adj_inputs, adj_hidden, adj_outputs = (
            _device_zeros((*rows, size)) for size in (layout.inputs, layout.hidden, layout.outputs)
        )
        work = [runtime.device_array(shape[:1], components=shape[1]) for shape in self._adjoint_work_shapes()[:2]]
        sums = [self._sums[name] for name in ("springs", "nodes", "gravity", "ground")]
        variant = replace(self._adjoint_variant, dense=dense)
        controlled.adjoint_kernel(variant, self._network, self._controller.waves)(
            segment.x, segment.v, *self._arrays, self._weights, segment.hidden, segment.outputs,
            adj_inputs, adj_hidden, adj_outputs, *work, *running_device, *dense_device, *sums,
            n, S, stages, *strides, self._weight_stride, self._controller.scale, members, tasks, steps, segment.steps,
        )  # fmt: skip
        for target, left, values in zip(given, running_device, dense_device, strict=True):
            found = runtime.to_host(left, (self._batch, n, self._model.dim))
            if dense:
                target[...] = runtime.to_host(values, target.shape)
                target[:, 0] += found
            else:
                target[:, 0] = found
        self._add_contributions(segment, first, steps, adj_inputs, adj_hidden, adj_outputs)

    def _add_contributions(self, segment: ControlledSegment, first: int, steps: int, *adjoints: Any) -> None:
        """Add a segment's contributions to the adjoint sums of the weights and of the pattern."""
        adj_inputs, adj_hidden, adj_outputs = adjoints
        if not self._network_needs.isdisjoint(NAMES):
            add = sum_kernel(runtime.real(), runtime.settings().on_gpu)
            for layer, g, x in (("hidden", adj_hidden, segment.inputs), ("output", adj_outputs, segment.hidden)):
                weight, bias = self._weight_sums[f"{layer}_weight"], self._weight_sums[f"{layer}_bias"]
                rows, columns = self._sum_shapes_of_weights[f"{layer}_weight"][1:]
                add(g, x, self._batch, segment.steps, steps, rows, columns, weight, bias)
        if "control" in self._network_needs:
            given = runtime.to_host(adj_inputs, (self._batch, segment.steps, self._layout.inputs))
            self._adj_pattern[:, first : first + steps] += given[:, :steps, : self._controller.waves]

    def gradients(self) -> Arrays:
        found = super().gradients()
        shapes = self._sum_shapes_of_weights
        sums = {name: runtime.to_host(values, shapes[name]) for name, values in self._weight_sums.items()}
        adjoints = {**self._layout.remove_padding(sums), "control": self._adj_pattern}
        self._reset_sums()
        for name in self._network_needs:
            batched = self._network_inputs[name].ndim > len(self._shapes[name])
            found[name] = adjoints[name].copy() if batched else adjoints[name].sum(axis=0)
        return found

    def push(self, segment: Segment, *, first: int, steps: int, tangent: Arrays) -> Arrays:
        """Raise MissingJvp: the fused loops have no tangents under a controller."""
        raise MissingJvp("Fused rollouts under a controller have no tangents. Use reverse mode, or mode nested.")

    @property
    def _arrays(self) -> list[Any]:
        """Array arguments of both kernels after the states: springs, their actuators, ends, nodes, world, drifts."""
        return [array for name, array in self._device_arrays.items() if name not in NOT_CONTROLLED]

    @property
    def _sizes(self) -> tuple[Any, ...]:
        return (*self._packing.sizes(), self._batch, self._tasks)

    def _broadcast(self, name: str, members: int) -> Array:
        value = np.asarray(self._network_inputs[name], runtime.real_dtype())
        return np.ascontiguousarray(np.broadcast_to(value, (members, *self._shapes[name])))

    def _reset_sums(self) -> None:
        """Reset the adjoint sums of the weights and of the pattern."""
        self._weight_sums = {name: _device_zeros(shape) for name, shape in self._sum_shapes_of_weights.items()}
        self._adj_pattern = np.zeros((self._batch, *self._shapes["control"]), runtime.real_dtype())


def _device_zeros(shape: Shape) -> Any:
    return runtime.to_device(np.zeros(shape, runtime.real_dtype()).reshape(-1))
