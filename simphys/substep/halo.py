"""Halos of a grid in its layout: the cells beyond its sides, see `numerics.boundary`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simphys.autograd import runtime
from simphys.numerics.boundary import fold
from simphys.simulator import Array

from .layout import Layout
from .lines import TextLoop, array_arguments, compile_loop


def bind_fill_halo(
    layout: Layout, u: Array, *, boundaries: tuple[str, ...], reach: int, parallel: bool
) -> Callable[[int], None]:
    """Bind `fill_halo(u_at)`, which continues a field [B, rows, size] beyond all sides, as far as `reach` cells.

    Halos that are always 0 are left out: they are 0 from the start.
    """
    halo, cell, sign = _tabulate(layout, boundaries, reach)
    if not halo.size:
        return lambda u_at: None
    known = {"halo": halo, "cell": cell, "sign": sign, "members": len(u), "count": halo.size}
    return _compile(parallel).bind({**array_arguments({"u": u}), **known})


@runtime.cached
def _compile(parallel: bool) -> TextLoop:
    body = [
        f"ti.loop_config(serialize={not parallel})",
        "for y in range(members * count):",
        "    begin, e = y // count * u_stride + u_at, y % count",
        "    u[begin + halo[e]] = sign[e] * u[begin + cell[e]]",
    ]
    arrays = {"u": "array_real", "sign": "array_real", "halo": "ints", "cell": "ints"}
    return compile_loop("fill_halo", arrays, dict.fromkeys(("members", "count", "u_stride", "u_at"), "i32"), body, {})


@runtime.cached(maxsize=16)
def _tabulate(layout: Layout, boundaries: tuple[str, ...], reach: int) -> tuple[Array, Array, Array]:
    """Tabulate positions in the halo, those of the cells that they repeat, and signs."""
    at, found = layout.view_cells(np.arange(layout.size)), []
    for axis, count in enumerate(layout.shape):
        sides = boundaries[2 * axis : 2 * axis + 2]
        if set(sides) <= {"absorbing", *["zero"] * (reach == 1)}:
            continue
        steps = np.arange(1, reach + 1)
        for i in (*-steps, *(count - 1 + steps)):
            index, sign = fold(np.array([i]), count, *sides)
            halo = np.take(at, [0], axis).reshape(-1) + i * layout.strides[axis]
            found.append((halo, np.take(at, index, axis).reshape(-1), np.repeat(sign, halo.size)))
    halo, cell, sign = (np.concatenate([*parts, []]) for parts in (zip(*found, strict=True) if found else [[]] * 3))
    return halo.astype(np.int32), cell.astype(np.int32), sign.astype(runtime.real_dtype())
