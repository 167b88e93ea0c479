"""Engine of a mass-spring rollout: choice of the kernels, their memory, and their launches."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.kernels.launch import Kernel
from simphys.simulator import Array, Arrays, Engine, Shape

from . import fused
from .fused_adjoint import adjoint_kernel
from .fused_tangent import tangent_kernel
from .model import MassSpring
from .packing import SPRINGS, UNUSED, Packing
from .segment import Segment, copy_rows, count_rows

NODE_US = 0.003
SPRING_US = 0.004
"""Serial costs [us] of the forward pass for a node and for a spring."""
SPREAD = 512
"""Iterations of a parallel loop that the compiler assigns to one CPU thread."""
TASKS_PER_THREAD = 8
"""Number of tasks per thread. Neighbouring members share cache lines: a task takes several; more tasks balance load."""
GPU_SERIAL = 64
"""Largest number of nodes and springs for which a GPU spends one thread on a member, not on each node and spring."""


class MassSpringEngine(Engine):
    """Engine of one rollout, for given parameters and control; see `simulator.Engine`."""

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
        self._model, self._params, self._control, self._tangents = model, params, control, tangents or {}
        self._batch, self._needs = batch, needs
        self._stages = len(model.stages)
        self._packing = Packing(model, params, control, batch=batch)
        self._variant = self._choose(deterministic=deterministic)
        self._adjoint_variant = self._choose_adjoints(self._variant)
        tasks = TASKS_PER_THREAD * runtime.settings().threads if self._variant.spread > 1 else batch
        self._tasks = min(tasks, batch) if self._variant.spread else 1

    # --- what is compiled

    def _choose(self, *, deterministic: bool) -> fused.Variant:
        """Choose between serial and gathering kernels, which round differently.

        Either gives the same result on any number of threads. So all that `deterministic` requires is a choice that
        depends on the size of the system alone.
        """
        model, params, chosen = self._model, self._params, runtime.settings()
        work_us = SPRING_US * model.springs + NODE_US * model.nodes
        spread = SPREAD if self._batch > 1 and chosen.threads > 1 else 0
        if chosen.on_gpu:
            serial, spread = model.springs + model.nodes <= GPU_SERIAL, 1
        elif deterministic:
            serial = work_us <= runtime.PARALLEL_WORK_US
        else:
            serial = not runtime.parallel(work_us) or self._batch >= chosen.threads > 1
        return fused.Variant(
            real=runtime.real(),
            dim=model.dim,
            serial=serial,
            spread=spread,
            batched=self._batch > 1,
            damped=bool(params["damping"].any()) or "damping" in self._needs,
            ground=bool(params["ground_stiffness"].any()) or "ground_stiffness" in self._needs,
            actuated=self._packing.actuated,
            width=self._packing.width,
        )

    def _choose_adjoints(self, variant: fused.Variant) -> fused.Variant:
        needs, damps = self._needs, any([stage.damp for stage in self._model.stages])
        return replace(
            variant,
            decay="drag" in needs,
            impulse="mass" in needs or ("drag" in needs and damps),
            weight="mass" in needs or "gravity" in needs,
            floor=not needs.isdisjoint(("ground_height", "ground_stiffness", "ground_friction")),
            **{name: name in needs for name in SPRINGS[:3]},
            amplitude=variant.actuated and "amplitude" in needs,
            control=variant.actuated and "control" in needs,
        )

    # --- memory

    def segment_bytes(self, steps: int, *, dense: bool) -> int:
        """Count the copy of the adjoint on a GPU, too."""
        n, dim, on_gpu = self._model.nodes, self._model.dim, runtime.settings().on_gpu
        state = 2 * self._batch * n * dim  # numbers
        numbers = count_rows(self._model, steps) * state + prod(self._forward_work_shape())
        numbers += sum(prod(shape) for shape in (*self._adjoint_work_shapes(), *self._sum_shapes().values()))
        numbers += state if dense or on_gpu else 0
        numbers += (steps + 1) * state if dense and on_gpu else 0
        inputs = (*self._host_arrays.values(), *self._actuated_springs)
        given = sum({id(array): array.nbytes for array in inputs}.values())
        return numbers * runtime.real_dtype().itemsize + given

    def _forward_work_shape(self) -> Shape:
        """Shape of the forward kernel's workspace for one stage: forces on nodes, or of springs."""
        n, S = self._model.nodes, self._packing.springs
        return self._batch * (n if self._variant.serial else max(n, S)), self._model.dim

    def _adjoint_work_shapes(self) -> list[Shape]:
        """Shapes of the adjoint kernel's workspace, in the order of its arguments; empty if the variant needs none."""
        variant, dim = self._adjoint_variant, self._model.dim
        n, S, gathers = self._batch * self._model.nodes, self._batch * self._packing.springs, not variant.serial
        return [
            (n * variant.impulse, dim),
            (n, dim),
            (S * gathers, dim),
            (S * (gathers and variant.damped), dim),
            (S * (gathers and variant.impulse), dim),
            (S * (gathers and variant.control),),
        ]

    def _sum_shapes(self) -> dict[str, Shape]:
        """Shapes of the adjoint sums, in the order of the adjoint kernel's arguments; empty for unwanted ones."""
        variant, packing = self._adjoint_variant, self._packing
        n, S = self._batch * self._model.nodes, self._batch * packing.springs
        any_springs = any([getattr(variant, name) for name in SPRINGS])
        any_nodes = variant.decay or variant.impulse or variant.weight
        return {
            "springs": (4 * S * any_springs,),
            "control": (self._batch * packing.steps * packing.control_length * variant.control,),
            "nodes": ((2 * self._stages + 1) * n * any_nodes,),
            "gravity": (n * variant.weight, self._model.dim),
            "ground": (n * variant.floor, 3),
        }

    @functools.cached_property
    def _sums(self) -> dict[str, Any]:
        zeros = {name: np.zeros(shape, runtime.real_dtype()) for name, shape in self._sum_shapes().items()}
        return {name: runtime.to_device(value, vector=value.ndim > 1) for name, value in zeros.items()}

    @functools.cached_property
    def _arguments(self) -> list[Any]:
        """Arguments that all kernels share, after the states."""
        return [*self._device_arrays.values(), *self._packing.sizes(), self._batch, self._tasks]

    @functools.cached_property
    def _device_arrays(self) -> dict[str, Any]:
        """The arrays among these arguments, by name."""
        return {name: runtime.to_device(array, vector=array.ndim > 1) for name, array in self._host_arrays.items()}

    @functools.cached_property
    def _host_arrays(self) -> Arrays:
        """The same arrays on the host."""
        return self._packing.arrays(self._params, self._control, gathers=not self._variant.serial)

    @property
    def _actuated_springs(self) -> tuple[Array, Array]:
        """Springs of each actuator, over which the adjoint of its control is gathered."""
        needed = self._packing.actuated and not self._variant.serial
        return self._model.actuated_springs if needed else (UNUSED, UNUSED)

    # --- launches

    def segment(self, steps: int) -> Segment:
        segment = Segment(self._model, steps, batch=self._batch)
        work = _device_array(self._forward_work_shape())
        segment.launch = self._launch(
            fused.forward_kernel(self._variant), segment.x, segment.v, *self._arguments, work, segment.rows
        )
        return segment

    def load(self, segment: Segment, state: Arrays) -> None:
        segment.load(state)

    def read(self, segment: Segment, rows: slice | list[int], names: Collection[str] | None = None) -> Arrays:
        return segment.read(rows, names)

    def advance(self, segment: Segment, *, first: int, start: int, steps: int) -> None:
        for stages in self._stage_intervals(start, steps):
            segment.launch(first, *stages)

    def pull(self, segment: Segment, *, first: int, steps: int, adjoint: Arrays) -> None:
        given = [adjoint["position"], adjoint["velocity"]]
        dense = given[0].shape[1] > 1
        shape = (self._batch, self._model.nodes, self._model.dim)
        running = [np.zeros(shape, value.dtype) for value in given] if dense else given
        running_device = [_to_device(value) for value in running]
        dense_device = [_to_device(value) for value in given] if dense else running_device
        launch = self._launch(
            adjoint_kernel(replace(self._adjoint_variant, dense=dense)),
            segment.x,
            segment.v,
            *self._arguments,
            *[_device_array(shape) for shape in self._adjoint_work_shapes()],
            *running_device,
            *dense_device,
            *self._sums.values(),
            *[runtime.to_device(array) for array in self._actuated_springs],
            steps + 1,
            self._packing.steps,
            segment.rows,
            first,
        )
        for stages in reversed(self._stage_intervals(0, steps)):
            launch(*stages)
        for target, values in zip(given, dense_device, strict=True):
            _fetch(values, target)
        if dense:
            for target, left, values in zip(given, running, running_device, strict=True):
                _fetch(values, left)
                target[:, 0] += left

    def gradients(self) -> Arrays:
        shapes = {name: shape for name, shape in self._sum_shapes().items() if shape[0]}
        sums = {name: runtime.to_host(self._sums[name], shape) for name, shape in shapes.items()}
        self.__dict__.pop("_sums", None)
        return self._packing.gradients(self._params, sums, self._needs)

    def push(self, segment: Segment, *, first: int, steps: int, tangent: Arrays) -> Arrays:
        shape = (self._batch, segment.rows, self._model.nodes, self._model.dim)
        changes = {name: np.zeros(shape, value.dtype) for name, value in tangent.items()}
        for name, value in tangent.items():
            changes[name][:, 0] = value
        on_device = [_to_device(changes[name]) for name in ("position", "velocity")]
        state = (self._batch * self._model.nodes, self._model.dim)
        variant = replace(self._variant, damped=True, ground=True, serial=True)
        tangent_kernel(variant)(
            segment.x,
            segment.v,
            *self._arguments,
            *[_device_array(state) for _ in range(2)],
            *on_device,
            *self._packing.tangents(self._params, self._control, self._tangents),
            segment.rows,
            first,
            steps * self._stages,
        )
        for name, values in zip(("position", "velocity"), on_device, strict=True):
            _fetch(values, changes[name])
        return {name: copy_rows(value[:, :: self._stages], slice(steps + 1)) for name, value in changes.items()}

    def _launch(self, kernel: Kernel, *arguments: Any) -> Callable[..., None]:
        """Prepare a launch with these arguments; a few scalars follow at each call."""
        return _Launch(kernel, arguments) if self._variant.serial else kernel.bind(*arguments)

    def _stage_intervals(self, start: int, steps: int) -> list[tuple[int, int]]:
        """Stage intervals of the launches for some steps: one launch for all stages, or one for each."""
        first, last = start * self._stages, (start + steps) * self._stages
        return [(first, last)] if self._variant.serial else [(j, j + 1) for j in range(first, last)]


class _Launch:
    """A launch that binds its arguments after a few calls, since binding takes as long as several launches."""

    def __init__(self, kernel: Kernel, arguments: tuple[Any, ...]) -> None:
        self._kernel, self._arguments = kernel, arguments
        self._calls_left = 3
        self._bound: Callable[..., None] | None = None

    def __call__(self, *scalars: int) -> None:
        if self._bound is None and self._calls_left:
            self._calls_left -= 1
            self._kernel(*self._arguments, *scalars)
            return
        if self._bound is None:
            self._bound = self._kernel.bind(*self._arguments)
        self._bound(*scalars)


def _device_array(shape: Shape) -> Any:
    return runtime.device_array(shape[:1], components=shape[1] if len(shape) > 1 else None)


def _to_device(states: Array) -> Any:
    """Flatten states [B, rows, n, dim] into an array of vectors on the device; on the CPU it is the same memory."""
    return runtime.to_device(states.reshape(-1, states.shape[-1]), vector=True)


def _fetch(values: Any, target: Array) -> None:
    """Copy what kernels wrote into `target`, unless it is the same memory."""
    found = runtime.to_host(values, target.shape)
    if not np.shares_memory(found, target):
        target[...] = found
