"""Contributions of a loop: its results, and the adjoints of its inputs, for each kind of array that they go to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from .action import Access, Action, Kind, Slot
from .expressions import size_name, zero_element
from .program import WHOLE, Domain, ElementView, Op
from .scope import Scope, adjoint_slot, hidden, reduce
from .site import Site


def _nothing() -> None:
    pass


@dataclass(eq=False)
class Contribution:
    """One array's share: the slot that the loop writes, and actions after the loop that bring it to its target."""

    slot: Slot
    view: ElementView
    access: Access | Literal["none"]
    write: Callable[[Site, str], None]
    """Writes the contribution of the present element, an expression."""
    adds: bool
    """True if the slot is read and added to."""
    finish: Callable[[], None] = field(default=_nothing)


def append_loop(
    scope: Scope,
    domain: Domain,
    emit: Callable[[Site], None],
    reads: dict[Slot, Access],
    targets: Sequence[Contribution],
    **options: Any,
) -> None:
    """Append a loop that writes contributions, and what finishes these; none where nothing is to be written."""
    writes: dict[Slot, Access] = {}
    for target in targets:
        if target.access == "none":
            continue
        writes[target.slot] = "other" if "other" in (target.access, writes.get(target.slot)) else "own"
        if target.adds:
            reads.setdefault(target.slot, target.access)
    if not writes:
        return
    scope.add(Action(domain, emit, reads, writes, **options))
    for target in targets:
        target.finish()


class Ends(NamedTuple):
    """The elements of another index set that a contribution of a loop goes to."""

    signs: Sequence[str]
    relation: str
    """Index array of the sub-step: for each element of the loop an index, or a pair of them."""
    guarded: bool = False
    """True if a negative index names no element; for a single sign."""

    def at(self, relation: str, number: int, at: str) -> str:
        """Expression of an end's index."""
        return f"{relation}[{at}]" if len(self.signs) == 1 else f"{relation}[{at}][{number}]"


def write_own(slot: Slot, view: ElementView, scope: Scope, finish: Callable[[], None] = _nothing) -> Contribution:
    """Set or add to the slot's element at the loop's own index."""
    if slot in scope.frozen:
        return Contribution(slot, view, "none", lambda site, result: None, False)
    adds = scope.begin(slot, view, "own")

    def write(site: Site, result: str) -> None:
        if adds:
            site.add(slot, view, result)
        else:
            site.store(slot, view, result)

    return Contribution(slot, view, "own", write, adds, finish)


def write_ends(op: Op, scope: Scope, target: Slot, view: ElementView, ends: Ends) -> Contribution:
    """Add to elements of another index set: at once where the loop runs in order, else by a loop over that set."""
    assert target not in scope.frozen, "only results at the loop's own index are computed again"
    relation = scope.relation(op, ends.relation)
    if not scope.gathers:

        def scatter(site: Site, result: str) -> None:
            at = [site.once(ends.at(relation, number, site.index)) for number in range(len(ends.signs))]
            if ends.guarded:
                site.add_at_guarded(target, view, ends.signs[0], at[0], result)
            else:
                site.add_at(target, view, list(zip(ends.signs, at, strict=True)), result)

        adds = scope.begin(target, view, "other")
        return Contribution(target, view, "other", scatter, adds)
    parts = ElementView(op.domain, view.element)
    kind: Kind = "adjoint" if target.kind == "sum" else target.kind
    work = Slot(kind, hidden(f"{op.outputs[0].name}_to_{target.value.name}", op.domain, view))
    return write_own(work, parts, scope, lambda: gather(op, scope, work, parts, target, view, ends))


def gather(op: Op, scope: Scope, work: Slot, parts: ElementView, target: Slot, view: ElementView, ends: Ends) -> None:
    """Append the action that adds to each element of a slot the parts of all elements that are related to it."""
    adds = scope.begin(target, view, "own")
    start, entries = (scope.relation(op, f"{ends.relation}_{part}") for part in ("start", "entries"))

    def emit(site: Site) -> None:
        total = site.assign("total", site.load(target, view) if adds else zero_element(view.element))
        for k in site.each("k", f"{start}[{site.index}]", f"{start}[{site.index} + 1]"):
            entry = site.integer("entry", f"{entries}[{k}]")
            if len(ends.signs) == 1:
                site.line(f"{total} {ends.signs[0]}= {site.load_at(work, parts, entry)}")
            else:
                first, second = (int(f"{sign}1") for sign in ends.signs)
                part = site.load_at(work, parts, f"({entry} >> 1)")
                site.line(f"{total} += ({first} + {second - first} * ({entry} & 1)) * {part}")
        site.store(target, view, total)

    reads: dict[Slot, Access] = {work: "other"}
    if adds:
        reads[target] = "own"
    scope.add(Action(view.domain, emit, reads, {target: "own"}))


def add_own_adjoint(op: Op, name: str, scope: Scope, entry: int | None = None) -> Contribution:
    """Add to the adjoint of an array of the loop's own index set, or of one, or one `entry`, that all elements share.

    Each element, or each part of a grid, has its own sum, so that nothing is added across threads.
    """
    value, view = op.array(name), op.views[name]
    if view.domain == op.domain and entry is None:
        return write_own(adjoint_slot(value), view, scope)
    by_parts = scope.parts is not None and bool(op.domain.grid)
    domain = scope.parts if scope.parts is not None and by_parts else op.domain
    parts = ElementView(domain, view.element)
    if value.role == "param" and entry is None and not by_parts:
        return write_own(Slot("sum", value, op.domain.name), parts, scope)
    work = Slot("adjoint", hidden(f"{op.outputs[0].name}_to_{value.name}", domain, parts))

    def finish() -> None:
        if entry is not None:
            _add_to_entry(scope, work, parts, adjoint_slot(value), view, entry)
            return
        adds = scope.begin(adjoint_slot(value), view, "own")
        scope.add(reduce(work, parts, adjoint_slot(value), view, adds=adds, heavy=not by_parts))

    if by_parts:
        return Contribution(work, parts, "other", lambda site, result: site.sum_up(work, parts, result), False, finish)
    return write_own(work, parts, scope, finish)


def _add_to_entry(scope: Scope, work: Slot, parts: ElementView, target: Slot, view: ElementView, entry: int) -> None:
    """Append the action that adds up parts into one entry of an adjoint."""
    scope.begin(target, view, "other")

    def emit(site: Site) -> None:
        total = site.assign("total", site.load_at(target, view, f"{entry}"))
        for k in site.each("k", size_name(parts.domain)):
            site.line(f"{total} += {site.load_at(work, parts, k)}")
        site.put(target, view, f"{entry}", total)

    scope.add(Action(WHOLE, emit, {work: "other", target: "other"}, {target: "other"}))


def append_map(
    scope: Scope,
    domain: Domain,
    target: Contribution,
    expression: Callable[[Site], str],
    reads: dict[Slot, Access],
    **options: Any,
) -> None:
    """Append a loop that writes one contribution, the expression of each element."""
    append_loop(scope, domain, lambda site: target.write(site, expression(site)), reads, [target], **options)
