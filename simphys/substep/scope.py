"""Scope: the actions of a pass over a program, and what is known about its values there."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from simphys.numerics.element import Rule

from .action import Access, Action, Kind, Slot
from .expressions import identifier, size_name, zero_element
from .program import WHOLE, Domain, ElementView, Op, Value, make_local
from .site import Site


class Scope:
    """The actions of one pass: forward, adjoint or tangent."""

    def __init__(
        self,
        *,
        gathers: bool,
        zeros: Collection[Value] = (),
        wanted: Collection[Value] = (),
        moving: Collection[Value] = (),
        frozen: Collection[Slot] = (),
        numbers_vary: bool = False,
        deferrable: Collection[Value] = (),
        alike: bool = False,
    ) -> None:
        self.gathers = gathers
        """True if loops add to their own elements only, so that they can run in parallel."""
        self.parts: Domain | None = None
        """Index set of the parts by which sums over the nodes of a grid are added up, see pieces.py; else None."""
        self.alike = alike
        """True if results do not depend on the order of threads: a GPU then adds to shared elements in order."""
        self.grids = 1
        """Number of grids that particles add to, each piece of them to its own."""
        self.lists: dict[Any, Any] = {}
        """Lists of neighbours that sub-steps share, by region and position, see neighbour_list.py."""
        self.actions: list[Action] = []
        self.deferred: list[Action] = []
        """Actions that run after all steps of a segment, and loop over its steps themselves, see `TIME`."""
        self.numbers: dict[str, float] = {}
        """Constant numbers by the name of the kernel's argument."""
        self.relations: dict[str, Any] = {}
        """Index arrays by the name of the kernel's argument."""
        self.functions: dict[str, Any] = {}
        """Element functions by their name in the text."""
        self.started: set[Slot] = set()
        """Slots that hold a sum already."""
        self.kept: set[Slot] = set()
        """Slots whose numbers outlive the step."""
        self.frozen = set(frozen)
        """Slots that are not written, as they hold their values already."""
        self._zeros, self._wanted, self._moving = set(zeros), set(wanted), set(moving)
        self._deferrable = set(deferrable)
        self._keys: dict[int, str] = {}
        self._numbers_vary = numbers_vary  # if so, numbers that are equal may differ in another launch

    # --- names in the text

    def number(self, op: Op, name: str) -> str:
        """Name of the argument that holds a constant number of a sub-step."""
        number = op.inputs[name]
        assert isinstance(number, float), "an array has a slot"
        for known, other in self.numbers.items():
            if other == number and not self._numbers_vary:
                return known
        key = f"{self._key(op)}_{name}"
        self.numbers[key] = number
        return key

    def relation(self, op: Op, name: str) -> str:
        """Name of the argument that holds an index array of a sub-step."""
        array = op.relations[name]
        for known, other in self.relations.items():
            if other is array:
                return known
        key = f"{self._key(op)}_{identifier(name)}"
        self.relations[key] = array
        return key

    def function(self, rule: Rule) -> str:
        """Name of a rule of an element function."""
        if rule.outside is not None:
            rule.outside.require_same()
        name = f"fn_{rule.name}"  # arrays may have the same names
        while self.functions.setdefault(name, rule.func) is not rule.func:
            name += "_"
        return name

    def _key(self, op: Op) -> str:
        return op.outputs[0].name

    # --- what is known about values

    def is_zero(self, value: Value, kind: Kind = "value") -> bool:
        """True for a parameter that is zero everywhere, and whose adjoint nobody wants; or for a tangent of nothing."""
        return value in self._zeros or (kind == "tangent" and value not in self._moving)

    def wants(self, value: Value | float) -> bool:
        """True if the adjoint of an input is wanted, or leads to one that is."""
        return isinstance(value, Value) and value in self._wanted

    def may_defer(self, value: Value) -> bool:
        """True if the sum over time of an adjoint that is wanted may wait for the last step of a segment.

        It takes memory for each step.
        """
        return value in self._deferrable and value in self._wanted

    def moves(self, value: Value | float) -> bool:
        """True if a value has a tangent."""
        return isinstance(value, Value) and value in self._moving

    def has_adjoint(self, value: Value) -> bool:
        """True if a later sub-step has added to the adjoint of a result."""
        return Slot("adjoint", value) in self.started

    # --- actions

    def add(self, action: Action) -> None:
        self.actions.append(action)

    def defer(self, action: Action) -> None:
        self.deferred.append(action)

    def begin(self, slot: Slot, view: ElementView, access: Access) -> bool:
        """Prepare a slot for a contribution. Returns True if that is added, False if it sets the slot, as the first."""
        first = slot.kind != "sum" and slot not in self.started
        self.started.add(slot)
        if first and access == "other":
            self.add(clear(slot, view, self.kept))
            return True
        return not first


def adjoint_slot(value: Value) -> Slot:
    """Slot of an input's adjoint: parameters and controls have sums over time."""
    return Slot("sum" if value.role in ("param", "control") else "adjoint", value)


def clear(slot: Slot, view: ElementView, kept: Collection[Slot] = ()) -> Action:
    """Action that sets a slot to zero; those that are `kept` outlive the step."""

    def emit(site: Site) -> None:
        site.store(slot, view, zero_element(view.element))

    inner = slot.value.role == "local" and slot not in kept
    return Action(view.domain, emit, writes={slot: "own"}, clears=slot if inner else None)


def reduce(
    source: Slot, view: ElementView, target: Slot, target_view: ElementView, *, adds: bool, heavy: bool = True
) -> Action:
    """Action that adds up the elements of a slot into one."""

    def emit(site: Site) -> None:
        total = site.assign("total", zero_element(view.element))
        for k in site.each("k", size_name(view.domain)):
            site.line(f"{total} += {site.load_at(source, view, k)}")
        if adds:
            site.add(target, target_view, total)
        else:
            site.store(target, target_view, total)

    writes: dict[Slot, Access] = {target: "own"}
    reads: dict[Slot, Access] = {source: "other"}
    if adds:
        reads[target] = "own"
    return Action(WHOLE, emit, reads=reads, writes=writes, heavy=heavy)


def hidden(name: str, domain: Domain, view: ElementView) -> Value:
    """Value that only the loops of a sub-step know: an element for each index of a loop."""
    return make_local(name, domain, view.element)
