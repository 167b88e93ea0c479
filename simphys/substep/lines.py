"""Text of loops over the lines of a grid in its layout, for all batch members; see `layout`.

A loop computes a block of entries of a line into local tables, and stores these at once: loops that store single
numbers are not vectorized. Masks change no index, but prove that indices cannot overflow; only such loops are
vectorized.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from simphys.autograd import runtime
from simphys.autograd.kernels.launch import Kernel
from simphys.numerics.stencil import first_difference, second_difference
from simphys.simulator import Array

from .layout import BLOCK
from .text import indent, make_kernel, uses_name

SHIFT = BLOCK.bit_length() - 1
"""Bits of an index within a block."""
INDEX = 2**30 - 1
"""Mask for indices of blocks."""
STRIDE = 2**24 - 1
"""Mask for strides."""
SIZES = ("members", "pieces", "lines", "lines2", "blocks", "stride", "own_stride", "line_step", "width")
"""Numbers of lines and blocks, the strides of a layer's axis, and what gives a line's position along that axis."""


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
    name: str, arrays: Mapping[str, str], numbers: Mapping[str, str], body: list[str], functions: Mapping[str, Any]
) -> TextLoop:
    """Compile text. `arrays` and `numbers` have the types of what it may name; what changes comes last."""
    parameters = {n: kind for n, kind in {**arrays, **numbers}.items() if uses_name(body, n)}
    called = {n: func for n, func in functions.items() if uses_name(body, n)}
    return TextLoop(make_kernel(name, parameters, body, called, runtime.real()), tuple(parameters))


def compile_lines(
    loop: LineLoop, functions: Mapping[str, Any], *, parallel: bool, spread: int, on_last_axis: bool = False
) -> TextLoop:
    """Compile a loop over lines, which calls functions by name.

    Of every `spread` iterations, one does the work of a piece. With `on_last_axis`, lines run along the slab's axis.
    """
    text = [*loop.body, *loop.results.values()]
    layouts = {name: "grid" for name in loop.grid} | {name: "slab" for name in loop.slab}
    layouts = {name: s for name, s in layouts.items() if name in loop.results or uses_name(text, name)}
    arrays = dict.fromkeys([*layouts, *loop.profiles], "array_real")
    arrays |= {f"{name}_blocks": f"array_vector_{BLOCK}" for name in loop.results}
    used = [layout for layout in ("grid", "slab") if layout in layouts.values()]
    numbers = [*SIZES, *[f"{layout}{part}" for layout in used for part in ("_begin", "_1", "_2")]]
    numbers += ["slab_stride", *[f"{name}_stride" for name in layouts]]
    lines = [
        *[f"{s} = line // lines2 * {s}_1 + line % lines2 * {s}_2 + {s}_begin" for s in used],
        *[
            f"{name}_0 = {f'{name}_at + ' * (name in loop.moving)}member * {_stride(name, loop)} + {layout}"
            for name, layout in layouts.items()
        ],
        *[f"first = line // line_step % width & {INDEX}"] * (bool(loop.profiles) and not on_last_axis),
        "for k in range(blocks):",
    ]
    block = [f"{name}_b = ({name}_0 + k * {BLOCK}) & {INDEX}" for name in layouts]
    block += [f"{name}_t = vector_{BLOCK}(0.0)" for name in loop.results]
    entry = [f"{name}_i = {name}_b + n" for name in layouts]
    along = f"((k * {BLOCK}) & {INDEX}) + n" if on_last_axis else "first"
    # a line across the axis lies inside
    entry += [f"{n}_n = {f'{n}[{along}]' if n != 'mask' or on_last_axis else '1.0'}" for n in loop.profiles]
    entry += [*loop.body, *[f"{name}_t[n] = {expression}" for name, expression in loop.results.items()]]
    block += [f"for n in range({BLOCK}):", *indent(entry)]
    block += [f"{name}_blocks[{name}_b >> {SHIFT}] = {name}_t" for name in loop.results]
    body = [
        f"ti.loop_config(serialize={not parallel})",
        f"for y in range(members * pieces * {spread}):",
        f"    if y % {spread} == 0:",
        f"        member, piece = y // {spread} // pieces, y // {spread} % pieces",
        "        for line in range(lines * piece // pieces, lines * (piece + 1) // pieces):",
        *indent([*lines, *indent(block)], 3),
    ]
    offsets = [f"{name}_at" for name in loop.moving]
    return compile_loop(loop.name, arrays, dict.fromkeys([*numbers, *offsets], "i32"), body, functions)


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
