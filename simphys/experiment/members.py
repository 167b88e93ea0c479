"""Several experiments at once: selected, or stacked as one motion for checks that examine one at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from simphys.autograd import Tensor, ops
from simphys.autograd.errors import InputError
from simphys.simulator import Array, Arrays, Engine, Model, Rows, Shape
from simphys.simulator.events import Event

from .observe_field import FieldObservations
from .setup import Setup

S = TypeVar("S", bound=Setup)


def take_members(setup: S, count: int | None) -> S:
    """Keep the first `count` members and their measurement; None keeps all.

    Errors: InputError for members that have controls of their own, and for channels that see others.
    """
    if count is None or setup.members is None or count >= setup.members:
        return setup
    signal, own = setup.control(), setup.model.control_shape()
    if signal is not None and own is not None and signal.ndim > len(own) + 1:
        remedy = "Drop it, or drive all members alike."
        raise InputError("check.members", "members share their control", f"{setup.members} controls", remedy)

    def few(record: Any, shapes: Mapping[str, Shape]) -> Any:
        of_members = [name for name, shape in shapes.items() if getattr(record, name).ndim > len(shape)]
        return record.replace(**{name: getattr(record, name)[:count] for name in of_members})

    seen = setup.observations
    if isinstance(seen, FieldObservations):
        place = (slice(None),) * (1 - seen.axis) + (slice(count),)
        unseen = None if seen.validation is None else seen.validation[place]
        seen = replace(seen, values=seen.values[place], weights=seen.weights[place], validation=unseen)
    elif seen is not None:
        last = max([need.index[0] for channel in seen.channels for need in channel.needs])
        if last >= count:
            found, remedy = f"{count}, and a channel of member {last}", f"Raise it to {last + 1}, or drop it."
            raise InputError("check.members", "holds all members that channels see", found, remedy)
    state, params = few(setup.state, setup.model.state_shapes()), few(setup.params, setup.model.param_shapes())
    return replace(setup, state=state, params=params, observations=seen)


def take_member(setup: Setup, member: int) -> tuple[Any, Any]:
    """Return the simulator of one member, and its parameters."""
    model = setup.model.model if isinstance(setup.model, StackedMembers) else setup.model
    params = setup.params
    own = [name for name, shape in model.param_shapes().items() if getattr(params, name).ndim > len(shape)]
    return model, params.replace(**{name: getattr(params, name)[member] for name in own})


def stack_members(setup: S) -> S:
    """Make one motion of all members: each field of the state has an axis of members, and the loss is the same.

    Checks of gradients and adjoint health examine one motion.
    """
    if setup.members is None:
        return setup
    count, shapes = setup.members, setup.model.param_shapes()
    batched = frozenset([name for name, shape in shapes.items() if getattr(setup.params, name).ndim > len(shape)])
    signal = setup.control()
    own = setup.model.control_shape()
    batched |= {"control"} if signal is not None and own is not None and signal.ndim > len(own) + 1 else set()
    start = {name: ops.broadcast_to(getattr(setup.state, name), shape) for name, shape in setup.moving_shapes().items()}
    seen = setup.observations
    return replace(
        setup,
        model=StackedMembers.of(setup.model, count, batched),
        state=setup.state.replace(**start),
        observations=None if seen is None else seen.rows_first(),
    )


def control_of(setup: Setup) -> Tensor | None:
    """Compute the control of each step of a motion: [T, A], or [T, members, A] of stacked ones with their own."""
    signal = setup.control()
    if signal is None or not isinstance(setup.model, StackedMembers) or "control" not in setup.model.batched:
        return signal
    return ops.transpose(signal, (1, 0, *range(2, signal.ndim)))


@dataclass(frozen=True)
class StackedMembers(Model):
    """A simulator of all members of another one: each field of its state, and each parameter that is not shared, has
    an axis of members in front."""

    model: Any
    count: int
    """Number of members."""
    batched: frozenset[str]
    """The parameters, and "control", that each member has its own of."""
    dt: float
    Params: type[Any]
    State: type[Any]

    @classmethod
    def of(cls, model: Any, count: int, batched: frozenset[str]) -> StackedMembers:
        """Join `count` members of a simulator, which differ in the batched parameters."""
        return cls(model, count, batched, float(model.dt), model.Params, model.State)

    def _lead(self, name: str, shape: Shape) -> Shape:
        return (self.count, *shape) if name in self.batched else shape

    def param_shapes(self) -> Mapping[str, Shape]:
        return {name: self._lead(name, shape) for name, shape in self.model.param_shapes().items()}

    def state_shapes(self) -> Mapping[str, Shape]:
        return {name: (self.count, *shape) for name, shape in self.model.state_shapes().items()}

    def control_shape(self) -> Shape | None:
        shape = self.model.control_shape()
        return None if shape is None else self._lead("control", shape)

    def step(self, params: Any, state: Any, control: Tensor | None = None) -> Any:
        """The nested step of each member."""
        after = []
        for member in range(self.count):
            own = {name: getattr(params, name)[member] for name in params.names() if name in self.batched}
            force = control[member] if control is not None and "control" in self.batched else control
            before = state.replace(**{name: getattr(state, name)[member] for name in state.names()})
            after.append(self.model.step(params.replace(**own), before, force))
        return state.replace(**{name: ops.stack([getattr(each, name) for each in after]) for name in state.names()})

    def engine(
        self,
        params: Arrays,
        control: Array | None,
        *,
        batch: int,
        needs: frozenset[str],
        deterministic: bool,
        tangents: Arrays | None = None,
    ) -> Engine:
        """The fused loops of all members."""
        return _Engine(self, params, control, batch, needs, deterministic, tangents)

    def advice(self, params: Arrays, state: Arrays) -> str:
        """Advise on the member with the largest state."""
        sizes = [
            max(np.abs(values[member]).max(initial=0) for values in state.values()) for member in range(self.count)
        ]
        worst = int(np.argmax(sizes))
        own = {name: values[worst] if name in self.batched else values for name, values in params.items()}
        return str(self.model.advice(own, {name: values[worst] for name, values in state.items()}))

    def events(self, params: Arrays, states: Arrays, control: Array | None) -> tuple[Event, ...]:
        """Those of all members, in the order of time; the member is named first."""
        found = []
        for member in range(self.count):
            own = {name: values[member] if name in self.batched else values for name, values in params.items()}
            motion = {name: values[:, member] for name, values in states.items()}
            force = control[:, member] if control is not None and "control" in self.batched else control
            told = self.model.events(own, motion, force)
            found += [replace(event, what=f"member {member}: {event.what}") for event in told]
        return tuple(sorted(found, key=lambda event: event.time))


class _Engine(Engine):
    """An engine of `batch` times `count` members of the simulator itself, seen as `batch` ones."""

    def __init__(
        self,
        of: StackedMembers,
        params: Arrays,
        control: Array | None,
        batch: int,
        needs: frozenset[str],
        deterministic: bool,
        tangents: Arrays | None,
    ) -> None:
        self.of, self.batch = of, batch
        self._given = {name: values.shape for name, values in params.items()}
        if control is not None:
            self._given["control"] = control.shape
        split = {name: self._split(name, values) for name, values in params.items()}
        pushed = None if tangents is None else {name: self._split(name, values) for name, values in tangents.items()}
        self._engine: Engine = of.model.engine(
            split,
            None if control is None else self._split("control", control),
            batch=batch * of.count,
            needs=needs,
            deterministic=deterministic,
            tangents=pushed,
        )

    def _is_batched(self, name: str) -> bool:
        """Return True if a parameter, or the control, was given with a batch axis."""
        own = self.of.control_shape() if name == "control" else self.of.param_shapes()[name]
        assert own is not None
        return len(self._given[name]) > len(own) + (name == "control")

    def _split(self, name: str, values: Array) -> Array:
        """A parameter, or the control, as the simulator itself takes it: shared, or one for each member of all."""
        count = self.of.count
        if not self._is_batched(name):
            values = values[None]
            if name not in self.of.batched:
                return values[0]
            if self.batch > 1:
                values = np.repeat(values, self.batch, axis=0)
        elif name not in self.of.batched:
            return np.repeat(values, count, axis=0)
        if name == "control":  # [batch, T, count, ...]
            values = np.moveaxis(values, 2, 1)
        return np.ascontiguousarray(values.reshape(self.batch * count, *values.shape[2:]))

    def _joined(self, states: Arrays) -> Arrays:
        """States along time [batch * count, rows, ...] as [batch, rows, count, ...]."""
        return {
            name: np.ascontiguousarray(np.moveaxis(values.reshape(self.batch, self.of.count, *values.shape[1:]), 1, 2))
            for name, values in states.items()
        }

    def _parted(self, states: Arrays) -> Arrays:
        """The reverse of `_joined`."""
        return {
            name: np.ascontiguousarray(np.moveaxis(values, 2, 1)).reshape(
                self.batch * self.of.count, values.shape[1], *values.shape[3:]
            )
            for name, values in states.items()
        }

    def _flat(self, state: Arrays) -> Arrays:
        """A state [batch, count, ...] as [batch * count, ...]."""
        return {
            name: np.ascontiguousarray(values.reshape(self.batch * self.of.count, *values.shape[2:]))
            for name, values in state.items()
        }

    def segment_bytes(self, steps: int, *, dense: bool) -> int:
        return self._engine.segment_bytes(steps, dense=dense)

    def segment(self, steps: int) -> Any:
        return self._engine.segment(steps)

    def load(self, segment: Any, state: Arrays) -> None:
        self._engine.load(segment, self._flat(state))

    def advance(self, segment: Any, *, first: int, start: int, steps: int) -> None:
        self._engine.advance(segment, first=first, start=start, steps=steps)

    def read(self, segment: Any, rows: Rows, names: Collection[str] | None = None) -> Arrays:
        return self._joined(self._engine.read(segment, rows, names))

    def pull(self, segment: Any, *, first: int, steps: int, adjoint: Arrays) -> None:
        parted = self._parted(adjoint)
        self._engine.pull(segment, first=first, steps=steps, adjoint=parted)
        for name, values in self._joined(parted).items():
            adjoint[name][:] = values

    def gradients(self) -> Arrays:
        return {name: self._gathered(name, values) for name, values in self._engine.gradients().items()}

    def _gathered(self, name: str, values: Array) -> Array:
        """A gradient as `_split` made its parameter, back in the shape that was given; of what was shared the sum."""
        if name not in self.of.batched and not self._is_batched(name):
            return values
        values = values.reshape(self.batch, self.of.count, *values.shape[1:])
        if name not in self.of.batched:
            return np.asarray(values.sum(axis=1))
        if name == "control":
            values = np.moveaxis(values, 1, 2)
        return np.ascontiguousarray(values) if self._is_batched(name) else np.asarray(values.sum(axis=0))

    def push(self, segment: Any, *, first: int, steps: int, tangent: Arrays) -> Arrays:
        return self._joined(self._engine.push(segment, first=first, steps=steps, tangent=self._flat(tangent)))
