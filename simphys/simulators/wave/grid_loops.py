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
"""Loop iterations for each piece of work, one of which does the work. With fewer iterations in all, a CPU would run the
loop on one thread."""

Launch = Callable[..., None]


@dataclass(frozen=True)
class SlabPlace:
    """Position of a slab in its own layout and in the layout of the grid."""

    slab: Slab
    layout: Layout
    offset: int
    """Index at which it begins in a row of the layers' memory."""
    on_last_axis: bool
    """True if the layer's axis is the last one, so that lines of memory run along it."""
    indices: tuple[int, ...]
    """Number of lines, then the indices of its layout."""
    grid_indices: tuple[int, int, int]
    """m0, M1, M2, see `layer_loops`."""
    axis_position: tuple[int, int]
    """line_step and width, which give a line's position along the layer's axis, see `layer_loops`."""
    own_stride: int
    """Stride of its axis in its own layout."""
    lead: int
    """Number of cells in its layout before its own first cell; nonzero only if lines run along its axis."""
    reached: tuple[int, int, tuple[int, ...]]
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
            made.append(_place_slab(self.model, self.layout, slab, offset))
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

    def pack_memory(self, memory: Array) -> Array:
        """Copy the layers' memory [..., layer_cells] into the layouts of the slabs, [..., self.memory]."""
        made = np.zeros((*memory.shape[:-1], self.memory), runtime.real_dtype())
        for place in self.slabs:
            self._cells(place, made)[...] = self._view_memory(place, memory)
        return made

    def unpack_memory(self, values: Array) -> Array:
        """Copy the layers' memory out of the layouts of the slabs: the reverse of `pack_memory`."""
        memory = np.empty((*values.shape[:-1], self.model.layer_cells), values.dtype)
        for place in self.slabs:
            self._view_memory(place, memory)[...] = self._cells(place, values)
        return memory

    @staticmethod
    def _cells(place: SlabPlace, values: Array) -> Array:
        cells = place.layout.view_cells(values[..., place.offset : place.offset + place.layout.size])
        return cells[..., place.lead : place.lead + place.slab.width] if place.on_last_axis else cells

    @staticmethod
    def _view_memory(place: SlabPlace, memory: Array) -> Array:
        slab = place.slab
        part = memory[..., slab.offset : slab.offset + math.prod(slab.shape)]
        return part.reshape(*memory.shape[:-1], *slab.shape)

    def bind_curvature(self, u: Array, extra: Array, new: Array) -> Launch:
        """Bind `curvature()`: dx^2 laplace u + extra for one batch member, from u with its halo filled; all [size]."""
        return self._kernels(True).curvature.bind(flatten(u), view_blocks(new), flatten(extra), *self._head)

    def bind_leap(self, u: Array, kappa: Array, extra: Array | None, *, u_stride: int) -> Launch:
        """Bind `leap(before_at, u_at, new_at)`, all offsets into u; `kappa` [1 or B, size]."""
        strides = (u_stride, self.layout.size if len(kappa) > 1 else 0, self.layout.size)
        arrays = flatten(u), flatten(u), view_blocks(u), flatten(kappa), flatten(u if extra is None else extra)
        return self._kernels(extra is not None).leap.bind(*arrays, *self._head, *strides)

    def bind_adj_log_courant(
        self, u: Array, w: Array, total: Array, extra: Array, *, u_stride: int, w_stride: int
    ) -> Launch:
        """Bind `adj_log_courant(u_at, w_at)`, which adds to `total`."""
        arrays = flatten(u), flatten(w), view_blocks(total), flatten(total), flatten(extra)
        kernel = self._kernels(bool(self.slabs)).adj_log_courant
        return kernel.bind(*arrays, *self._head, u_stride, w_stride, self.layout.size)

    def bind_jvp_kappa(
        self, u: Array, du: Array, dkappa: Array, extra: Array, *, u_stride: int, new_stride: int
    ) -> Launch:
        """Bind `jvp_kappa(u_at, new_at)`, which adds the effect of `dkappa` to du."""
        arrays = flatten(u), view_blocks(du), flatten(du), flatten(dkappa), flatten(extra)
        kernel = self._kernels(bool(self.slabs)).jvp_kappa
        return kernel.bind(*arrays, *self._head, u_stride, self.layout.size, self.layout.size, new_stride)

    def bind_fill_halo(self, u: Array, *, u_stride: int) -> list[Launch]:
        """Bind `fill_halo(at)` for each axis whose halo is not always 0."""
        model, layout = self.model, self.layout
        made = []
        for axis, count in enumerate(model.cells):
            low, high = (loops.KINDS[kind] for kind in model.boundaries[2 * axis : 2 * axis + 2])
            still = {loops.KINDS["absorbing"]} | ({loops.KINDS["zero"]} if model.order == 2 else set())
            if {low, high} <= still:
                continue  # the halo of this axis is 0 from the start and stays so
            others = [(model.cells[b], layout.strides[b]) for b in range(model.dim) if b != axis]
            (n1, s1), (n2, s2) = (*others, (1, 0), (1, 0))[:2]
            along_axis = layout.origin, count, layout.strides[axis]
            kernel = self._kernels(bool(self.slabs)).fill_halo
            made.append(kernel.bind(flatten(u), self.batch, u_stride, *along_axis, n1, s1, n2, s2, low, high))
        return made

    def bind_layers(
        self, u: Array, psi: Array, zeta: Array, extra: Array, *, u_stride: int, psi_stride: int
    ) -> list[Launch]:
        """Bind `layer(u_at, memory_at, new_at)` for each slab: step its memories to `new_at` and add to `extra`."""
        made = []
        for place, (a, b, mask) in zip(self.slabs, self.profiles, strict=True):
            kernels = self._layer_kernels(place)
            stride = self.layout.strides[place.slab.axis]
            head = (self.batch, self._pieces, *place.indices, *place.grid_indices, stride, *place.axis_position)
            slope = kernels.slope_memory.bind(
                flatten(u), flatten(psi), view_blocks(psi), a, b, *head, u_stride, psi_stride
            )
            curvature = kernels.curvature_memory.bind(
                flatten(u), flatten(psi), flatten(zeta), view_blocks(zeta), flatten(extra), view_blocks(extra),
                a, b, mask, *head, place.own_stride, u_stride, psi_stride, self.layout.size,
            )  # fmt: skip

            def launch(
                u_at: int,
                memory_at: int,
                new_at: int,
                *,
                slope: Launch = slope,
                curvature: Launch = curvature,
                begin: int = place.offset,
            ) -> None:
                slope(u_at, memory_at + begin, new_at + begin)
                curvature(u_at, new_at + begin, memory_at + begin, new_at + begin)

            made.append(launch)
        return made

    def bind_adj_layers(
        self, w: Array, adj_psi: Array, adj_zeta: Array, extra: Array, *, w_stride: int
    ) -> list[Launch]:
        """Bind `adj_layer(w_at)` for each slab: step the adjoint memories back and add the adjoint of u to `extra`."""
        made = []
        q, s, r = (np.zeros((self.batch, self.memory), runtime.real_dtype()) for _ in range(3))
        for place, (a, b, mask) in zip(self.slabs, self.profiles, strict=True):
            kernels = self._layer_kernels(place)
            head = self.batch, self._pieces, *place.indices
            curvature = kernels.adj_curvature_memory.bind(
                flatten(w), view_blocks(adj_zeta), flatten(adj_zeta), view_blocks(q), view_blocks(s), a, b, mask,
                *head, *place.grid_indices, *place.axis_position, w_stride, self.memory,
            )  # fmt: skip
            slope = kernels.adj_slope_memory.bind(
                flatten(s), view_blocks(adj_psi), flatten(adj_psi), view_blocks(r), a, b,
                *head, *place.axis_position, place.own_stride, self.memory, place.offset,
            )  # fmt: skip
            origin, m0, (lines, s1, s2, lines2) = place.reached
            height = kernels.adj_height.bind(
                flatten(q), flatten(r), flatten(extra), view_blocks(extra),
                self.batch, self._pieces, lines, s1, s2, lines2, origin, place.layout.blocks,
                m0, *place.grid_indices[1:], place.own_stride, self.memory, self.layout.size, place.offset,
            )  # fmt: skip

            def launch(
                w_at: int,
                *,
                curvature: Launch = curvature,
                slope: Launch = slope,
                height: Launch = height,
                begin: int = place.offset,
            ) -> None:
                curvature(w_at, begin)
                slope()
                height()

            made.append(launch)
        return made

    def _kernels(self, extra: bool) -> Any:
        model = self.model
        variant = loops.Variant(runtime.real(), model.dim, model.order, extra, self._parallel, self._spread)
        return loops.kernels(variant)

    def _layer_kernels(self, place: SlabPlace) -> Any:
        variant = layer_loops.Variant(
            runtime.real(), self.model.order, place.on_last_axis, self._parallel, self._spread
        )
        return layer_loops.kernels(variant)


def flatten(values: Array) -> Array:
    """View a contiguous array as a row of numbers."""
    return values.reshape(-1)


def view_blocks(values: Array) -> Array:
    """View a contiguous array as rows of BLOCK numbers."""
    return values.reshape(-1, BLOCK)


def _place_slab(model: Wave, grid: Layout, slab: Slab, offset: int) -> SlabPlace:
    axis, on_last_axis = slab.axis, slab.axis == model.dim - 1
    low = max(slab.first - model.halo, 0)  # the first cell within reach of the slab's differences
    high = min(slab.first + slab.width + model.halo, model.cells[axis])
    first, shape, lead = slab.first, slab.shape, 0
    if on_last_axis:
        first = low // BLOCK * BLOCK
        lead, shape = slab.first - first, (*slab.shape[:-1], -(-high // BLOCK) * BLOCK - first)
    layout = Layout(shape, 2 * model.halo)
    m0 = grid.origin + first * grid.strides[axis]
    reached_shape = shape if on_last_axis else (*shape[:axis], high - low, *shape[axis + 1 :])
    before = 0 if on_last_axis else low - slab.first
    return SlabPlace(
        slab=slab,
        layout=layout,
        offset=offset,
        on_last_axis=on_last_axis,
        indices=(layout.lines, *layout.indices),
        grid_indices=(m0, *grid.indices[:2]),
        axis_position=(layout.indices[2] if axis == model.dim - 3 else 1, slab.width),
        own_stride=layout.strides[axis],
        lead=lead,
        reached=(
            layout.origin + before * layout.strides[axis],
            m0 + before * grid.strides[axis],
            (math.prod(reached_shape[:-1]), *layout.indices[:2], reached_shape[-2] if len(reached_shape) > 1 else 1),
        ),
    )
