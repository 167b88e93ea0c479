"""Checked inputs of a rollout: shapes must match the model's, with or without a leading batch axis."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..autograd import Tensor, runtime
from ..autograd.errors import InputError
from ..simulator import Array, Arrays, Model, Record, Shape
from .trajectory import Trajectory

Keep = str | Sequence[int]

PIECE = 2**18
"""Bytes of states that are copied out of a segment at once; one state at least."""


@dataclass(frozen=True)
class Inputs:
    """Tensors of a rollout, and the batch size that follows from their shapes."""

    model: Model
    params: Any
    state: Any
    control: Tensor | None
    steps: int
    batch: int | None
    """Number of batch members; None if nothing is batched."""

    @property
    def members(self) -> int:
        """Length of the engine's batch axis."""
        return self.batch or 1

    @cached_property
    def state_shapes(self) -> dict[str, Shape]:
        """Shape of each field of the state without a batch axis, in the order of its Tensors."""
        return {name: self.model.state_shapes()[name] for name in self.state.names()}

    @cached_property
    def param_shapes(self) -> dict[str, Shape]:
        """Shape of each parameter without a batch axis, in the order of their Tensors."""
        shapes = self.model.param_shapes()
        return {name: shapes[name] for name in self.params.names()}

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Data type of all inputs."""
        return self.state.tensors()[0].dtype

    def state_bytes(self, rows: int, fields: Collection[str] | None = None) -> int:
        """Memory [B] of `rows` states of all batch members; of the given fields alone, if any are given."""
        sizes = [math.prod(shape) for name, shape in self.state_shapes.items() if fields is None or name in fields]
        return self.members * rows * self.dtype.itemsize * sum(sizes)

    @cached_property
    def piece(self) -> int:
        """Number of states that are copied out of a segment at once."""
        return min(max(1, PIECE // max(self.state_bytes(1), 1)), self.steps)

    def arrays(self) -> tuple[Arrays, Array | None]:
        """Parameters and control as arrays, for an engine."""
        return self.params.arrays(), None if self.control is None else self.control.data

    def tensors(self) -> list[Tensor]:
        """State fields, parameters and control, in the order of a rollout's inputs."""
        return [*self.state.tensors(), *self.params.tensors(), *([] if self.control is None else [self.control])]

    @cached_property
    def start(self) -> Arrays:
        """The initial state, broadcast to the engine's batch axis: views [B, *shape]."""
        return {
            name: np.broadcast_to(array, (self.members, *self.state_shapes[name]))
            for name, array in self.state.arrays().items()
        }


def read_inputs(model: Model, params: Any, state: Any, control: Tensor | None, steps: int) -> Inputs:
    """Check all inputs. Errors: InputError with the field, the shape that it should have and the shape that it has."""
    if np.ndim(steps) or np.asarray(steps).dtype.kind not in "iu" or steps < 1:
        raise InputError("rollout", "steps is a number, at least 1", steps, "Ask for one step or more.")
    expected: list[tuple[str, Tensor, Shape]] = []
    for what, record, shapes in (("state", state, model.state_shapes()), ("params", params, model.param_shapes())):
        _require_record(what, record, shapes)
        expected += [(f"{what}.{name}", getattr(record, name), shape) for name, shape in shapes.items()]
    for name in state.names():
        if hasattr(Trajectory, name) or name in Trajectory.__dataclass_fields__:
            remedy = "Rename the field of the state."
            raise InputError("rollout", "no field of a state is called like a part of a Trajectory", name, remedy)
    shape = model.control_shape()
    if control is not None:
        _require_tensor("control", control)
        if shape is None:
            raise InputError("rollout", "this simulator takes no control", f"shape {control.shape}", "Leave it out.")
        expected.append(("control", control, (steps, *shape)))
    batches: dict[int, str] = {}
    dtype = expected[0][1].dtype
    runtime.require_precision(f"rollout, {expected[0][0]}", expected[0][1])
    for name, tensor, shape in expected:
        if tensor.dtype.kind != "f" or tensor.dtype != dtype:
            remedy = "Convert it: tensor(..., dtype=...)."
            raise InputError(f"rollout, {name}", f"all inputs are {_float(dtype)}", str(tensor.dtype), remedy)
        batched = tensor.ndim == len(shape) + 1
        if tensor.shape[1 if batched else 0 :] != shape:
            wanted = f"{list(shape)}, or [B, ...] with a batch axis in front"
            raise InputError(f"rollout, {name}", f"its shape is {wanted}", list(tensor.shape), "Pass that shape.")
        if batched:
            batches.setdefault(tensor.shape[0], name)
    if len(batches) > 1:
        found = ", ".join(f"{name} has {size}" for size, name in batches.items())
        raise InputError("rollout", "all batched inputs have the same number of members", found, "Make them equal.")
    if 0 in batches:
        raise InputError("rollout", "a batch has a member", f"{batches[0]} has none", "Pass one member or more.")
    model.check_start(params.arrays(), state.arrays())
    return Inputs(model, params, state, control, steps, next(iter(batches), None))


def _require_record(what: str, record: Any, shapes: Mapping[str, Shape]) -> None:
    """Raise InputError unless a record has all the fields of the model's, as Tensors."""
    source, wanted = f"rollout, {what}", ", ".join(shapes)
    if not isinstance(record, Record):
        remedy = f"Pass the model's {'State' if what == 'state' else 'Params'}."
        raise InputError(source, f"is a record with the fields {wanted}", type(record).__name__, remedy)
    if not set(shapes) <= set(record.names()):
        remedy = "The order of the arguments is rollout(model, params, state, ...)."
        raise InputError(source, f"has the fields {wanted}", ", ".join(record.names()), remedy)
    for name in shapes:
        _require_tensor(f"{what}.{name}", getattr(record, name))


def _require_tensor(name: str, value: Any) -> None:
    if not isinstance(value, Tensor):
        remedy = "Wrap it: simphys.autograd.tensor(...)."
        raise InputError(f"rollout, {name}", "is a Tensor", type(value).__name__, remedy)


def resolve_keep(keep: Keep, steps: int) -> Array:
    """Resolve `keep` to step numbers in ascending order. Errors: InputError for steps outside the horizon."""
    if isinstance(keep, str):
        if keep not in ("all", "final"):
            remedy = 'Pass "all", "final" or a list of step numbers.'
            raise InputError("rollout, keep", "it is all, final or step numbers", keep, remedy)
        return np.arange(steps + 1) if keep == "all" else np.array([steps])
    chosen = np.asarray(keep)
    if chosen.ndim != 1 or not (chosen[1:] > chosen[:-1]).all():
        chosen = np.unique(chosen)
    if chosen.size == 0 or chosen.dtype.kind not in "iu" or chosen[0] < 0 or chosen[-1] > steps:
        found = "none" if chosen.size == 0 else f"{chosen[0]} ... {chosen[-1]}"
        raise InputError("rollout, keep", f"steps lie in 0 ... {steps}", found, "Pass steps of the horizon.")
    return chosen.astype(np.int64)


def resolve_fields(fields: Collection[str] | None, inputs: Inputs) -> frozenset[str]:
    """Resolve `fields` to the names of the fields to keep. Errors: InputError for an unknown field."""
    names = list(inputs.state_shapes)
    for name in fields or ():
        if name not in names:
            raise InputError("rollout, fields", f"each is one of {', '.join(names)}", name, "Name fields of the state.")
    return frozenset(names if fields is None else fields)


def _float(dtype: np.dtype[Any]) -> str:
    return str(dtype) if dtype.kind == "f" else "floating-point numbers"
