"""Text of a loop over the nodes around a particle: three along each axis, with their weights and offsets.

The loop goes line by line along the last axis. In a plane it is unrolled, so that the compiler can vectorize it. In
space the nine lines are a loop, as compile time grows faster than the size of the code.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from simphys.numerics import bspline
from simphys.simulator import Array, Shape

from .grid import row_major
from .program import Op
from .scope import Scope
from .site import Site


class Quadratic:
    """Quadratic B-splines for particles, which are many: three nodes along each axis, and none outside of the grid."""

    fewest = bspline.STENCIL
    element_us = 0.03
    many = True

    def tabulate(self, model: Any, cells: Shape, count: int, source: str) -> tuple[dict[str, Array], Shape]:
        return {}, ()

    def around(self, site: Site, op: Op, scope: Scope, position: str, spacing: str) -> QuadraticStencil:
        return QuadraticStencil(site, op.variant[0], position, spacing, scope)


class QuadraticStencil:
    """The nodes around a particle at `position`; within the loop, names of local variables of a node."""

    def __init__(self, site: Site, cells: Shape, position: str, spacing: str, scope: Scope) -> None:
        self._site, self._cells, self._spacing = site, cells, spacing
        known = [f"{position} {part}" for part in ("base", "f", "w", "s")]
        self._names = [site.named.get(key) for key in known]
        self.node = self.weight = self.offset = self.slope = ""
        scope.functions.setdefault("spline_weights", bspline.spline_weights)
        scope.functions.setdefault("spline_slopes", bspline.spline_slopes)
        if self._names[0] is None:
            self._names = [*self._locate(position), None]
            site.named.update({key: name for key, name in zip(known, self._names, strict=True) if name})
        self._slope_key = known[3]

    def _locate(self, position: str) -> list[str]:
        """Write the index of the first node, the distance from there in spacings, and the weights along the axes."""
        site, dim = self._site, len(self._cells)
        scaled = site.assign("scaled", f"{position} * (1.0 / {self._spacing})")
        base = write_base(site, self._cells, scaled)
        terms = [f"{b} * {stride}" for b, stride in zip(base, row_major(self._cells), strict=True)]
        first = site.assign("first", " + ".join(terms))
        f = site.assign("f", f"{scaled} - vector_{dim}({', '.join(base)})")
        return [first, f, site.assign("w", f"spline_weights({f})")]

    @contextmanager
    def loop(self, *, slopes: bool) -> Iterator[None]:
        """Loop over the nodes; with `slopes`, the derivatives of the weights by the position are known, too."""
        site, dim, last = self._site, len(self._cells), len(self._cells) - 1
        first, f, w, s = self._names
        if slopes and s is None:
            s = site.named[self._slope_key] = site.assign("s", f"spline_slopes({f}) * (1.0 / {self._spacing})")
        lines = [site.fresh("line") for _ in range(last)]
        heads = [f"for {line} in {'ti.static(range(3))' if dim == 2 else 'range(3)'}:" for line in lines]
        with site.nest(heads):
            at = [f"{line} * {stride}" for line, stride in zip(lines, row_major(self._cells), strict=False)]
            begin = site.assign("node", " + ".join([f"{first}", *at]))
            along = [site.assign("along", f"{w}[{line}, {d}]") for d, line in enumerate(lines)]
            shared = " * ".join(along) or "1.0"
            product = site.assign("weight", shared)

            def node(k: int) -> None:
                self.node = f"({begin} + {k})"
                self.weight = site.assign("weight", f"{product} * {w}[{k}, {last}]")
                offsets = [f"{line} - {f}[{d}]" for d, line in enumerate([*lines, f"{k}"])]
                self.offset = site.assign("r", f"{self._spacing} * vector_{dim}({', '.join(offsets)})")
                if slopes:
                    factors = [*[(line, d) for d, line in enumerate(lines)], (f"{k}", last)]
                    parts = [
                        " * ".join([f"{s if axis == d else w}[{line}, {axis}]" for line, axis in factors])
                        for d in range(dim)
                    ]
                    self.slope = site.assign("slope", f"vector_{dim}({', '.join(parts)})")

            self.nodes = [functools.partial(node, k) for k in range(3)]
            yield


def write_base(site: Site, cells: Shape, scaled: str) -> list[str]:
    """Write the index of the first node along each axis, from a position in spacings."""
    return [
        site.assign("base", f"ti.max(0, ti.min(int({scaled}[{d}] - 0.5), {count - bspline.STENCIL}))")
        for d, count in enumerate(cells)
    ]
