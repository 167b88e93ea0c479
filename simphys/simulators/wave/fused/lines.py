"""Text of loops over the lines of a grid in its layout, for all batch members; see `layout`.

A loop computes a block of entries of a line as a vector, and stores it at once: loops that store single numbers are not
vectorized. On the CPU, kernels are wide, so that one instruction stores many numbers. Each compiler is given the text
that it makes the most of, see `line_text`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from simphys.autograd import runtime
from simphys.autograd.kernels.launch import Kernel
from simphys.numerics.stencil import first_difference, second_difference
from simphys.simulator import Array
from simphys.substep.text import find_names, indent, make_kernel

from ..layout import BLOCK
from .line_text import INDEX, STRIDE, by_entry, by_vector

SIZES = ("members", "pieces", "lines", "lines2", "blocks", "stride", "own_stride", "line_step", "width")
"""Numbers of lines and blocks, the strides of a layer's axis, and what gives a line's position along that axis."""
TIME = ("outer", "outer_step", "group", "lag", "rows", "size")
"""Numbers of a loop over time: of the first axis, of the lines across it, and of the rows of an array."""
WHEN = ("phase", "row", "way", "steps")
"""Numbers that a launch of a loop over time takes."""


@dataclass(frozen=True)
class LineLoop:
    """A loop in terms of arrays by name: x[x_i] is the entry of an array x."""

    name: str
    results: Mapping[str, str]
    """Arrays that are written, with an expression for each."""
    grid: tuple[str, ...]
    """Arrays in the layout of the grid."""
    slab: tuple[str, ...] = ()
    """Arrays in the layout of a slab, which is a part of the grid along an axis."""
    body: tuple[str, ...] = ()
    """Lines before the results."""
    moving: tuple[str, ...] = ()
    """Arrays whose offset x_at is given at each launch, in order."""
    profiles: tuple[str, ...] = ()
    """Arrays along the axis of the slab, whose entries are named like x_n; `mask` is 1 inside and 0 behind its ends."""
    over_time: tuple[str, ...] = ()
    """Rows of one array, one after another, the last of which a step computes; a launch makes some steps, see `WHEN`.

    `row` is the first of them in the first step, `way` is 1 or -1. The number of rows may be smaller than that of
    steps: they go round.
    """


@dataclass(frozen=True)
class TextLoop:
    """A kernel made of text, and the names of its arguments."""

    kernel: Kernel
    names: tuple[str, ...]

    @property
    def moving(self) -> list[str]:
        """Arrays whose offsets are given at each launch, in order."""
        return [name.removesuffix("_at") for name in self.names if name.endswith("_at")]

    def bind(self, known: Mapping[str, Any]) -> Callable[..., None]:
        """Bind all arguments but those at the end that are not known."""
        given = [known[name] for name in self.names if name in known]
        assert list(self.names[: len(given)]) == [name for name in self.names if name in known], "the rest is open"
        return self.kernel.bind(*given)


def compile_loop(
    name: str,
    arrays: Mapping[str, str],
    numbers: Mapping[str, str],
    body: list[str],
    functions: Mapping[str, Any],
    *,
    written: Iterable[str],
    wide: bool = False,
) -> TextLoop:
    """Compile text that writes some arrays. `arrays` and `numbers` have the types of what it may name.

    What changes comes last.
    """
    named = find_names(body)
    parameters = {n: kind for n, kind in {**arrays, **numbers}.items() if n in named}
    called = {n: func for n, func in functions.items() if n in named}
    kernel = make_kernel(name, parameters, body, called, runtime.real(), frozenset(written), wide=wide)
    return TextLoop(kernel, tuple(parameters))


def compile_lines(
    loop: LineLoop, functions: Mapping[str, Any], *, parallel: bool, spread: int, on_last_axis: bool = False
) -> TextLoop:
    """Compile a loop over lines, which calls functions by name.

    Of every `spread` iterations, one does the work of a piece. With `on_last_axis`, lines run along the slab's axis.
    """
    text = [*loop.body, *loop.results.values()]
    layouts = {name: "grid" for name in loop.grid} | {name: "slab" for name in loop.slab}
    named = find_names(text)
    layouts = {name: s for name, s in layouts.items() if name in loop.results or name in named}
    wide = not runtime.settings().on_gpu
    write = by_vector if wide and runtime.compiler == "taichi" else by_entry
    block = write(layouts, loop.body, loop.results, loop.profiles, on_last_axis=on_last_axis)
    used = [layout for layout in ("grid", "slab") if layout in layouts.values()]
    begins = [f"{s} = line // lines2 * {s}_1 + line % lines2 * {s}_2 + {s}_begin" for s in used]
    if loop.over_time:
        begins = ["grid = i * outer_step + line * grid_2 + grid_begin"]
    lines = [
        *begins,
        *[
            f"{name}_0 = {f'{name}_at + ' * _has_offset(name, loop)}member * {_stride(name, loop)} + {layout}"
            for name, layout in layouts.items()
        ],
        *[f"first = line // line_step % width & {INDEX}"] * (bool(loop.profiles) and not on_last_axis),
        "for k in range(blocks):",
        *indent(block),
    ]
    body = [f"ti.loop_config(serialize={not parallel})", *_piece_lines(loop, spread, lines)]
    arrays = dict.fromkeys([*layouts, *loop.profiles], "array_real")
    arrays |= {f"{name}_blocks": f"array_vector_{BLOCK}" for name in layouts}
    numbers = [*SIZES, *TIME, *[f"{layout}{part}" for layout in used for part in ("_begin", "_1", "_2")]]
    numbers += ["slab_stride", *[f"{name}_stride" for name in layouts]]
    last = WHEN if loop.over_time else [f"{name}_at" for name in loop.moving]
    integers = dict.fromkeys([*numbers, *last], "i32")
    written = [*loop.results, *[f"{name}_blocks" for name in loop.results]]
    return compile_loop(loop.name, arrays, integers, body, functions, written=written, wide=wide)


def _piece_lines(loop: LineLoop, spread: int, lines: list[str]) -> list[str]:
    """Write the loops around a line: members, pieces of the grid, and lines of a piece, perhaps over time."""
    parts = "(pieces - phase)" if loop.over_time else "pieces"
    inner = [f"member, part = y // {spread} // {parts}, y // {spread} % {parts}"]
    if loop.over_time:
        inner += _front_lines(loop.over_time, lines)
    else:
        inner += ["for line in range(lines * part // pieces, lines * (part + 1) // pieces):", *indent(lines)]
    return [f"for y in range(members * {parts} * {spread}):", f"    if y % {spread} == 0:", *indent(inner, 2)]


def _front_lines(rows: tuple[str, ...], lines: list[str]) -> list[str]:
    """Write the loops over the steps in a piece of the grid, so that what a step computes is in cache for the next one.

    A front goes along the first axis; a step follows the step before at a distance of `lag`, as far as differences
    reach. A piece shrinks by this from step to step at its inner ends, in phase 0; phase 1 fills the gaps that are left
    around each end. So pieces need nothing of each other, and a cell's row is overwritten when nothing needs it.
    """
    before, now, new = [f"{name}_at" for name in rows]
    return [
        "low, high = outer * (part + phase) // pieces, outer * (part + 1) // pieces",
        "rise, fall = lag * ti.min(part, 1), lag * ti.min(pieces - 1 - part, 1)",
        "if phase == 1:",
        "    rise, fall = -lag, -lag",
        "for front in range(low, high + (lag - fall) * (steps - 1)):",
        f"    {now}, {new} = row % rows * size, (row + way) % rows * size",
        "    for s in range(steps):",
        f"        {before}, {now} = {now}, {new}",
        f"        {new} = {now} + way * size",
        f"        if {new} < 0 or {new} == rows * size:",
        f"            {new} -= way * rows * size",
        "        i = front - lag * s",
        "        if low + rise * s <= i and i < high - fall * s:",
        "            for line in range(group):",
        *indent(lines, 4),
    ]


def _has_offset(name: str, loop: LineLoop) -> bool:
    """True if x_at is added to the index of an array x."""
    return name in loop.moving or name in loop.over_time


def _stride(name: str, loop: LineLoop) -> str:
    """Name of the distance between members; arrays of a slab that stay where they are have the same indices."""
    return "slab_stride" if name in loop.slab and name not in loop.moving else f"{name}_stride"


def array_arguments(arrays: Mapping[str, Array]) -> dict[str, Any]:
    """Arguments of arrays [B, ...], or [1, ...] for one that members share: numbers, blocks and strides."""
    known: dict[str, Any] = {}
    for name, values in arrays.items():
        known[name] = values.reshape(-1)
        known[f"{name}_stride"] = values[0].size if len(values) > 1 else 0
        if values.size % BLOCK == 0:
            known[f"{name}_blocks"] = values.reshape(-1, BLOCK)
    return known


def first(name: str, stride: str, order: int) -> str:
    """Expression of dx times the first derivative of an array, with neighbours `stride` numbers apart."""
    terms = [
        f"{c!r} * ({name}[{name}_i + {k} * {stride}] - {name}[{name}_i - {k} * {stride}])"
        for k, c in enumerate(first_difference(order), 1)
    ]
    return f"({' + '.join(terms)})"


def second(name: str, stride: str, order: int) -> str:
    """Expression of dx^2 times the second derivative."""
    c_0, *others = second_difference(order)
    terms = [
        f"{c!r} * ({name}[{name}_i + {k} * {stride}] + {name}[{name}_i - {k} * {stride}])"
        for k, c in enumerate(others, 1)
    ]
    return f"({' + '.join([f'{c_0!r} * {name}[{name}_i]', *terms])})"


def laplace(name: str, dim: int, order: int) -> str:
    """Expression of dx^2 times the Laplacian of an array in the layout of the grid."""
    strides = ("1", f"(grid_2 & {STRIDE})", f"(grid_1 & {STRIDE})")[:dim]
    return " + ".join([second(name, stride, order) for stride in strides])
