"""Text of loops over the nodes around a point: its cells on a regular grid, with their weights and slopes.

A cell beyond a side stands for a cell inside, as a field is continued there, see `numerics.boundary`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from simphys.numerics.boundary import fold
from simphys.numerics.cubic import STENCIL, cubic
from simphys.simulator import Array, Shape

from .expressions import build_element
from .grid import row_major
from .program import Op
from .relation import cached, read_relation
from .scope import Scope
from .site import Site

MARGIN = 8
"""Entries of a table of nodes beyond those that can lie inside."""


class Nodes(NamedTuple):
    """The grid of the nodes, and the names of what the text takes."""

    cells: Shape
    sides: tuple[str, ...]
    """Kind of each side x-, x+, y-, ...; see `numerics.boundary`."""
    table: str
    """Array of `node_table`."""
    inverse_spacing: str
    even: str = ""
    """Array of bits: bit a of an entry is set if the point with its number spreads evenly along axis a."""


class Node(NamedTuple):
    """A node in the text."""

    at: Sequence[str]
    """Number of its cell along each axis."""
    weight: str
    slope: Callable[[], str]
    """Writes the gradient of the weight by the position of the point, and returns its name."""


def node_table(cells: Shape, sides: Sequence[str]) -> Array:
    """Tabulate the nodes of all axes: sign * (cell + 1) for each, and 0 for one that stands for no cell.

    The nodes of an axis of n cells are -n - MARGIN ... 2 n + MARGIN.
    """
    found = []
    for axis, count in enumerate(cells):
        index, sign = fold(np.arange(-count - MARGIN, 2 * count + MARGIN + 1), count, *sides[2 * axis : 2 * axis + 2])
        found.append(sign * (index + 1))
    return np.concatenate(found).astype(np.int32)


def functions_of_nodes() -> dict[str, Any]:
    """Functions that the text calls, by name."""
    element = cubic.element
    return {"fn_cubic": element.forward.func, "fn_slopes": element.tangent.func}


@contextmanager
def loop_over_nodes(site: Site, nodes: Nodes, point: str, position: str) -> Iterator[Node]:
    """Loop over the nodes of a point, whose vector is `position` and whose number is `point`, within a `with` block."""
    cells, dim = nodes.cells, len(nodes.cells)
    p = site.assign("p", f"({position}) * {nodes.inverse_spacing}")
    below = site.assign("below", f"ti.floor({p})")
    weights, slopes = ([site.fresh(name) for _ in range(STENCIL)] for name in ("w", "s"))
    site.line(f"{', '.join(weights)} = fn_cubic({p} - {below})")
    site.line(f"{', '.join(slopes)} = fn_slopes({p} - {below}, {nodes.inverse_spacing})")
    bits = site.assign("even", f"{nodes.even}[{point}]") if nodes.even else ""
    begins, begin = [], 0
    for axis, count in enumerate(cells):
        first, lowest = site.assign("first", f"{below}[{axis}]"), f"{-count - MARGIN + 1}"
        if nodes.sides[2 * axis] == "periodic":
            first = site.assign("first", f"{first} - {count} * ti.floor(({first} + 0.5) / {count})")
        held = f"ti.max(ti.min({first}, {2 * count + MARGIN - 2}.0), {lowest}.0)"
        first = site.assign("first", f"ti.cast({held}, i32) + {begin + count + MARGIN - 1}")
        begin += 3 * count + 2 * MARGIN + 1
        begins.append((first, site.assign("spread", f"({bits} >> {axis}) & 1") if bits else ""))
    with ExitStack() as loops:
        at, factors = [], []
        for axis, (first, spread) in enumerate(begins):
            k, size = site.fresh("k"), f"ti.select({spread} == 1, {cells[axis]}, {STENCIL})" if spread else f"{STENCIL}"
            loops.enter_context(site.block(f"for {k} in range({size}):"))
            inner = site.assign("inner", f"{k} & {STENCIL - 1}") if spread else k
            # chosen by comparisons: some drivers fail on local arrays with an index
            entry = site.assign("entry", f"{nodes.table}[{first} + {inner}]")
            sign = site.assign("sign", f"ti.select({entry} > 0, 1.0, ti.select({entry} < 0, -1.0, 0.0))")
            w, s = (f"{sign} * {_choose(inner, [f'{x}[{axis}]' for x in of])}" for of in (weights, slopes))
            cell = f"ti.max(ti.abs({entry}), 1) - 1"
            if spread:
                even = ((k, cell), ("1.0", w), ("0.0", s))
                cell, w, s = (f"ti.select({spread} == 1, {given}, {other})" for given, other in even)
            at.append(site.assign("at", cell))
            factors.append((site.assign("factor", w), site.assign("change", s)))
        weight = site.assign("weight", " * ".join([f for f, _ in factors]))

        def slope() -> str:
            parts = [" * ".join([factors[d][d == axis] for d in range(dim)]) for axis in range(dim)]
            return site.assign("slope", build_element(parts, (dim,)))

        yield Node(at, weight, slope)


def _choose(index: str, values: Sequence[str]) -> str:
    """Expression of the value with an index."""
    *others, chosen = values
    for number in reversed(range(len(others))):
        chosen = f"ti.select({index} == {number}, {others[number]}, {chosen})"
    return chosen


def flat_index(at: Sequence[str], strides: Sequence[int | str]) -> str:
    """Expression of the index of a cell."""
    return " + ".join([a if stride == 1 else f"{a} * {stride}" for a, stride in zip(at, strides, strict=True)])


@dataclass(frozen=True)
class Cubic:
    """Cubic convolution for points, which are few: four cells along each axis."""

    sides: str
    """Attribute of the model with the kind of each side x-, x+, y-, ..."""
    even: str = ""
    """Attribute of the model with integers [n]: bit a is set if a point spreads evenly along axis a."""

    fewest: ClassVar = 1
    element_us: ClassVar = 0.1
    many: ClassVar = False

    def tabulate(self, model: Any, cells: Shape, count: int, source: str) -> tuple[dict[str, Array], Shape]:
        sides = tuple(getattr(model, self.sides))
        found = {"nodes": cached(model, f"nodes {cells} {sides}", lambda: node_table(cells, sides))}
        if self.even:
            found[self.even] = read_relation(model, self.even, (count,), 2 ** len(cells), source)
        return found, sides

    def around(self, site: Site, op: Op, scope: Scope, position: str, spacing: str) -> CubicStencil:
        cells, sides = op.variant
        inverse = site.assign("inverse", f"1.0 / {spacing}")
        even = scope.relation(op, self.even) if self.even else ""
        scope.functions |= functions_of_nodes()
        return CubicStencil(site, Nodes(cells, sides, scope.relation(op, "nodes"), inverse, even), position)


class CubicStencil:
    """The cells around a point; within the loop, expressions of a cell. Fields do not know how far it is from there."""

    def __init__(self, site: Site, nodes: Nodes, position: str) -> None:
        self._site, self._nodes, self._position = site, nodes, position
        self.offset, self.node, self.weight, self.slope = f"vector_{len(nodes.cells)}(0.0)", "", "", ""
        self.nodes: list[Callable[[], None]] = [lambda: None]

    @contextmanager
    def loop(self, *, slopes: bool) -> Iterator[None]:
        with loop_over_nodes(self._site, self._nodes, self._site.index, self._position) as node:
            self.node = self._site.assign("at", flat_index(node.at, row_major(self._nodes.cells)))
            self.weight, self.slope = node.weight, node.slope() if slopes else ""
            yield
