"""Engine of a rollout of charges, which runs its fused loops; see `simphys.simulator.Engine`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.simulator import Array, Arrays, Engine

from . import fused, fused_adjoint
from .model import Charges, check_softening, pairs_us

BODY_PARAMETERS = ("charge", "mass")
PARAMETERS = (*BODY_PARAMETERS, "coupling", "softening")

SPREAD = 512
"""Iterations of a parallel loop that the compiler assigns to one CPU thread, and so those that a piece takes."""

PIECES = 16
"""Number of pieces into which the bodies are split for CPU threads: several per thread, to balance the load."""

MANY_MEMBERS = 8
"""Smallest number of batch members that keeps the threads of a CPU busy."""

SERIAL_BODIES = 32
"""Largest number of bodies for which a GPU simulates each batch member in one thread."""


@dataclass(frozen=True)
class Segment:
    """Position and velocity of all batch members at some steps, on the device, [B, rows, dim, n]."""

    position: Any
    velocity: Any
    rows: int


class ChargesEngine(Engine):
    """Engine of a batch of systems of charges."""

    def __init__(
        self,
        model: Charges,
        params: Arrays,
        control: Array | None,
        *,
        batch: int,
        needs: frozenset[str],
        deterministic: bool,
        tangents: Arrays | None = None,
    ) -> None:
        check_softening(params["softening"])
        self._model, self._batch, self._needs, self._tangents = model, batch, needs, tangents
        self._given = {name: params[name].shape for name in PARAMETERS}
        self._control = None if control is None else control.shape
        self._params = [runtime.to_device(self._broadcast(name, params[name])) for name in PARAMETERS]
        self._field = runtime.to_device(self._broadcast_field(control), vector=True)
        self._variant = fused.Variant(
            real=runtime.real(),
            dim=model.dim,
            verlet=len(model.stages) == 2,
            single_launch=self._is_single_launch(),
            parallel=False,
            field=control is not None,
            adj_field="control" in needs,
            adj_mass="mass" in needs,
            adj_softening="softening" in needs,
        )
        self._sums = self._zeros()

    def segment_bytes(self, steps: int, *, dense: bool) -> int:
        """Count states, running adjoint, forces and adjoint sums; on a GPU also the copy of dense adjoints."""
        bodies, dim = self._batch * self._model.bodies, self._model.dim
        rows = 2 * (steps + 1) * (2 if dense and runtime.settings().on_gpu else 1)
        numbers = (rows + 3) * bodies * dim + 2 * len(PARAMETERS) * bodies + 2 * self._batch * self._steps * dim
        return numbers * runtime.real_dtype().itemsize

    def segment(self, steps: int) -> Segment:
        size = self._batch * (steps + 1) * self._model.dim * self._model.bodies
        return Segment(runtime.device_array((size,)), runtime.device_array((size,)), steps + 1)

    def load(self, segment: Segment, state: Arrays) -> None:
        put = self._copy_kernels().put
        for target, name in self._parts(segment):
            put(self._vectors(state[name]), self._model.bodies, self._batch, segment.rows, target)

    def read(self, segment: Segment, rows: slice | list[int], names: Collection[str] | None = None) -> Arrays:
        n, dim = self._model.bodies, self._model.dim
        wanted = np.arange(segment.rows, dtype=np.int32)[rows]
        take = self._copy_kernels().take
        found = {}
        for source, name in self._parts(segment):
            if names is not None and name not in names:
                continue
            taken = runtime.device_array((self._batch * len(wanted) * n,), components=dim)
            take(source, n, self._batch, segment.rows, runtime.to_device(wanted), len(wanted), taken)
            found[name] = runtime.to_host(taken, (self._batch, len(wanted), n, dim))
        return found

    def advance(self, segment: Segment, *, first: int, start: int, steps: int) -> None:
        launch = fused.forward_kernel(self._choose_variant(steps)).bind(
            segment.position, segment.velocity, *self._arguments(segment), first
        )
        last = start + steps
        for row in [start] if self._variant.single_launch else range(start, last + self._variant.verlet):
            launch(start, last, row)

    def pull(self, segment: Segment, *, first: int, steps: int, adjoint: Arrays) -> None:
        model, dense = self._model, _is_dense(adjoint)
        running = [self._vectors(adjoint[name][:, -1].copy()) for name in model.State.names()]
        dense_rows = [
            self._vectors(adjoint[name] if dense else _placeholder(model.dim)) for name in model.State.names()
        ]
        work = runtime.device_array((self._batch * model.dim * model.bodies,))
        launch = fused_adjoint.adjoint_kernel(replace(self._choose_variant(steps), dense=dense)).bind(
            segment.position,
            *self._arguments(segment),
            work,
            *running,
            *dense_rows,
            steps + 1,
            *self._sums.values(),
            first,
        )
        for at, count in [(0, steps)] if self._variant.single_launch else [(row, 1) for row in reversed(range(steps))]:
            launch(at, count)
        for name, values, rows in zip(model.State.names(), running, dense_rows, strict=True):
            if dense:
                _fetch(rows, adjoint[name])
            else:
                _fetch(values, adjoint[name][:, 0])

    def gradients(self) -> Arrays:
        sums, self._sums = self._sums, self._zeros()
        found = {}
        for name in PARAMETERS:
            if name in self._needs:
                total = runtime.to_host(sums[name], (self._batch, self._model.bodies))
                found[name] = _reduce(total if name in BODY_PARAMETERS else total.sum(axis=1), self._given[name])
        if "control" in self._needs and self._control is not None:
            total = runtime.to_host(sums["control"], (self._batch, self._steps, self._model.dim))
            found["control"] = _reduce(total, self._control)
        return found

    def push(self, segment: Segment, *, first: int, steps: int, tangent: Arrays) -> Arrays:
        real, given = runtime.real_dtype(), self._tangents or {}
        shapes = {**self._given, "control": self._control or ()}
        tangents = {name: given.get(name, np.zeros(shape, real)) for name, shape in shapes.items()}
        field = self._broadcast_field(None if self._control is None else tangents["control"])
        result = self.segment(segment.rows - 1)
        self.load(result, tangent)
        fused.tangent_kernel(replace(self._choose_variant(steps), single_launch=True))(
            segment.position, *self._arguments(segment), result.position, result.velocity,
            *[runtime.to_device(self._broadcast(name, tangents[name])) for name in PARAMETERS],
            runtime.to_device(field, vector=True), first, steps,
        )  # fmt: skip
        return self.read(result, slice(steps + 1))

    @property
    def _steps(self) -> int:
        """Number of steps with an external field."""
        return 0 if self._control is None else self._control[-2]

    def _zeros(self) -> dict[str, Any]:
        """Zeroed adjoint sums, in the order of the adjoint kernel's arguments: one entry per body, or per step."""
        zeros, real = np.zeros, runtime.real_dtype()
        bodies = self._batch * self._model.bodies
        field = zeros((max(self._batch * self._steps, 1), self._model.dim), real)
        sums = {name: runtime.to_device(zeros(bodies, real)) for name in PARAMETERS}
        return {**sums, "control": runtime.to_device(field, vector=True)}

    def _is_single_launch(self) -> bool:
        """True if one launch does all steps, with the loop over time inside that over members; else each step is one.

        The choice, and with it the result, does not depend on the number of threads.
        """
        n, batch = self._model.bodies, self._batch
        if runtime.settings().on_gpu:
            return n <= SERIAL_BODIES
        return batch >= MANY_MEMBERS or pairs_us(n, batch) <= runtime.PARALLEL_WORK_US

    def _choose_variant(self, steps: int) -> fused.Variant:
        """Choose the variant for this number of steps: with several threads where that pays."""
        work, single_launch = pairs_us(self._model.bodies, self._batch), self._variant.single_launch
        return replace(
            self._variant,
            parallel=runtime.parallel(work * steps if single_launch else work)
            and not (single_launch and self._batch == 1),
            spread=1 if runtime.settings().on_gpu or (single_launch and self._batch == 1) else SPREAD,
        )

    def _arguments(self, segment: Segment) -> list[Any]:
        """Arguments of all kernels after the states."""
        model, chosen = self._model, runtime.settings()
        pieces = self._batch * model.bodies if chosen.on_gpu else PIECES
        return [*self._params, self._field, model.dt, model.bodies, self._batch, segment.rows, self._steps, pieces]

    def _copy_kernels(self) -> Any:
        return fused.copy_kernels(runtime.real(), self._model.dim, runtime.settings().on_gpu)

    def _parts(self, segment: Segment) -> list[tuple[Any, str]]:
        return [(segment.position, "position"), (segment.velocity, "velocity")]

    def _broadcast(self, name: str, value: Array) -> Array:
        """Broadcast a parameter to all members, flat: one entry per member, or per body."""
        shape = (self._batch, *self._model.param_shapes()[name])
        return np.ascontiguousarray(np.broadcast_to(value, shape), runtime.real_dtype()).reshape(-1)

    def _broadcast_field(self, control: Array | None) -> Array:
        """Broadcast the field to all members, [B * T, dim]."""
        if control is None:
            return _placeholder(self._model.dim)
        shape = (self._batch, *control.shape[-2:])
        return np.ascontiguousarray(np.broadcast_to(control, shape), runtime.real_dtype()).reshape(-1, shape[-1])

    def _vectors(self, values: Array) -> Any:
        """Flatten values [..., dim] into an array of vectors on the device."""
        return runtime.to_device(values.reshape(-1, self._model.dim), vector=True)


def _placeholder(dim: int) -> Array:
    """Placeholder of one vector, for an argument that a variant does not read."""
    return np.zeros((1, dim), runtime.real_dtype())


def _is_dense(adjoint: Arrays) -> bool:
    """True if the adjoint of every state is given, and wanted."""
    return bool(adjoint["position"].shape[1] > 1)


def _fetch(values: Any, target: Array) -> None:
    """Copy what kernels wrote into `target`, unless it is the same memory."""
    found = runtime.to_host(values, target.shape)
    if not np.shares_memory(found, target):
        target[...] = found


def _reduce(total: Array, shape: tuple[int, ...]) -> Array:
    """Bring adjoints of all members to the given shape: sum over the batch if the parameter is shared."""
    return total.copy() if total.shape == shape else total.sum(axis=0)
