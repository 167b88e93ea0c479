"""What a simulator is: the contract between its physics and the machinery that all simulators share.

A simulator's folder holds its physics and nothing else:

- `model.py`: Params and State, dataclasses of Tensors with documented fields, and the model, which holds everything
  that no gradient flows to (topology, time step);
- a file for each physical sub-step: element functions f / adj_f, kernels, a Function;
- `step.py`: the nested step, which reads as the algorithm;
- `engine.py`: the same element functions in fused loops over time: the model's `Engine`.

Rollouts, memory budgets, batches, checks of gradients, adjoint health and scenes come from outside, through `Model` and
`Engine`, and are the same for all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from simphys.autograd import Tensor, tensor
from simphys.autograd.errors import InputError

from .arrays import Array, Arrays, Shape
from .bodies import Bodies
from .events import Event
from .grids import Grid


class Record:
    """Base of Params and State: a frozen dataclass whose fields are Tensors."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The fields, in order."""
        return tuple([field.name for field in fields(cls)])

    def tensors(self) -> tuple[Tensor, ...]:
        """All fields, in order."""
        return tuple([getattr(self, name) for name in self.names()])

    def arrays(self) -> Arrays:
        """The values of all fields by name."""
        return {name: getattr(self, name).data for name in self.names()}

    def replace(self, **changes: Tensor | npt.ArrayLike) -> Self:
        """Return a copy with other values in some fields.

        A number fills its field; a list or an array has the field's present shape; a Tensor is taken as it is, and
        gradients flow to it. Errors: InputError for an unknown name, a shape that does not fit, or no numbers.
        """
        for name in changes:
            if name not in self.names():
                known = f"the fields are {', '.join(self.names())}"
                raise InputError(f"{type(self).__name__}.replace", known, name, "Name one of these.")
        values = {n: v if isinstance(v, Tensor) else self._tensor_for(n, v) for n, v in changes.items()}
        return replace(self, **values)

    def _tensor_for(self, name: str, value: npt.ArrayLike) -> Tensor:
        """Make a Tensor of the present shape and precision of a field. Errors: InputError."""
        present: Tensor = getattr(self, name)
        source, shape = f"{type(self).__name__}.replace, {name}", list(present.shape)
        try:
            array = np.asarray(value)
        except ValueError:  # rows of different lengths
            array = np.asarray(None)
        if array.dtype.kind not in "iuf":
            raise InputError(source, f"must be numbers, of shape {shape}", repr(value), "Pass one number, or an array.")
        if array.ndim and array.shape != present.shape:
            remedy = "Pass one number to fill the field, an array of that shape, or a Tensor, which may be a batch."
            raise InputError(source, f"must be of shape {shape}", f"shape {list(array.shape)}", remedy)
        return tensor(np.broadcast_to(array, present.shape), dtype=present.dtype)


class Engine(Protocol):
    """The fused loops of one rollout, over arrays: made by `Model.engine`, it lives until that rollout's backward.

    Arrays have an explicit batch axis B (1 where nothing is batched). A state is Arrays of [B, *shape]; states along
    time are Arrays of [B, rows, *shape]. A segment is storage for the states of some steps, on the device.
    """

    def segment_bytes(self, steps: int, *, dense: bool) -> int:
        """Memory [B] of a segment of so many steps and of what `pull` of it needs besides, with `dense` adjoints.

        The engine's own sums count, the adjoint that `pull` is given does not.
        """
        ...

    def segment(self, steps: int) -> Any:
        """Storage for the states of `steps` steps: steps + 1 rows, the first and the last one included."""
        ...

    def load(self, segment: Any, state: Arrays) -> None:
        """Make `state` the first of the segment."""
        ...

    def advance(self, segment: Any, *, first: int, start: int, steps: int) -> None:
        """Compute states start + 1 ... start + steps of the segment, whose first state (row 0) is step `first`."""
        ...

    def read(self, segment: Any, rows: slice | list[int]) -> Arrays:
        """Copies of states of the segment, [B, rows, *shape]."""
        ...

    def pull(self, segment: Any, *, first: int, steps: int, adjoint: Arrays) -> None:
        """Reverse the segment's `steps` steps, adding what reaches parameters and controls to the engine's sums.

        `adjoint` [B, rows, *shape] is written in place. With one row: the adjoint of the last state in, that of the
        first one out. With steps + 1 rows (dense): the loss's derivative by each state in, the whole adjoint of each
        state out.
        """
        ...

    def gradients(self) -> Arrays:
        """What `pull` has summed up since the last call, cleared thereby: the adjoints of wanted parameters, each of
        its own shape [*shape] or [B, *shape] as it was given (a shared one's is summed over the batch in order), and
        "control", like the controls.
        """
        ...

    def push(self, segment: Any, *, first: int, steps: int, tangent: Arrays) -> Arrays:
        """Tangents of all states of the segment, [B, steps + 1, *shape], from that of its first one [B, *shape].

        Tangents of parameters and controls are those that `Model.engine` was given. The segment may be of another
        engine for the same parameters. Errors: MissingJvp where the simulator has no tangents.
        """
        ...


class Frugal(Protocol):
    """What an engine may offer besides, so that rollouts take less memory: they look for these names."""

    needs_states: bool
    """Whether `pull` reads states. Where the physics is linear it need not: then none is stored."""

    fields_apart: bool
    """Each field of the adjoint that `pull` takes may have one row where others have steps + 1, and `read` takes the
    names of fields to read, `read(segment, rows, names)`."""

    def tape_bytes(self, steps: int) -> int | None:
        """Memory [B] of a tape of so many steps, from which states are computed again backward in time.

        None where that cannot be done.
        """
        ...

    def tape(self, steps: int) -> Any:
        """An empty tape."""
        ...

    def record(self, tape: Any, segment: Any, *, first: int, steps: int) -> None:
        """Put onto the tape what `rebuild` needs of a segment of `steps` steps; segments come in order."""
        ...

    def rebuild(self, tape: Any, segment: Any, *, first: int, steps: int) -> None:
        """Fill the segment with the states of its steps, from its first row, which holds the state behind them.

        The last ones of the horizon come from the end of the tape.
        """
        ...


def _accept(params: Arrays) -> None:
    """Accept any parameters."""


def _no_events(model: Model, params: Arrays, states: Arrays, control: Array | None) -> tuple[Event, ...]:
    return ()


def _no_advice(model: Model, params: Arrays, state: Arrays) -> str:
    return "Take a smaller time step, or begin with less motion."


@dataclass(frozen=True)
class Bound:
    """The machinery of a model: see `Model.bind`."""

    step: Callable[..., Any]
    engine: Callable[..., Engine]
    check: Callable[[Arrays], None] = _accept
    events: Callable[[Any, Arrays, Arrays, Array | None], tuple[Event, ...]] = _no_events
    advice: Callable[[Any, Arrays, Arrays], str] = _no_advice


def _unbound(model: Model, *arguments: Any, **options: Any) -> Any:
    raise InputError(
        f"{type(model).__name__}",
        "a model has a step and an engine",
        "neither",
        "Define the methods step and engine, or bind functions: Model.bind(step=..., engine=...).",
    )


class Model(ABC):
    """A simulator with everything that no gradient flows to: topology, time step, integrator.

    A subclass is data. The simulator's `__init__.py` gives it a step and an engine by `bind`; a small simulator may
    define these two methods itself.
    """

    Params: Any
    """The class of its parameters, a Record."""
    State: Any
    """The class of its states, a Record."""
    dt: float
    """Time step [s]."""

    _bound: ClassVar[Bound]

    @classmethod
    def bind(
        cls,
        *,
        step: Callable[..., Any],
        engine: Callable[..., Engine],
        check: Callable[[Arrays], None] = _accept,
        events: Callable[[Any, Arrays, Arrays, Array | None], tuple[Event, ...]] = _no_events,
        advice: Callable[[Any, Arrays, Arrays], str] = _no_advice,
    ) -> None:
        """Give the model its machinery: functions that take the model first, like the methods of the same names.

        `check` raises UnphysicalValue for parameters that no engine should see.
        """
        cls._bound = Bound(step, engine, check, events, advice)

    @abstractmethod
    def param_shapes(self) -> Mapping[str, Shape]:
        """Return the shape of each field of Params, without a batch axis."""

    @abstractmethod
    def state_shapes(self) -> Mapping[str, Shape]:
        """Return the shape of each field of State, without a batch axis."""

    def control_shape(self) -> Shape | None:
        """Return the shape of the control of one step, without a batch axis; None if the simulator takes none."""
        return None

    def step(self, params: Any, state: Any, control: Tensor | None = None) -> Any:
        """Advance a state by the nested step: one node of the graph for each sub-step."""
        return self._bound.step(self, params, state, control)

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
        """Make the fused loops for these parameters, each of its own shape or batched [B, *shape].

        `control` is [T, *shape] or [B, T, *shape]. `needs` names the parameters (and "control") whose adjoints are
        wanted. `deterministic`: results do not depend on the number of threads. `tangents` of parameters and of
        "control", by name, are for `push`.
        """
        self._bound.check(params)
        return self._bound.engine(
            self, params, control, batch=batch, needs=needs, deterministic=deterministic, tangents=tangents
        )

    def events(self, params: Arrays, states: Arrays, control: Array | None) -> tuple[Event, ...]:
        """Find the events of a motion with these states [rows, *shape], in order of time, without a batch axis.

        Nearness to a kink counts as an event where rounding could not tell the two apart.
        """
        exact = {name: np.asarray(values, np.float64) for name, values in states.items()}
        return self._bound.events(self, params, exact, control)

    def advice(self, params: Arrays, state: Arrays) -> str:
        """Name the probable cause of a blow-up after this last finite state, and a remedy, without a batch axis."""
        return self._bound.advice(self, params, state)

    def describe_bodies(self, params: Arrays) -> Bodies | None:
        """Describe the bodies of a state that consists of some."""
        return None

    def describe_grid(self) -> Grid | None:
        """Describe the grid of a state that consists of fields on one."""
        return None


Model._bound = Bound(_unbound, _unbound)
