"""Result of a rollout: the requested states as Tensors of the graph; and the error for a motion that blows up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..autograd import Tensor
from ..autograd.errors import InputError
from ..simulator import Array
from ..simulator.summary import describe_record
from ..simulator.views import views
from .plan import Plan

LIMIT = 1e100
"""Largest magnitude of a sound state. Beyond it the values may still be finite, but their squares overflow."""

Running = Callable[[Any, Array], Tensor]
"""`running(states, steps)`: a scalar from a State of some rows along time and their step numbers [rows]."""


class StateAdjoint:
    """Derivative of the loss with respect to each state field along time, as attributes, after backward."""

    def __getattr__(self, name: str) -> Array:
        if name.startswith("_"):  # Python itself looks up such names
            raise AttributeError(name)
        remedy = "Call backward() on a loss of the trajectory first."
        raise InputError("Trajectory.adjoint", f"{name} exists only after backward", "no backward so far", remedy)

    def __setattr__(self, name: str, value: Array) -> None:
        self.__dict__[name] = value


@dataclass(frozen=True, repr=False)
class Trajectory:
    """States of a rollout, part of the graph. Fields of `states` are attributes too: `trajectory.position`."""

    states: Any
    """State whose fields are [rows, *shape], or [B, rows, *shape] with a batch."""
    steps: Array
    """Time step of each row, [rows]."""
    final: Any
    """Last state. A loss of it alone takes less memory than a loss of the last row of `states`."""
    horizon: int
    """Number of time steps from the initial state to the last one."""
    running: Tensor | None = None
    """Sum of `running` over all steps except the start, if it was requested."""
    adjoint: StateAdjoint | None = None
    """Adjoint of the state at every step, [steps + 1, *shape], filled by backward, if it was requested."""
    plan: Plan | None = None
    """Plan of the memory for backward; None if nothing is stored for backward."""
    source: Any = None
    """The scene that was simulated, which films need; None for a rollout of a model alone."""

    def __repr__(self) -> str:
        head = f"Trajectory of {self.horizon:,} steps, {len(self.steps):,} states"
        plan = [] if self.plan is None else [f"  for backward  {self.plan}"]
        return "\n".join([describe_record(head, self.states.arrays()), *plan])

    def plot(self, field: str | None = None) -> Any:
        """Draw a field over the steps, by default the first one; return a matplotlib Figure. Errors: InputError."""
        return views().plot_trajectory(self, field)

    def animate(self, field: str | None = None) -> Any:
        """Make the film of the motion, of bodies or of a field on a grid; a notebook plays it, `.save(FILE)` writes it.

        Errors: InputError for a rollout of a model alone, or without such a motion.
        """
        return views().film_trajectory(self, field)

    def __getattr__(self, name: str) -> Tensor:
        states = self.__dict__.get("states")
        if name.startswith("_") or not hasattr(states, name):
            raise AttributeError(f"a Trajectory has no {name!r}")
        return getattr(states, name)


class BlowUp(InputError, ArithmeticError):
    """Error for a motion that exceeds the finite numbers or a given limit. An optimizer takes it as a failed trial."""

    def __init__(
        self,
        *,
        step: int,
        field: str,
        element: tuple[int, ...],
        value: float,
        time: float,
        cause: str | Callable[[], str],
    ) -> None:
        self.step = step
        """First time step with a bad state."""
        self.field = field
        self.element = element
        """Index in the field; with a batch, its first entry is the batch member."""
        self.value = value
        where = f"{field}[{', '.join(map(str, element))}]"
        found = f"a blow-up at step {step} (t = {time:g}), first in {where} = {value:g}"
        self._cause: str | Callable[[], str] = ""
        super().__init__("rollout", "the motion must stay finite", found, "")
        self._cause = cause

    @property
    def remedy(self) -> str:
        """Cause and remedy; sought where they are asked for, as those of the failed trials of a search are not."""
        if not isinstance(self._cause, str):
            self._cause = self._cause()
        return self._cause

    @remedy.setter
    def remedy(self, text: str) -> None:
        self._cause = text

    def __str__(self) -> str:
        return str(InputError(self.source, self.constraint, self.found, self.remedy))

    def __reduce__(self) -> tuple[Any, ...]:
        str(self)  # another process gets the text
        return super().__reduce__()


class BadValue(NamedTuple):
    """Value of states [B, rows, *shape] that exceeds the limit."""

    row: int
    field: str
    member: int
    element: tuple[int, ...]
    value: float


def find_bad_value(states: dict[str, Array], limit: float) -> BadValue | None:
    """Find the earliest value of [B, rows, *shape] that is not within +-limit."""
    found = []
    for name, values in states.items():
        if _is_within(values, limit):
            continue
        bad = ~(np.abs(values) <= np.float64(limit))  # True for NaN, too; f64, which holds limits beyond f32
        rows = np.flatnonzero(bad.any(axis=tuple([axis for axis in range(bad.ndim) if axis != 1])))
        row = int(rows[0])
        member, *element = (int(i) for i in np.argwhere(bad[:, row])[0])
        found.append(BadValue(row, name, member, tuple(element), float(values[(member, row, *element)])))
    return min(found, key=lambda each: each.row) if found else None


def _is_within(values: Array, limit: float) -> bool:
    """True if all values are within +-limit. Allocates no array; min and max are NaN if any value is."""
    return values.size == 0 or (float(values.min()) >= -limit and float(values.max()) <= limit)
