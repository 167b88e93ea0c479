"""Actions: the loops that a sub-step is made of, as text for the compiler, before they are merged and placed in memory.

An action is a loop over one index set. It says which slots it reads and writes: at its own index, or elsewhere. So
neighbouring actions over the same index set can share a loop, and a value that does not leave that loop is a local
variable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, KeysView, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from simphys.simulator import Array, Shape

from .program import Domain, Value

Kind = Literal["value", "adjoint", "tangent", "sum", "row"]
Access = Literal["own", "other"]
SlotArrays = Mapping["Slot", Array]
"""Memory of slots as arrays, for operations that are no loops."""
PassName = Literal["forward", "adjoint", "tangent"]
ArrayKey = tuple[Any, str | int]
"""Kind of an array, and the input's name or the output's number that it belongs to."""

TIME = "for t in time:"
"""Head of the loop over the steps of a segment, the last step first, in the text of deferred actions."""


@dataclass(slots=True)
class Moment:
    """Batch member and step of a call of an operation, and the notes of its engine, which all calls share."""

    member: int
    step: int
    notes: dict[str, Any]


class Slot(NamedTuple):
    """A place for numbers: a value, its adjoint, its tangent, or its adjoint summed over time by an index set.

    A "row" is an adjoint that is stored for each step of a segment, for deferred sums over time.
    """

    kind: Kind
    value: Value
    over: str = ""
    """Index set of a sum, whose elements each keep their own part; empty where the value's own elements do."""

    def __str__(self) -> str:
        return "_".join([word for word in (self.kind, self.value.name, self.over) if word])

    @property
    def by_component(self) -> bool:
        """True if its vectors lie in memory component by component."""
        if self.value.components_first or self.value.is_flat:
            return self.value.components_first
        by_kind = {"sum": False, "adjoint": self.value.adjoint_by_component}
        return by_kind.get(self.kind, self.value.by_component)

    @property
    def memory_element(self) -> Shape:
        """Shape of an element in memory."""
        return () if self.by_component or self.value.is_flat else self.value.element

    @property
    def memory_count(self) -> int:
        """Number of elements in memory."""
        return self.value.size // math.prod(self.memory_element)


@dataclass(frozen=True, eq=False)
class Action:
    """A loop over an index set."""

    domain: Domain
    emit: Callable[[Any], None]
    """Writes the body of the loop, to a `Site`."""
    reads: Mapping[Slot, Access] = field(default_factory=dict)
    writes: Mapping[Slot, Access] = field(default_factory=dict)
    heavy: bool = False
    """True if an element takes so long that a few are worth a thread."""
    width: int = 1
    """Elements that are computed together, before any of them is stored."""
    margin: int = 1
    """Cells at either end of a row of a grid whose bodies differ from those of the cells between."""
    is_long: bool = False
    """True if its body is so long that it is compiled with reduced optimization."""
    in_order: bool = False
    """True if elements add to the same places, so that the loop takes one after the other on a CPU."""
    exact: bool = False
    """True if sums in it keep the order of their terms, as loops of another length have the same terms and zeros."""
    clears: Slot | None = None
    """Slot of the workspace that the action sets to zero, if that is all it does."""
    call: Callable[[SlotArrays, Moment], None] | None = None
    """Operation on whole arrays that the host runs, in place of a loop."""
    launch: Callable[[Mapping[Slot, Any], Moment], Callable[[], None]] | None = None
    """Function that makes, from the `Entries` of slots, launches of kernels of its own, in place of a loop. The moment
    given to it becomes that of each launch."""
    origin: str = ""
    """Sub-step that it belongs to, and which of its passes: shown beside the text, which does not depend on it."""

    @property
    def is_call(self) -> bool:
        """True for an operation on whole arrays, which is no loop."""
        return self.call is not None or self.launch is not None

    def slots(self) -> KeysView[Slot]:
        """Slots that it writes or reads, in this order."""
        return dict.fromkeys([*self.writes, *self.reads]).keys()


def no_loop(site: Any) -> None:
    """Write nothing, for operations that are no loops."""
    raise AssertionError("an operation has no loop")
