"""Loops of an engine over particles in pieces, and over the box of grid nodes that these reach.

On a CPU the particles are divided into pieces. Each piece adds to grids of its own, which are summed in a fixed order,
so that no result depends on the order of threads. Only nodes in the box around all particles are computed: no particle
reads the others. Loops over the box go line by line along the last axis, in parts; sums over nodes are added up part by
part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from simphys.numerics import bspline
from simphys.simulator import Shape

from .action import Action, Slot
from .expressions import size_name, zero_element
from .grid import CELLS, row_major
from .lanes import lane_lines
from .per_element import PerElement
from .place import Offset, Place
from .program import Domain, Op, Program, Value, make_local
from .schedule import Group
from .scope import Scope
from .site import Site
from .splines import SPACING, SplinePattern, op_cells
from .stencil_text import write_base
from .text import LIGHT, indent, launch_lines, offset_lines, spread_lines, write_body

PARTS = Domain("parts_of_box", 16)
"""Index set of the parts of the box, along its lines."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """The pieces of the particles at `position`, on a grid."""

    position: Value
    cells: Shape
    spacing: float
    count: int

    @property
    def dim(self) -> int:
        return len(self.cells)

    @cached_property
    def box(self) -> Slot:
        """Corners of the box of each piece."""
        return Slot("value", make_local("box", Domain("pieces_of_particles", self.count), (2 * self.dim,)))

    def prepare(self, scope: Scope) -> None:
        """Let the sums of a pass go by pieces and parts."""
        scope.parts, scope.grids = PARTS, self.count

    def complete(self, actions: Sequence[Action]) -> list[Action]:
        """Add the search for the boxes to the actions of a pass, once positions are known; those on nodes read them."""

        def read_box(action: Action) -> Action:
            return replace(action, reads={**action.reads, self.box: "other"}) if action.domain.grid else action

        slot = Slot("value", self.position)
        known = max([number + 1 for number, action in enumerate(actions) if slot in action.writes], default=0)
        found = [read_box(action) for action in actions]
        return [*found[:known], self._find_boxes(), *found[known:]]

    def _find_boxes(self) -> Action:
        slot, dim = Slot("value", self.position), self.dim
        view, box = self.position.elements, self.box.value.elements

        def emit(site: Site) -> None:
            begin, end = (f"{size_name(view.domain)} * ({site.index} + {k}) // {self.count}" for k in (0, 1))
            some = site.load_at(slot, view, f"ti.min({begin}, {size_name(view.domain)} - 1)")
            low, high = (site.assign(name, some) for name in ("low", "high"))
            with site.block(f"for j in range({begin}, {end}):"):
                x = site.assign("x", site.load_at(slot, view, "j"))
                site.line(f"{low} = ti.min({low}, {x})")
                site.line(f"{high} = ti.max({high}, {x})")
            first, last = (
                write_base(site, self.cells, site.assign("scaled", f"{corner} * {1 / self.spacing!r}"))
                for corner in (low, high)
            )  # with a node more on each side, as rounding may differ in other loops
            corners = [f"ti.max({base} - 1, 0)" for base in first]
            corners += [
                f"ti.min({base} + {bspline.STENCIL + 1}, {count})" for base, count in zip(last, self.cells, strict=True)
            ]
            site.store(self.box, box, f"vector_{2 * dim}({', '.join(corners)})")

        return Action(box.domain, emit, {slot: "other"}, {self.box: "own"}, heavy=True, origin="boxes of pieces")

    # --- text

    def write_loop(
        self,
        group: Group,
        places: Mapping[Slot, Place],
        offsets: Mapping[str, Offset],
        *,
        parallel: bool,
        batched: bool,
    ) -> list[str]:
        """Write a group's loop as a loop of its own over all elements of all batch members."""
        view = self.position.elements
        if group.domain == view.domain:
            tasks, inner = self.count, self._particle_lines(group, places)
        elif group.domain.grid == self.cells:
            tasks, inner = PARTS.size, self._box_lines(group, places)
        else:
            parallel = parallel and (group.heavy or group.domain.size > LIGHT)
            return launch_lines(group, places, offsets, parallel=parallel, batched=batched, cpu=True)
        split = [f"member = task // {tasks}", f"piece = task - member * {tasks}"]
        body = [*split, *offset_lines(offsets, inner), *inner]
        total = f"members * {tasks}" if batched else f"{tasks}"
        loop = spread_lines(total, "task", body) if parallel else [f"for task in range({total}):", *indent(body)]
        return [f"ti.loop_config(serialize={not parallel})", *loop]

    def _particle_lines(self, group: Group, places: Mapping[Slot, Place]) -> list[str]:
        size = group.domain.size
        begin, end = f"{size} * piece // {self.count}", f"{size} * (piece + 1) // {self.count}"
        blocks = lane_lines(group, places, begin, end)
        if blocks is not None:
            return blocks
        return [f"for i in range({begin}, {end}):", *indent(write_body(group, places, "i").body)]

    def _box_lines(self, group: Group, places: Mapping[Slot, Place]) -> list[str]:
        dim, place = self.dim, places[self.box]
        names = tuple([f"cell_{d}" for d in range(dim)])
        site = write_body(group, places, "i", cell=names)
        lines = [f"low_{d}, high_{d} = {count}, 0" for d, count in enumerate(self.cells)]
        offset = "" if place.offset == "0" else f"{place.offset} + "
        lines += [f"for k in range({self.count}):", f"    corners = {place.array}[{offset}k]"]
        for d in range(dim):
            lines += [f"    low_{d} = ti.min(low_{d}, int(corners[{d}]))"]
            lines += [f"    high_{d} = ti.max(high_{d}, int(corners[{dim + d}]))"]
        widths = [f"ti.max(high_{d} - low_{d}, 0)" for d in range(dim - 1)]
        lines += [f"lines = {' * '.join(widths) or '1'}"]
        lines += [f"{name} = {zero_element(view.element)}" for name, _, view in site.sums]
        lines += [f"for line in range(lines * piece // {PARTS.size}, lines * (piece + 1) // {PARTS.size}):"]
        rest = "line"
        for d in reversed(range(dim - 1)):
            width = f"(high_{d} - low_{d})"
            lines += [f"    cell_{d} = low_{d} + {rest if d == 0 else f'{rest} % {width}'}"]
            rest = f"({rest} // {width})"
        strides = row_major(self.cells)
        row = " + ".join([f"cell_{d} * {strides[d]}" for d in range(dim - 1)]) or "0"
        last = dim - 1
        lines += [
            f"    row = {row}",
            f"    for cell_{last} in range(low_{last}, high_{last}):",
            f"        i = row + cell_{last}",
        ]
        lines += indent(site.body, 2)
        for name, slot, _ in site.sums:
            at = places[slot]
            start = "" if at.offset == "0" else f"{at.offset} + "
            lines += [f"{at.array}[{start}piece] = {name}"]
        return lines


def find_pieces(program: Program, count: int) -> Pieces | None:
    """Find the particles of a program, if only they and sub-steps on single nodes use its grid; else None."""
    ops = [op for op in program.ops if isinstance(op.pattern, SplinePattern) and op.pattern.weights.many]
    positions = {op.inputs[op.pattern.offset] for op in ops}
    others = [op for op in program.ops if op not in ops and not _is_on_nodes(op)]
    outer = [*program.state.values(), *program.params.values(), *program.result.values()]
    if len(positions) != 1 or any([_on_grid(v) for op in others for v in [*op.values(), *op.outputs]]):
        return None
    (position,) = positions
    if not isinstance(position, Value) or any([_on_grid(value) for value in outer]):
        return None
    spacing = ops[0].inputs[SPACING]
    assert isinstance(spacing, float), "made by the pattern"
    return Pieces(position, op_cells(ops[0]), spacing, count)


def _is_on_nodes(op: Op) -> bool:
    """True for a sub-step on single nodes, which reads and writes nothing else."""
    kinds = {source.kind for source in op.pattern.sources.values()}
    return isinstance(op.pattern, PerElement) and bool(op.domain.grid) and "gathered" not in kinds


def _on_grid(value: Value) -> bool:
    return value.view is not None and value.view.domain.name == CELLS
