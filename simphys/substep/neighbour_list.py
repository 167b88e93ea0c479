"""Lists of the neighbours of particles with a skin (Verlet 1967), made from cells within the loops of a step.

The list of a particle has all others within `reach`, the cut-off and a skin, at the time when it was made. It holds all
pairs within the cut-off until a particle has moved by half the skin. Then it is made anew, forward or backward in time.
Lists ascend. Pairs beyond the cut-off contribute nothing, so that sums over a list do not depend on when it was made.

Cells are at least as wide as the reach, and wrap around, in open boxes, too: far particles that share a cell are told
apart by their distance. Memory is linear in the particles. Indices are stored as real numbers, exact up to 2^24 in f32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from simphys.autograd import runtime
from simphys.autograd.errors import InputError

from .action import Action, Slot
from .expressions import size_name
from .program import WHOLE, Domain, ElementView, Value
from .scope import Scope, hidden
from .site import Site

PARTS = 64
"""Parts by which the largest displacement is searched for."""
SAFETY = 0.98
"""Fraction of half the skin at which lists are made anew: positions are rounded."""


class Region(NamedTuple):
    """The space that particles are in, and how far they see."""

    box: tuple[float, ...]
    """Length of the box along each axis, after which it repeats itself; inf for an open axis."""
    cutoff: float
    """Distance from which on pairs contribute nothing."""
    skin: float
    capacity: int
    """Largest number of neighbours of a particle within cut-off and skin."""

    @property
    def reach(self) -> float:
        return self.cutoff + self.skin

    def count_cells(self, particles: int) -> tuple[int, ...]:
        """Number of cells along each axis: some two for a particle, or as many as fit."""
        most = math.ceil((2 * particles) ** (1 / len(self.box)))
        return tuple([max(1, min(most, int(min(length / self.reach, most)))) for length in self.box])

    def wrap(self, difference: str) -> str:
        """Expression of the shortest difference among all images of two particles."""
        if not any([math.isfinite(length) for length in self.box]):
            return difference
        turns = [
            f"{length!r} * ti.round({difference}[{d}] * {1 / length!r})" if math.isfinite(length) else "0.0"
            for d, length in enumerate(self.box)
        ]
        return f"{difference} - vector_{len(self.box)}({', '.join(turns)})"


def read_region(model: Any, dim: int, particles: int, source: str) -> Region:
    """Read `box`, `cutoff`, `skin` and `neighbours` of the model. Errors: InputError."""
    names = ("box", "cutoff", "skin", "neighbours")
    missing = [name for name in names if not hasattr(model, name)]
    if missing:
        raise InputError(source, f"the model has {', '.join(names)}", f"no {', '.join(missing)}", "Add them.")
    found = Region(tuple([float(x) for x in model.box]), float(model.cutoff), float(model.skin), int(model.neighbours))
    if len(found.box) != dim:
        raise InputError(source, f"`box` of the model has {dim} lengths", len(found.box), "Give one for each axis.")
    if not (found.cutoff > 0 and found.skin >= 0 and found.capacity > 0):
        constraint = "cutoff and neighbours of the model are positive, and skin is not negative"
        raise InputError(source, constraint, f"{found.cutoff:g}, {found.capacity}, {found.skin:g}", "Correct them.")
    for length in found.box:
        if not length >= 2 * found.cutoff:
            constraint = f"each periodic axis of the box is at least two cut-offs long: {2 * found.cutoff:g}"
            raise InputError(source, constraint, f"{length:g}", "Take more particles, or a shorter cut-off.")
    largest = 2**24 if runtime.real_dtype().itemsize == 4 else 2**31 - 1
    if particles > largest or particles * found.capacity > 2**31 - 1:
        constraint = f"at most {largest} particles in this precision, and {2**31 - 1} neighbours in all"
        raise InputError(source, constraint, f"{particles}, with room for {found.capacity} each", "Take fewer.")
    return found


class NeighbourList(NamedTuple):
    """The workspace that holds the lists of the particles at one position."""

    region: Region
    position: Slot
    entries: Slot
    """Neighbours of each particle, `capacity` places for each."""
    counts: Slot
    """Number of neighbours of each particle, beyond the capacity, too."""
    origin: Slot
    """Position at which the list was made."""
    order: Slot
    """Particles by cell."""
    ends: Slot
    """For each cell the end of its particles in this order."""
    moved: Slot
    """Square of the largest displacement in each part."""
    flags: Slot
    """1 once there are lists, and 1 if they are made anew."""

    @property
    def view(self) -> ElementView:
        return self.position.value.elements

    def load(self, site: Site, slot: Slot, index: str) -> str:
        """Expression of an entry of the workspace, or of a position."""
        view = self.view if slot is self.position else slot.value.elements
        return site.load_at(slot, view, index)

    def put(self, site: Site, slot: Slot, index: str, expression: str) -> None:
        site.put(slot, slot.value.elements, index, expression)

    def load_count(self, site: Site) -> str:
        """Name of the number of neighbours of the loop's own particle."""
        return site.assign("count", f"int({self.load(site, self.counts, site.index)})")

    # --- the actions

    def update(self, scope: Scope) -> None:
        """Append the actions that make the lists anew where a particle has moved too far, unless they come before."""
        if any([self.flags in action.writes for action in scope.actions]):
            return
        scope.add(self._measure())
        scope.add(self._sort())
        scope.add(self._collect())

    def _measure(self) -> Action:
        moved, view = self.moved.value.elements, self.view
        parts = moved.domain.size

        def emit(site: Site) -> None:
            far = site.assign("far", "real(0.0)")
            begin, end = (f"{size_name(view.domain)} * ({site.index} + {k}) // {parts}" for k in (0, 1))
            with site.block(f"for j in range({begin}, {end}):"):
                step = site.assign(
                    "step", f"{self.load(site, self.position, 'j')} - {self.load(site, self.origin, 'j')}"
                )
                site.line(f"{far} = ti.max({far}, {step}.dot({step}))")
            site.store(self.moved, moved, far)

        reads: Any = {self.position: "other", self.origin: "other"}
        return Action(moved.domain, emit, reads, {self.moved: "own"}, heavy=True)

    def _sort(self) -> Action:
        """Decide whether lists are made anew and, if so, sort the particles by cell; within one they ascend."""
        size = size_name(self.view.domain)
        cells, parts = self.ends.value.size, self.moved.value.size
        limit = (SAFETY * self.region.skin / 2) ** 2

        def emit(site: Site) -> None:
            far = site.assign("far", "real(0.0)")
            with site.block(f"for part in range({parts}):"):
                site.line(f"{far} = ti.max({far}, {self.load(site, self.moved, 'part')})")
            site.line("anew = 1")
            with site.block(f"if {self.load(site, self.flags, '0')} > 0.5 and not {far} > {limit!r}:"):
                site.line("anew = 0")
            self.put(site, self.flags, "0", "real(1.0)")
            self.put(site, self.flags, "1", "ti.cast(anew, real)")
            with site.block("if anew == 1:"):
                with site.block(f"for c in range({cells}):"):
                    self.put(site, self.ends, "c", "real(0.0)")
                with site.block(f"for j in range({size}):"):
                    cell = self._find_cell(site, "j")
                    self.put(site, self.ends, cell, f"{self.load(site, self.ends, cell)} + 1.0")
                site.line("before = 0")
                with site.block(f"for c in range({cells}):"):
                    site.line(f"inside = int({self.load(site, self.ends, 'c')})")
                    self.put(site, self.ends, "c", "ti.cast(before, real)")
                    site.line("before += inside")
                with site.block(f"for j in range({size}):"):
                    cell = self._find_cell(site, "j")
                    at = site.assign("at", f"int({self.load(site, self.ends, cell)})")
                    self.put(site, self.order, at, "ti.cast(j, real)")
                    self.put(site, self.ends, cell, f"ti.cast({at} + 1, real)")

        reads: Any = dict.fromkeys((self.position, self.moved, self.flags, self.ends, self.order), "other")
        writes: Any = dict.fromkeys((self.flags, self.ends, self.order), "other")
        return Action(WHOLE, emit, reads, writes, heavy=True)

    def _collect(self) -> Action:
        """Collect the neighbours of each particle in ascending order, and count those without room, too."""
        used = (self.position, self.flags, self.ends, self.order, self.entries)
        written = (self.entries, self.counts, self.origin)

        def emit(site: Site) -> None:
            with site.block(f"if {self.load(site, self.flags, '1')} > 0.5:"):
                x = site.assign("x", self.load(site, self.position, site.index))
                first = site.assign("first", f"{site.index} * {self.region.capacity}")
                count = site.assign("count", "0")
                self._each_near(site, x, lambda j: self._insert(site, j, first, count))
                self.put(site, self.counts, site.index, f"ti.cast({count}, real)")
                self.put(site, self.origin, site.index, x)

        reads: Any = dict.fromkeys(used, "other")
        return Action(self.view.domain, emit, reads, dict.fromkeys(written, "other"), heavy=True)

    def _insert(self, site: Site, j: str, first: str, count: str) -> None:
        """Insert a neighbour into an ascending list of so many."""
        with site.block(f"if {count} < {self.region.capacity}:"):
            at = site.assign("at", f"{first} + {count}")
            with site.block(f"while {at} > {first}:"):
                before = site.assign("before", self.load(site, self.entries, f"{at} - 1"))
                with site.block(f"if int({before}) < {j}:"):
                    site.line("break")
                self.put(site, self.entries, at, before)
                site.line(f"{at} -= 1")
            self.put(site, self.entries, at, f"ti.cast({j}, real)")
        site.line(f"{count} += 1")

    def _each_near(self, site: Site, x: str, act: Callable[[str], None]) -> None:
        """Loop over the other particles within reach: those in the cells around."""
        cells = self._count_cells()
        own = self._place_cell(site, x)
        names = [f"step_{d}" for d in range(len(cells))]
        heads = [f"for {name} in range({min(3, count)}):" for name, count in zip(names, cells, strict=True)]
        with site.nest(heads):
            axes = [
                f"({at} + {name} + {count - 1}) % {count}" if count > 1 else "0"
                for at, name, count in zip(own, names, cells, strict=True)
            ]
            cell = site.assign("cell", _flatten(axes, cells))
            before = self.load(site, self.ends, f"ti.max({cell} - 1, 0)")
            begin = site.assign("begin", f"ti.select({cell} > 0, int({before}), 0)")
            with site.block(f"for place in range({begin}, int({self.load(site, self.ends, cell)})):"):
                j = site.assign("j", f"int({self.load(site, self.order, 'place')})")
                d = self.difference(site, x, self.load(site, self.position, j))
                with site.block(f"if {j} != {site.index} and {d}.dot({d}) < {self.region.reach**2!r}:"):
                    act(j)

    def difference(self, site: Site, x: str, other: str) -> str:
        """Name of the shortest difference of two positions."""
        d = site.assign("difference", f"{x} - {other}")
        wrapped = self.region.wrap(d)
        return d if wrapped == d else site.assign("shortest", wrapped)

    def _count_cells(self) -> tuple[int, ...]:
        return self.region.count_cells(self.view.domain.size)

    def _place_cell(self, site: Site, x: str) -> list[str]:
        """Names of the number of a position's cell along each axis."""
        found = []
        for d, (count, length) in enumerate(zip(self._count_cells(), self.region.box, strict=True)):
            width = length / count if math.isfinite(length) else self.region.reach
            found.append(site.assign("cell", f"int(ti.floor({x}[{d}] * {1 / width!r})) % {count}"))
        return found

    def _find_cell(self, site: Site, j: str) -> str:
        x = site.assign("x", self.load(site, self.position, j))
        return site.assign("cell", _flatten(self._place_cell(site, x), self._count_cells()))


def find_list(scope: Scope, region: Region, position: Value, view: ElementView) -> NeighbourList:
    """Return the lists of the particles at a position; sub-steps of one region share them."""
    key = region, position
    if key not in scope.lists:
        scope.lists[key] = _make_list(region, position, view)
    return scope.lists[key]


def _make_list(region: Region, position: Value, view: ElementView) -> NeighbourList:
    n, name = view.domain.size, view.domain.name

    def make(part: str, size: int, element: tuple[int, ...] = (), *, own: bool = False) -> Slot:
        domain = view.domain if own else Domain(f"{part}_of_{name}", size)
        # Of the kind of an adjoint, as no sub-step makes it, and nothing computes it again.
        return Slot("adjoint", hidden(f"{part}_at_{position.name}", domain, ElementView(domain, element)))

    return NeighbourList(
        region,
        Slot("value", position),
        entries=make("neighbours", n * region.capacity),
        counts=make("counts", n, own=True),
        origin=make("origin", n, view.element, own=True),
        order=make("order", n),
        ends=make("ends", math.prod(region.count_cells(n))),
        moved=make("moved", min(PARTS, n)),
        flags=make("flags", 2),
    )


def _flatten(axes: list[str], cells: tuple[int, ...]) -> str:
    """Expression of the number of a cell from those along each axis."""
    found = axes[0]
    for at, count in zip(axes[1:], cells[1:], strict=True):
        found = f"({found}) * {count} + {at}"
    return found
