"""Part of the state that a loss term compares, and its target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.autograd import Tensor, ops
from simphys.scenefile.section import rows_of
from simphys.simulator.bodies import Bodies

Array = np.ndarray[Any, Any]

AT_END = frozenset({"final_state", "final_mean", "final_density"})
"""The kinds of terms that look at the last state only."""


@dataclass(frozen=True)
class Part:
    """Some nodes of a field. Bodies are nodes whose components are those of space; elsewhere every number is a node."""

    shape: tuple[int, ...]
    """Shape of the field."""
    rows: Any
    """Indices along its first axis."""
    vectors: bool
    """True if the field holds a vector for each node, [n, dim]."""
    axis: int | None = None
    """The component of these vectors that counts alone."""

    @property
    def seen(self) -> tuple[int, ...]:
        """The shape of the part, with neither rows nor components that do not count."""
        chosen = np.broadcast_to(0.0, self.shape)[self.rows] if self.shape else np.zeros(())
        return chosen.shape if self.axis is None else chosen.shape[:1]

    def of(self, values: Tensor) -> Tensor:
        """The part of the field, or of the field along time: [..., nodes, components]."""
        along = values.shape[: values.ndim - len(self.shape)]
        chosen = values[(slice(None),) * len(along) + (self.rows,)] if self.shape else values
        if self.axis is not None:
            return chosen[..., self.axis : self.axis + 1]
        return chosen if self.vectors else ops.reshape(chosen, (*along, -1, 1))

    def target(self, given: Any) -> Array:
        """A scene's target in the same form: one vector or number for all nodes, or one each."""
        target = np.asarray(given, float)
        if self.vectors and self.axis is None:
            return target
        return np.broadcast_to(target, self.seen).reshape(-1, 1)


def part(term: Any, shape: tuple[int, ...], bodies: Bodies | None) -> Part:
    """The part of a field of this shape that a term of the loss looks at: by default all but what follows the own."""
    vectors = bodies is not None and len(shape) == 2
    if term.nodes is not None:
        return Part(shape, rows_of(term.nodes), vectors, term.axis)
    return Part(shape, slice(bodies.own if bodies is not None and vectors else None), vectors, term.axis)
