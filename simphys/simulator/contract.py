"""Contract between a simulator's physics and the machinery that all simulators share.

A simulator's folder holds its physics and nothing else:

- `model.py`: Params and State, dataclasses of Tensors, each declared with shape, unit and sign, and the model, which
  holds everything that no gradient flows to (topology, time step);
- a file for each physical sub-step: an element function with its adjoint and tangent, and the pattern that applies it;
- `step.py`: the nested step, which reads as the algorithm;
- `__init__.py`: binds the step, and the engine generated from it (`engine_of(step)`), to the model.

Rollouts, memory budgets, batches, checks of gradients, adjoint health and scenes use the simulator through `Model` and
`Engine`, and are the same for all simulators.
"""

from __future__ import annotations

from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from simphys.autograd import Tensor
from simphys.autograd.errors import InputError, MissingJvp

from .arrays import Array, Arrays, Rows, Shape, locked
from .bodies import Bodies
from .declare import declared_shapes, require_signs
from .events import Event
from .grids import Grid
from .markers import Markers, mark_nodes
from .model_checks import require_positive_fields
from .step_limit import StepLimit
from .waves import Waves


class Quantity(NamedTuple):
    """Numbers with a unit."""

    values: Array
    unit: str


class Engine(ABC):
    """Fused loops of one rollout, over arrays. `Model.engine` makes it, and it lives until that rollout's backward.

    Arrays have an explicit batch axis B (of length 1 if nothing is batched). A state is Arrays of [B, *shape]; states
    along time are Arrays of [B, rows, *shape]. A segment is storage for the states of consecutive steps, on the device.

    Abstract methods are the whole of a simple engine. The others have plain defaults: an engine overrides them where
    its physics saves memory, or has tangents.
    """

    @property
    def needs_states(self) -> bool:
        """True if `pull` reads states; False, as for linear physics, lets a rollout store none."""
        return True

    @property
    def segments_roll(self) -> bool:
        """True if a segment may be advanced beyond its rows, and then holds the last states alone.

        Rows are taken modulo their number, so that `segment(0)` holds one state, whatever the number of steps.
        """
        return False

    @property
    def sparse_adjoints(self) -> bool:
        """True if `pull` takes dense adjoints for some fields, and one row for the others."""
        return False

    @abstractmethod
    def segment_bytes(self, steps: int, *, dense: bool) -> int:
        """Memory [B] of a segment of `steps` steps and of the workspace of its `pull`, with `dense` adjoints.

        The engine's adjoint sums are included, the `adjoint` argument of `pull` is not.
        """

    @abstractmethod
    def segment(self, steps: int) -> Any:
        """Allocate storage for the states of `steps` steps: steps + 1 rows, including the first and the last one."""

    @abstractmethod
    def load(self, segment: Any, state: Arrays) -> None:
        """Make `state` the first state of the segment."""

    @abstractmethod
    def advance(self, segment: Any, *, first: int, start: int, steps: int) -> None:
        """Compute states start + 1 ... start + steps of the segment, whose first state (row 0) is step `first`."""

    @abstractmethod
    def read(self, segment: Any, rows: Rows, names: Collection[str] | None = None) -> Arrays:
        """Copy states of the segment, [B, rows, *shape]: all fields, or at least those named."""

    def views(self, segment: Any) -> Arrays:
        """Return views [B, rows, *shape] of those fields that lie so in the host's memory, to read from.

        An engine whose segments roll has none.
        """
        return {}

    @abstractmethod
    def pull(self, segment: Any, *, first: int, steps: int, adjoint: Arrays) -> None:
        """Reverse the segment's `steps` steps, and add the adjoints of parameters and control to the adjoint sums.

        `adjoint` [B, rows, *shape] is overwritten. With one row: the adjoint of the last state in, that of the first
        one out. With steps + 1 rows (dense): the loss's derivative with respect to each state in, the whole adjoint of
        each state out.
        """

    @abstractmethod
    def gradients(self) -> Arrays:
        """Return the adjoint sums of `pull` since the last call, and reset them.

        They are the adjoints of the needed parameters and of "control", each in the shape in which it was given:
        [*shape] or [B, *shape]. The adjoint of a shared parameter is summed over the batch in order.
        """

    def push(self, segment: Any, *, first: int, steps: int, tangent: Arrays) -> Arrays:
        """Compute the tangents of all states of the segment, [B, steps + 1, *shape], from the first one [B, *shape].

        The tangents of parameters and control are those given to `Model.engine`. The segment may belong to another
        engine for the same parameters. Errors: MissingJvp if the simulator has no tangents.
        """
        raise MissingJvp(
            f"{type(self).__name__} has no push, so no tangent can go through its rollouts. Use reverse mode."
        )


class Rewinding(ABC):
    """Part of an engine that can recompute its states backward in time: beside Engine, a base of such an engine."""

    @abstractmethod
    def tape_bytes(self, steps: int) -> int | None:
        """Memory [B] of a tape of `steps` steps, from which states are recomputed backward; None: it makes none."""

    @abstractmethod
    def tape(self, steps: int) -> Any:
        """Make an empty tape for `steps` steps."""

    @abstractmethod
    def record(self, tape: Any, segment: Any, *, first: int, steps: int) -> None:
        """Record on the tape what `rebuild` of a segment of `steps` steps needs; segments come in order."""

    @abstractmethod
    def rebuild(self, tape: Any, segment: Any, *, first: int, steps: int) -> None:
        """Recompute the states of a segment backward in time, from its first row, which holds the state after them.

        The last states of the horizon come from the end of the tape.
        """


def _accept(*fields: Arrays) -> None:
    """Accept any parameters and states."""


def _no_events(model: Model, params: Arrays, states: Arrays, control: Array | None) -> tuple[Event, ...]:
    return ()


def _no_stresses(model: Model, params: Arrays, states: Arrays) -> dict[str, Quantity]:
    return {}


def _no_advice(model: Model, params: Arrays, state: Arrays) -> str:
    return ""


def _no_limits(model: Model, params: Arrays, state: Arrays) -> tuple[StepLimit, ...]:
    return (StepLimit(np.inf, systems=((model, params, state),)),)


@dataclass(frozen=True)
class Bound:
    """Machinery of a model, see `Model.bind`."""

    step: Callable[..., Any]
    engine: Callable[..., Engine]
    check: Callable[[Arrays], None] = _accept
    events: Callable[[Any, Arrays, Arrays, Array | None], tuple[Event, ...]] = _no_events
    advice: Callable[[Any, Arrays, Arrays], str] = _no_advice
    check_state: Callable[[Arrays], None] = _accept
    check_start: Callable[[Arrays, Arrays], None] = _accept
    stresses: Callable[[Any, Arrays, Arrays], dict[str, Quantity]] = _no_stresses
    step_limits: Callable[[Any, Arrays, Arrays], tuple[StepLimit, ...]] = _no_limits


def _unbound(model: Model, *arguments: Any, **options: Any) -> Any:
    raise InputError(
        f"{type(model).__name__}",
        "a model has a step and an engine",
        "neither",
        "Define the methods step and engine, or bind functions: Model.bind(step=..., engine=...).",
    )


class ModelType(ABCMeta):
    """Maker of models that stay as they are, since kernels are compiled for them and no version tells of a change.

    The time step is checked, arrays become copies that are locked, lists of numbers become tuples, and attributes are
    set no more.
    """

    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        model = super().__call__(*arguments, **named)
        if "dt" in model.__dict__:
            require_positive_fields(model, "dt")
        for name, value in list(model.__dict__.items()):
            if type(value) is np.ndarray and value.flags.writeable:
                model.__dict__[name] = locked(value.copy())
            elif isinstance(value, list):
                model.__dict__[name] = _as_tuple(value)
        model.__dict__["_is_made"] = True
        return model


def _as_tuple(value: Any) -> Any:
    return tuple([_as_tuple(each) for each in value]) if isinstance(value, list) else value


class Model(metaclass=ModelType):
    """Simulator with all its data that no gradient flows to: topology, time step, integrator.

    A subclass is data. The simulator's `__init__.py` gives it a step and an engine by `bind`; a small simulator may
    define these two methods itself.
    """

    Params: Any
    """Class of its parameters, a Record."""
    State: Any
    """Class of its states, a Record."""
    dt: float
    """Time step [s]."""

    _bound: ClassVar[Bound]

    def __setattr__(self, name: str, value: Any) -> None:
        if "_is_made" in self.__dict__:
            who = f"{type(self).__name__}.{name}"
            remedy = "Make another model; of a dataclass by dataclasses.replace."
            raise InputError(who, "a model stays as it is: kernels are compiled for it", f"{value!r}", remedy)
        super().__setattr__(name, value)

    @classmethod
    def bind(
        cls,
        *,
        step: Callable[..., Any],
        engine: Callable[..., Engine],
        check: Callable[[Arrays], None] = _accept,
        events: Callable[[Any, Arrays, Arrays, Array | None], tuple[Event, ...]] = _no_events,
        advice: Callable[[Any, Arrays, Arrays], str] = _no_advice,
        check_state: Callable[[Arrays], None] = _accept,
        check_start: Callable[[Arrays, Arrays], None] = _accept,
        stresses: Callable[[Any, Arrays, Arrays], dict[str, Quantity]] = _no_stresses,
        step_limits: Callable[[Any, Arrays, Arrays], tuple[StepLimit, ...]] = _no_limits,
    ) -> None:
        """Give the model its machinery: functions that take the model first, like the methods of the same names.

        `check` raises UnphysicalValue for parameters of the declared signs that no engine should see, `check_state` for
        states that no step should see, and `check_start` for parameters and states that no rollout may begin with.
        """
        cls._bound = Bound(step, engine, check, events, advice, check_state, check_start, stresses, step_limits)

    def param_shapes(self) -> Mapping[str, Shape]:
        """Return the shape of each field of Params, without a batch axis; by default as declared."""
        return declared_shapes(self, self.Params)

    def state_shapes(self) -> Mapping[str, Shape]:
        """Return the shape of each field of State, without a batch axis; by default as declared."""
        return declared_shapes(self, self.State)

    def control_shape(self) -> Shape | None:
        """Return the shape of the control of one step, without a batch axis; None if the simulator takes none."""
        return None

    def step(self, params: Any, state: Any, control: Tensor | None = None) -> Any:
        """Advance a state by the nested step: one node of the graph for each sub-step."""
        self.check_params(params.arrays())
        self.check_state(state.arrays())
        return self._bound.step(self, params, state, control)

    def check_params(self, params: Arrays) -> None:
        """Raise UnphysicalValue for parameters, each of its own shape or batched, that no engine should see.

        They have the declared signs, and pass the `check` of `bind`.
        """
        require_signs(type(self).__name__, self.Params, params)
        self._bound.check(params)

    def check_state(self, state: Arrays) -> None:
        """Raise UnphysicalValue for a state, with a batch axis or without, that no step should see."""
        self._bound.check_state(state)

    def check_start(self, params: Arrays, state: Arrays) -> None:
        """Raise UnphysicalValue for parameters and a state, batched or not, that no rollout may begin with."""
        self.check_state(state)
        self._bound.check_start(params, state)

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
        """Make the engine for these parameters, each of its own shape or batched [B, *shape].

        `control` is [T, *shape] or [B, T, *shape]. `needs` names the parameters (and "control") whose adjoints are
        wanted. `deterministic`: results do not depend on the number of threads. `tangents` of parameters and of
        "control", by name, are used by `push`.
        """
        self.check_params(params)
        return self._bound.engine(
            self, params, control, batch=batch, needs=needs, deterministic=deterministic, tangents=tangents
        )

    def events(self, params: Arrays, states: Arrays, control: Array | None) -> tuple[Event, ...]:
        """Find the events of a motion with these states [rows, *shape], in order of time, without a batch axis.

        A motion that misses a kink by no more than rounding counts as an event.
        """
        exact = {name: np.asarray(values, np.float64) for name, values in states.items()}
        return self._bound.events(self, params, exact, control)

    def advice(self, params: Arrays, state: Arrays) -> str:
        """Name a cause of a blow-up after this last finite state, and a remedy, without a batch axis; '' if unknown.

        It is asked where no limit of the time step explains the blow-up.
        """
        return self._bound.advice(self, params, state)

    def step_limits(self, params: Arrays, state: Arrays) -> tuple[StepLimit, ...]:
        """Return limits of the time step in this state, in closed form, without a batch axis.

        By default there is none, and after a blow-up the tangent of a step tells the largest stable one.
        """
        return self._bound.step_limits(self, params, state)

    def stresses(self, params: Arrays, states: Arrays) -> dict[str, Quantity]:
        """Compute what bodies, or the links between them, bear in states [rows, *shape], for recordings and pictures.

        Each has a name, and values [rows, bodies] or [rows, links], without a batch axis.
        """
        return self._bound.stresses(self, params, states)

    def describe_bodies(self, params: Arrays) -> Bodies | None:
        """Describe the bodies, if the state consists of bodies."""
        return None

    def describe_grid(self) -> Grid | None:
        """Describe the grid, if the state consists of fields on one."""
        return None

    def describe_waves(self, params: Arrays) -> Waves | None:
        """Describe the slowest waves that sources may send through the grid, if the state consists of waves."""
        return None

    def describe_markers(self) -> Markers | None:
        """Describe places that cameras and accelerometers follow: by default the bodies themselves, if any."""
        return mark_nodes(self.state_shapes())


Model._bound = Bound(_unbound, _unbound)
