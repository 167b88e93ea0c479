"""Halos of a grid in its layout: the cells beyond its sides, see `numerics.boundary`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.numerics.boundary import fold
from simphys.simulator import Array

from ..layout import Layout
from .lines import TextLoop, array_arguments, compile_loop


def is_always_zero(layout: Layout, boundaries: tuple[str, ...], reach: int) -> bool:
    """True if no cell beyond the sides, as far as `reach` cells, ever differs from 0."""
    return not _tabulate(layout, boundaries, reach)


def bind_fill_halo(
    layout: Layout, u: Array, *, boundaries: tuple[str, ...], reach: int, parallel: bool
) -> Callable[[int], None]:
    """Bind `fill_halo(u_at)`, which continues a field [B, rows, size] beyond all sides, as far as `reach` cells.

    Cells of the halo that are always 0 are left out: they are 0 from the start.
    """
    known = {**array_arguments({"u": u}), "members": len(u)}
    launches = [_compile(parallel).bind({**known, **table}) for table in _tabulate(layout, boundaries, reach)]

    def fill_halo(u_at: int) -> None:
        for launch in launches:
            launch(u_at)

    return fill_halo


@runtime.cached
def _compile(parallel: bool) -> TextLoop:
    body = [
        f"ti.loop_config(serialize={not parallel})",
        "for y in range(members * count):",
        "    begin = y // count * u_stride + u_at + edge[y % count]",
        "    for k in range(pairs):",
        "        u[begin + halo[k]] = sign[k] * u[begin + cell[k]]",
    ]
    arrays = {"u": "array_real", "sign": "array_real", "edge": "ints", "halo": "ints", "cell": "ints"}
    numbers = dict.fromkeys(("members", "count", "pairs", "u_stride", "u_at"), "i32")
    return compile_loop("fill_halo", arrays, numbers, body, {}, written=["u"])


@runtime.cached(maxsize=16)
def _tabulate(layout: Layout, boundaries: tuple[str, ...], reach: int) -> list[dict[str, Any]]:
    """Tabulate, for each axis, the first cells along it, and how far behind these halo and repeated cells lie."""
    at, found = layout.view_cells(np.arange(layout.size)), []
    for axis, count in enumerate(layout.shape):
        steps = np.arange(1, reach + 1)
        beyond = np.concatenate([-steps, count - 1 + steps])
        index, sign = fold(beyond, count, *boundaries[2 * axis : 2 * axis + 2])
        stride, there = layout.strides[axis], sign != 0
        parts = np.take(at, 0, axis).reshape(-1), beyond[there] * stride, index[there] * stride
        edge, halo, cell = (part.astype(np.int32) for part in parts)
        signs = sign[there].astype(runtime.real_dtype())
        table = {"edge": edge, "halo": halo, "cell": cell, "sign": signs, "count": edge.size, "pairs": halo.size}
        found += [table] * bool(halo.size)
    return found
