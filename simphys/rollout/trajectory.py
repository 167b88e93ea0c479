"""What a rollout gives: the states that were asked for, as Tensors of the graph; and the error where it blows up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..autograd import Tensor
from ..autograd.errors import InputError
from ..simulator import Array
from .plan import Plan

LIMIT = 1e100
"""Beyond this magnitude a motion has blown up, though its numbers may be finite still: squares overflow."""

Running = Callable[[Any, Array], Tensor]
"""`running(states, steps)`: a scalar from a State of some rows along time and their step numbers [rows]."""


class StateAdjoint:
    """The derivative of the loss with respect to each state component along time, as attributes, after backward."""

    def __getattr__(self, name: str) -> Array:
        if name.startswith("_"):  # what Python itself looks for
            raise AttributeError(name)
        remedy = "Call backward() on a loss of the trajectory first."
        raise InputError("Trajectory.adjoint", f"{name} is known after backward", "no backward so far", remedy)

    def __setattr__(self, name: str, value: Array) -> None:
        self.__dict__[name] = value


@dataclass(frozen=True)
class Trajectory:
    """The states of a rollout, part of the graph. Fields of `states` are attributes too: `trajectory.position`."""

    states: Any
    """A State whose fields are [rows, *shape]; batched [B, rows, *shape]."""
    steps: Array
    """Which time step each row is, [rows]."""
    final: Any
    """The last state; a loss of it alone costs less memory than one of the last row."""
    running: Tensor | None = None
    """The sum of `running` over all steps but the start, where it was asked for."""
    adjoint: StateAdjoint | None = None
    """Filled by backward, if asked for: the adjoint of the state at every step, [steps + 1, *shape]."""
    plan: Plan | None = None
    """How the rollout keeps within its memory; None where nothing is kept for backward."""

    def __getattr__(self, name: str) -> Tensor:
        states = self.__dict__.get("states")
        if name.startswith("_") or not hasattr(states, name):
            raise AttributeError(f"a Trajectory has no {name!r}")
        return getattr(states, name)


class BlowUp(InputError, ArithmeticError):
    """A motion left the finite numbers (or a stated bound). For an optimizer it is a trial that failed."""

    def __init__(
        self, *, step: int, field: str, element: tuple[int, ...], value: float, time: float, cause: str
    ) -> None:
        self.step = step
        """The first time step whose state is bad."""
        self.field = field
        self.element = element
        """Index in the field; with a batch its first entry is the member."""
        self.value = value
        where = f"{field}[{', '.join(map(str, element))}]"
        found = f"a blow-up at step {step} (t = {time:g} s), first in {where} = {value:g}"
        super().__init__("rollout", "the motion must stay finite", found, cause)


class Bad(NamedTuple):
    """A value of states [B, rows, *shape] that is not within the limit."""

    row: int
    field: str
    member: int
    element: tuple[int, ...]
    value: float


def first_bad(states: dict[str, Array], limit: float) -> Bad | None:
    """The earliest value of [B, rows, *shape] that is not within +-limit."""
    found = []
    for name, values in states.items():
        if _within(values, limit):
            continue
        bad = ~(np.abs(values) <= np.float64(limit))  # True for NaN, too; f64, which holds limits beyond f32
        rows = np.flatnonzero(bad.any(axis=tuple([axis for axis in range(bad.ndim) if axis != 1])))
        row = int(rows[0])
        member, *element = (int(i) for i in np.argwhere(bad[:, row])[0])
        found.append(Bad(row, name, member, tuple(element), float(values[(member, row, *element)])))
    return min(found, key=lambda each: each.row) if found else None


def _within(values: Array, limit: float) -> bool:
    """Without arrays on the way; NaN is the least and the largest of numbers that hold one."""
    return values.size == 0 or (float(values.min()) >= -limit and float(values.max()) <= limit)
