"""Scatter: a loop over particles or points that adds to nodes of a grid."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from simphys.autograd import runtime

from .action import Access, Action, Slot
from .expressions import size_name, zero_element
from .program import WHOLE, Domain, ElementView, Op
from .scope import Scope, hidden
from .site import Site
from .splines import AnyStencil, SplinePattern, op_cells


def scatter(
    pattern: SplinePattern,
    op: Op,
    scope: Scope,
    targets: Mapping[Slot, ElementView],
    begin: Callable[[Site], Callable[[AnyStencil], Sequence[str]]],
    reads: Mapping[Slot, Access],
    *,
    slopes: bool = False,
) -> None:
    """Append the loop over particles that adds the terms of each node to slots of the grid.

    `begin` writes what comes before the loop over nodes, and returns the function that writes the terms of a node.
    """
    grids = {slot: _open_grid(op, scope, slot, view) for slot, view in targets.items()}
    many, count = pattern.weights.many, math.prod(op_cells(op))

    def emit(site: Site) -> None:
        for _ in [site.index] if many else site.loop("point", size_name(op.domain)):
            terms = begin(site)
            start = "" if scope.grids == 1 else f"piece * {count} + "
            with pattern.each_node(site, op, scope, slopes=slopes) as stencil:
                held = []
                for node in stencil.nodes:
                    node()
                    for (slot, view), term in zip(grids.values(), terms(stencil), strict=True):
                        held.append((slot, view, f"{start}{stencil.node}", site.assign("added", term)))
                site.add_all(held, alone=not many)

    both: dict[Slot, Access] = dict.fromkeys([slot for slot, _ in grids.values()], "other")
    serial = many and (scope.alike or not runtime.settings().on_gpu)
    found: dict[Slot, Access] = {**(reads if many else dict.fromkeys(reads, "other")), **both}
    scope.add(Action(op.domain if many else WHOLE, emit, found, both, heavy=not many, in_order=serial))
    for target, (slot, view) in grids.items():
        if slot is not target:
            _sum_grids(scope, slot, view, target, targets[target], count)


def _open_grid(op: Op, scope: Scope, slot: Slot, view: ElementView) -> tuple[Slot, ElementView]:
    """Return the slot that particles add to: a slot of the grid, or as many grids as there are pieces."""
    if scope.grids == 1:
        scope.begin(slot, view, "other")
        return slot, view
    domain = Domain("cells_of_pieces", scope.grids * math.prod(op_cells(op)))
    parts = ElementView(domain, view.element)
    return Slot("adjoint" if slot.kind == "sum" else slot.kind, hidden(f"pieces_of_{slot}", domain, parts)), parts


def _sum_grids(scope: Scope, source: Slot, parts: ElementView, target: Slot, view: ElementView, count: int) -> None:
    """Append the action that adds up the grids of all pieces in order, and clears them for the next step."""
    adds = scope.begin(target, view, "own")

    def emit(site: Site) -> None:
        total = site.assign("total", site.load(target, view) if adds else zero_element(view.element))
        for piece in range(scope.grids):
            at = f"({piece * count} + {site.index})"
            site.line(f"{total} += {site.load_at(source, parts, at)}")
            site.put(source, parts, at, zero_element(view.element))
        site.store(target, view, total)

    reads: dict[Slot, Access] = {source: "other"}
    if adds:
        reads[target] = "own"
    scope.add(Action(view.domain, emit, reads, {target: "own", source: "other"}))
