"""The loops of the fused steps over points and the cells around them: values gathered from fields, and scattered.

Fields are in the layout of the grid. W is the weight of a cell for a point, x its position. All arrays hold all batch
members, who go in order, as points do: nothing is added twice at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from simphys.autograd import runtime
from simphys.simulator import Array, Shape
from simphys.substep.expressions import build_element
from simphys.substep.nodes import Node, Nodes, flat_index, functions_of_nodes, loop_over_nodes, node_table
from simphys.substep.site import Site
from simphys.substep.text import indent

from ..layout import Layout
from .lines import TextLoop, array_arguments, compile_loop

FIELDS = ("field", "factor", "dfield", "dfactor")
"""Arrays in the layout of the grid; those of points are all others."""
Row = tuple[Array, int]
"""An array [B, rows, ...], and one of its rows."""


class PointText:
    """Text of a loop over points. An array x of theirs has the entry `self["x"]`."""

    def __init__(self, cells: Shape, sides: tuple[str, ...]) -> None:
        self.site, self._cells, self._sides = Site({}, "point"), cells, sides
        self._dim = len(cells)
        self.zero = f"vector_{self._dim}(0.0)"

    def __getitem__(self, name: str) -> str:
        return f"{name}[{self._begin(name)} + point]"

    def vector(self, name: str) -> str:
        """Expression of the vector of the point in an array."""
        return build_element([self._component(name, axis) for axis in range(self._dim)], (self._dim,))

    def add_vector(self, name: str, expression: str) -> None:
        """Add to the vector of the point in an array."""
        for axis in range(self._dim):
            entry = self._component(name, axis)
            self.site.line(f"{entry} = {entry} + {expression}[{axis}]")

    def at_cells(self, body: Callable[[Node, dict[str, str]], None]) -> None:
        """Write a loop over the cells around the point; `body` takes a node, and the entry of each field."""
        nodes = Nodes(self._cells, self._sides, "nodes", "inverse_spacing", "even")
        strides: list[int | str] = [*[f"step_{axis}" for axis in range(self._dim - 1)], 1]

        with loop_over_nodes(self.site, nodes, "point", self.vector("position")) as node:
            cell = self.site.assign("cell", f"cell_begin + {flat_index(node.at, strides)}")
            body(node, {name: f"{name}[{self._begin(name)} + {cell}]" for name in FIELDS})

    def compile(self, name: str, *arrays: str, written: str) -> TextLoop:
        """Compile the loop over these arrays, one of which it writes; a launch takes their offsets in order."""
        types = dict.fromkeys(arrays, "array_real") | {"nodes": "ints", "even": "ints"}
        integers = ["members", "count", "cell_begin", "step_0", "step_1", *[f"{array}_stride" for array in arrays]]
        numbers = {"inverse_spacing": "real", **dict.fromkeys([*integers, *[f"{each}_at" for each in arrays]], "i32")}
        body = ["ti.loop_config(serialize=True)", "for y in range(members * count):"]
        body += indent(["member, point = y // count, y % count", *self.site.compute])
        return compile_loop(name, types, numbers, body, functions_of_nodes(), written=[written])

    def _begin(self, name: str) -> str:
        return f"{name}_at + member * {name}_stride"

    def _component(self, name: str, axis: int) -> str:
        return f"{name}[{self._begin(name)} + {self._dim} * point + {axis}]"


@runtime.cached(maxsize=16)
def scatter(cells: Shape, sides: tuple[str, ...]) -> TextLoop:
    """Add factor W value to a field."""
    text = PointText(cells, sides)

    def body(node: Node, at: dict[str, str]) -> None:
        text.site.line(f"{at['field']} = {at['field']} + {at['factor']} * {node.weight} * {text['value']}")

    text.at_cells(body)
    return text.compile("scatter", "field", "factor", "value", "position", written="field")


@runtime.cached(maxsize=16)
def jvp_scatter(cells: Shape, sides: tuple[str, ...]) -> TextLoop:
    """Add the tangent of `scatter` to a field."""
    text = PointText(cells, sides)

    def body(node: Node, at: dict[str, str]) -> None:
        moved = f"{node.weight} * {text['dvalue']} + {node.slope()}.dot({text.vector('dposition')}) * {text['value']}"
        change = f"{at['dfactor']} * {node.weight} * {text['value']} + {at['factor']} * ({moved})"
        text.site.line(f"{at['field']} = {at['field']} + {change}")

    text.at_cells(body)
    arrays = ("field", "factor", "dfactor", "value", "position", "dvalue", "dposition")
    return text.compile("jvp_scatter", *arrays, written="field")


@runtime.cached(maxsize=16)
def gather(cells: Shape, sides: tuple[str, ...]) -> TextLoop:
    """Add the sum of W field to values."""
    text = PointText(cells, sides)
    total = text.site.assign("total", "real(0.0)")
    text.at_cells(lambda node, at: text.site.line(f"{total} += {node.weight} * {at['field']}"))
    text.site.line(f"{text['value']} = {text['value']} + {total}")
    return text.compile("gather", "field", "value", "position", written="value")


@runtime.cached(maxsize=16)
def jvp_gather(cells: Shape, sides: tuple[str, ...]) -> TextLoop:
    """Add the tangent of `gather` to values."""
    text = PointText(cells, sides)
    total = text.site.assign("total", "real(0.0)")

    def body(node: Node, at: dict[str, str]) -> None:
        moved = f"{node.slope()}.dot({text.vector('dposition')}) * {at['field']}"
        text.site.line(f"{total} += {node.weight} * {at['dfield']} + {moved}")

    text.at_cells(body)
    text.site.line(f"{text['dvalue']} = {text['dvalue']} + {total}")
    return text.compile("jvp_gather", "field", "dfield", "dvalue", "position", "dposition", written="dvalue")


@runtime.cached(maxsize=16)
def adj_position(cells: Shape, sides: tuple[str, ...]) -> TextLoop:
    """Add to the adjoint of positions: the sum of value field grad W."""
    text = PointText(cells, sides)
    adj_x = text.site.assign("adj_x", text.zero)
    text.at_cells(lambda node, at: text.site.line(f"{adj_x} += {text['value']} * {at['field']} * {node.slope()}"))
    text.add_vector("adj_position", adj_x)
    return text.compile("adj_position", "field", "value", "position", "adj_position", written="adj_position")


class _Bound(NamedTuple):
    """A loop bound to arrays, which are in the order of the offsets that a launch takes."""

    arrays: dict[str, Array]
    launch: Callable[..., None]


class PointLoops:
    """Launches of these loops over some points on a grid of cells with these sides and this spacing.

    Bit a of an entry of `even` is set if that point spreads evenly along axis a.
    """

    def __init__(
        self, layout: Layout, sides: tuple[str, ...], spacing: float, *, members: int, count: int, even: Array
    ) -> None:
        self._grid = layout.shape, sides
        self._known: dict[str, Any] = {f"step_{axis}": stride for axis, stride in enumerate(layout.strides)}
        self._known |= {"nodes": node_table(*self._grid), "even": even, "count": count}
        self._known |= {"cell_begin": layout.origin, "members": members, "inverse_spacing": 1 / spacing}
        self._bound: dict[Any, _Bound] = {}

    def run(self, loop: Callable[..., TextLoop], **rows: Row) -> None:
        """Launch a loop on rows of arrays, bound again only when one of the arrays is another object."""
        bound = self._bound.get(loop)
        if bound is None or any([rows[name][0] is not values for name, values in bound.arrays.items()]):
            arrays = {name: values for name, (values, _) in rows.items()}
            text = loop(*self._grid)
            launch = text.bind({**self._known, **array_arguments(arrays)})
            bound = self._bound[loop] = _Bound({name: arrays[name] for name in text.moving}, launch)
        bound.launch(*[row and row * values[0, 0].size for values, row in [rows[name] for name in bound.arrays]])
