"""The layout of a grid and its slabs, and loops bound to arrays, which the nested sub-step and the engine launch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.simulator import Array

from . import layer, layer_loops, loops
from .layout import BLOCK, Layout
from .model import Slab, Wave

CELL_US = 0.0008
"""Serial cost [us] of a cell in `leap`."""

SPREAD = 512
"""Loop iterations for each piece of work. A CPU runs a parallel loop of at most 512 iterations on one thread, so each
piece has this many iterations, one of which does the work."""

Launch = Callable[..., None]


@dataclass(frozen=True)
class SlabPlace:
    """Position of a slab in its own layout and in the layout of the grid."""

    slab: Slab
    layout: Layout
    offset: int
    """Index at which it begins in a row of the layers' memory."""
    along: bool
    """True if the layer's axis is the last one, so that lines of memory run along it."""
    indices: tuple[int, ...]
    """Number of lines, then the indices of its layout."""
    grid: tuple[int, int, int]
    """m0, M1, M2, see `layer_loops`."""
    which: tuple[int, int]
    """which and width, see `layer_loops`."""
    own: int
    """Stride of its axis in its own layout."""
    lead: int
    """Number of cells in its layout before its own first cell; nonzero only if lines run along its axis."""
    beside: tuple[int, int, tuple[int, ...]]
    """Cells within reach of its differences: origin in its layout, m0, and (lines, s1, s2, lines2)."""


class GridLoops:
    """The loops of a model for a batch of a given size."""

    def __init__(self, model: Wave, batch: int) -> None:
        self.model, self.batch = model, batch
        self.layout = Layout(model.cells, model.halo)
        work = CELL_US * math.prod(model.cells) * batch
        chosen = runtime.settings()
        self._parallel = runtime.parallel(work)
        self._pieces = max(1, min(4 * chosen.threads // batch, self.layout.lines)) if self._parallel else 1
        self._spread = SPREAD if self._parallel and not chosen.on_gpu else 1
        self._head = (batch, self._pieces, self.layout.lines, *self.layout.indices)

    @cached_property
    def slabs(self) -> tuple[SlabPlace, ...]:
        """The absorbing layers."""
        made: list[SlabPlace] = []
        for slab in self.model.slabs:
            offset = made[-1].offset + made[-1].layout.size if made else 0
            made.append(_place(self.model, self.layout, slab, offset))
        return tuple(made)

    @property
    def memory(self) -> int:
        """Length of a batch member's layer memory in the layouts of the slabs; loops may read its extra last block."""
        return sum([place.layout.size for place in self.slabs]) + BLOCK

    @cached_property
    def profiles(self) -> list[tuple[Array, Array, Array]]:
        """Profiles a, b and a mask of 1 along the axis of each slab, all 0 outside of it."""
        made = []
        for place in self.slabs:
            slab, length = place.slab, place.layout.shape[place.slab.axis]
            pad = (place.lead, length - place.lead - slab.width)
            a, b = layer.profile(self.model, slab)
            a, b, mask = (np.pad(x, pad).astype(runtime.real_dtype()) for x in (a, b, np.ones(slab.width)))
            made.append((a, b, mask))
        return made

    def into_slabs(self, memory: Array) -> Array:
        """Copy the layers' memory [..., layer_cells] into the layouts of the slabs, [..., self.memory]."""
        made = np.zeros((*memory.shape[:-1], self.memory), runtime.real_dtype())
        for place in self.slabs:
            self._cells(place, made)[...] = self._own(place, memory)
        return made

    def from_slabs(self, values: Array) -> Array:
        """Copy the layers' memory out of the layouts of the slabs: the reverse of `into_slabs`."""
        memory = np.empty((*values.shape[:-1], self.model.layer_cells), values.dtype)
        for place in self.slabs:
            self._own(place, memory)[...] = self._cells(place, values)
        return memory

    @staticmethod
    def _cells(place: SlabPlace, values: Array) -> Array:
        cells = place.layout.cells(values[..., place.offset : place.offset + place.layout.size])
        return cells[..., place.lead : place.lead + place.slab.width] if place.along else cells

    @staticmethod
    def _own(place: SlabPlace, memory: Array) -> Array:
        slab = place.slab
        part = memory[..., slab.offset : slab.offset + math.prod(slab.shape)]
        return part.reshape(*memory.shape[:-1], *slab.shape)

    def curvature(self, u: Array, extra: Array, new: Array) -> Launch:
        """Bind `curvature()`: dx^2 laplace u + extra for one batch member, from u with its halo filled; all [size]."""
        return self._kernels(True).curve.bind(flat(u), blocks(new), flat(extra), *self._head)

    def leap(self, u: Array, kappa: Array, extra: Array | None, *, of_u: int) -> Launch:
        """Bind `leap(at_before, at_u, at_new)`, all offsets into u; `kappa` [1 or B, size]."""
        of = (of_u, self.layout.size if len(kappa) > 1 else 0, self.layout.size)
        arrays = flat(u), flat(u), blocks(u), flat(kappa), flat(u if extra is None else extra)
        return self._kernels(extra is not None).leap.bind(*arrays, *self._head, *of)

    def adj_log_courant(self, u: Array, w: Array, total: Array, extra: Array, *, of_u: int, of_w: int) -> Launch:
        """Bind `adj_log_courant(at_u, at_w)`, which adds to `total`."""
        arrays = flat(u), flat(w), blocks(total), flat(total), flat(extra)
        log = self._kernels(bool(self.slabs)).adj_log_courant
        return log.bind(*arrays, *self._head, of_u, of_w, self.layout.size)

    def jvp_kappa(self, u: Array, du: Array, dkappa: Array, extra: Array, *, of_u: int, of_new: int) -> Launch:
        """Bind `jvp_kappa(at_u, at_new)`, which adds the effect of `dkappa` to du."""
        arrays = flat(u), blocks(du), flat(du), flat(dkappa), flat(extra)
        of_kappa = self._kernels(bool(self.slabs)).jvp_kappa
        return of_kappa.bind(*arrays, *self._head, of_u, self.layout.size, self.layout.size, of_new)

    def continue_beyond(self, u: Array, *, of_u: int) -> list[Launch]:
        """Bind `continue_beyond(at)` for each axis whose halo is not always 0."""
        model, layout = self.model, self.layout
        made = []
        for axis, count in enumerate(model.cells):
            low, high = (loops.KINDS[kind] for kind in model.boundaries[2 * axis : 2 * axis + 2])
            still = {loops.KINDS["absorbing"]} | ({loops.KINDS["zero"]} if model.order == 2 else set())
            if {low, high} <= still:
                continue  # the halo of this axis is 0 from the start and stays so
            others = [(model.cells[b], layout.strides[b]) for b in range(model.dim) if b != axis]
            (n1, s1), (n2, s2) = (*others, (1, 0), (1, 0))[:2]
            of = self.batch, of_u, layout.origin, count, layout.strides[axis], n1, s1, n2, s2, low, high
            made.append(self._kernels(bool(self.slabs)).continue_beyond.bind(flat(u), *of))
        return made

    def layers(self, u: Array, psi: Array, zeta: Array, extra: Array, *, of_u: int, of_psi: int) -> list[Launch]:
        """Bind `layer(at_u, at, at_new)` for each slab: step memories from `at` to `at_new` and add to `extra`."""
        made = []
        for place, (a, b, mask) in zip(self.slabs, self.profiles, strict=True):
            kernels = self._layer_kernels(place)
            stride = self.layout.strides[place.slab.axis]
            head = (self.batch, self._pieces, *place.indices, *place.grid, stride, *place.which)
            slope = kernels.slope.bind(flat(u), flat(psi), blocks(psi), a, b, *head, of_u, of_psi)
            curve = kernels.curve.bind(
                flat(u), flat(psi), flat(zeta), blocks(zeta), flat(extra), blocks(extra), a, b, mask,
                *head, place.own, of_u, of_psi, self.layout.size,
            )  # fmt: skip

            def launch(
                at_u: int,
                at: int,
                at_new: int,
                *,
                slope: Launch = slope,
                curve: Launch = curve,
                begin: int = place.offset,
            ) -> None:
                slope(at_u, at + begin, at_new + begin)
                curve(at_u, at_new + begin, at + begin, at_new + begin)

            made.append(launch)
        return made

    def adj_layers(self, w: Array, adj_psi: Array, adj_zeta: Array, extra: Array, *, of_w: int) -> list[Launch]:
        """Bind `adj_layer(at_w)` for each slab: step the adjoint memories back and add the adjoint of u to `extra`."""
        made = []
        q, s, r = (np.zeros((self.batch, self.memory), runtime.real_dtype()) for _ in range(3))
        for place, (a, b, mask) in zip(self.slabs, self.profiles, strict=True):
            kernels = self._layer_kernels(place)
            head, of = (self.batch, self._pieces, *place.indices), (self.memory, place.offset)
            curve = kernels.adj_curve.bind(
                flat(w), blocks(adj_zeta), flat(adj_zeta), blocks(q), blocks(s), a, b, mask,
                *head, *place.grid, *place.which, of_w, self.memory,
            )  # fmt: skip
            slope = kernels.adj_slope.bind(
                flat(s), blocks(adj_psi), flat(adj_psi), blocks(r), a, b,
                *head, *place.which, place.own, *of,
            )  # fmt: skip
            origin, m0, (lines, s1, s2, lines2) = place.beside
            height = kernels.adj_height.bind(
                flat(q), flat(r), flat(extra), blocks(extra),
                self.batch, self._pieces, lines, s1, s2, lines2, origin, place.layout.blocks, m0, *place.grid[1:],
                place.own, self.memory, self.layout.size, place.offset,
            )  # fmt: skip

            def launch(
                at_w: int,
                *,
                curve: Launch = curve,
                slope: Launch = slope,
                height: Launch = height,
                begin: int = place.offset,
            ) -> None:
                curve(at_w, begin)
                slope()
                height()

            made.append(launch)
        return made

    def _kernels(self, extra: bool) -> Any:
        model = self.model
        variant = loops.Variant(runtime.real(), model.dim, model.order, extra, self._parallel, self._spread)
        return loops.kernels(variant)

    def _layer_kernels(self, place: SlabPlace) -> Any:
        variant = layer_loops.Variant(runtime.real(), self.model.order, place.along, self._parallel, self._spread)
        return layer_loops.kernels(variant)


def flat(values: Array) -> Array:
    """View a contiguous array as a row of numbers."""
    return values.reshape(-1)


def blocks(values: Array) -> Array:
    """View a contiguous array as rows of BLOCK numbers."""
    return values.reshape(-1, BLOCK)


def _place(model: Wave, grid: Layout, slab: Slab, offset: int) -> SlabPlace:
    axis, along = slab.axis, slab.axis == model.dim - 1
    low = max(slab.first - model.halo, 0)  # the first cell within reach of the slab's differences
    high = min(slab.first + slab.width + model.halo, model.cells[axis])
    first, shape, lead = slab.first, slab.shape, 0
    if along:
        first = low // BLOCK * BLOCK
        lead, shape = slab.first - first, (*slab.shape[:-1], -(-high // BLOCK) * BLOCK - first)
    layout = Layout(shape, 2 * model.halo)
    m0 = grid.origin + first * grid.strides[axis]
    reached = shape if along else (*shape[:axis], high - low, *shape[axis + 1 :])
    before = 0 if along else low - slab.first
    return SlabPlace(
        slab=slab,
        layout=layout,
        offset=offset,
        along=along,
        indices=(layout.lines, *layout.indices),
        grid=(m0, *grid.indices[:2]),
        which=(layout.indices[2] if axis == model.dim - 3 else 1, slab.width),
        own=layout.strides[axis],
        lead=lead,
        beside=(
            layout.origin + before * layout.strides[axis],
            m0 + before * grid.strides[axis],
            (math.prod(reached[:-1]), *layout.indices[:2], reached[-2] if len(reached) > 1 else 1),
        ),
    )
