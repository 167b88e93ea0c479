"""The layout of a grid and its slabs, and loops bound to arrays, which the engine launches."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.kernels.alignment import aligned_zeros
from simphys.simulator import Array

from .. import layer
from ..layout import BLOCK, Layout
from ..model import Wave
from ..slab import SlabPlace, place_slab
from . import loops
from .halo import bind_fill_halo, is_always_zero
from .lines import LineLoop, TextLoop, array_arguments, compile_lines

CELL_US = 0.0003
"""Serial cost [us] of a cell in `leap`."""

STEPS_AT_ONCE = 16
"""Largest number of steps of a launch of `leap` for whole grids: their lines then stay in the nearest cache."""

STEPS_APART = 64
"""Largest number of steps of a launch for pieces of a grid: enough for the time that threads take to begin."""

SPREAD = 512
"""Loop iterations for each piece of work, one of which does the work. With fewer iterations in all, a CPU would run the
loop on one thread."""

Launch = Callable[..., None]


class GridLoops:
    """The loops of a model for a batch of a given size.

    Arrays are [B, rows, size], or [1, size] for one that all members share. Launches take offsets into a member's rows.
    """

    def __init__(self, model: Wave, batch: int) -> None:
        self.model, self.batch = model, batch
        self.layout = Layout(model.cells, model.halo)
        self._step_us = CELL_US * math.prod(model.cells) * batch
        chosen = runtime.settings()
        self._parallel = runtime.parallel(self._step_us)
        pieces = max(1, min(4 * chosen.threads // batch, self.layout.lines)) if self._parallel else 1
        self._work = {"members": batch, "pieces": pieces}
        self._numbers = {**self.layout.numbers("grid"), **self.layout.count_lines()}

    @cached_property
    def slabs(self) -> tuple[SlabPlace, ...]:
        """The absorbing layers."""
        made: list[SlabPlace] = []
        for slab in self.model.slabs:
            offset = made[-1].offset + made[-1].layout.size if made else 0
            made.append(place_slab(self.layout, self.model.halo, slab, offset))
        return tuple(made)

    @property
    def memory(self) -> int:
        """Length of a batch member's layer memory in the layouts of the slabs; loops may read its extra last block."""
        return sum([place.layout.size for place in self.slabs]) + BLOCK

    @cached_property
    def _profiles(self) -> list[dict[str, Array]]:
        """Profiles a, b and a mask of 1 along the axis of each slab, all 0 outside of it."""
        made = []
        for place in self.slabs:
            named = dict(zip("ab", layer.profile(self.model, place.slab), strict=True), mask=np.ones(place.slab.width))
            made.append({name: place.pad(values).astype(runtime.real_dtype()) for name, values in named.items()})
        return made

    def pack_memory(self, memory: Array) -> Array:
        """Copy the layers' memory [..., layer_cells] into the layouts of the slabs, [..., self.memory]."""
        made = aligned_zeros((*memory.shape[:-1], self.memory), runtime.real_dtype())
        for place in self.slabs:
            place.view_cells(made)[...] = place.view_memory(memory)
        return made

    def unpack_memory(self, values: Array) -> Array:
        """Copy the layers' memory out of the layouts of the slabs: the reverse of `pack_memory`."""
        memory = np.empty((*values.shape[:-1], self.model.layer_cells), values.dtype)
        for place in self.slabs:
            place.view_memory(memory)[...] = place.view_cells(values)
        return memory

    @cached_property
    def has_bare_steps(self) -> bool:
        """True if a step is a `leap` and nothing else, so that one launch can make many."""
        model = self.model
        others = model.slabs or model.sources or model.receivers or runtime.settings().on_gpu
        return not others and is_always_zero(self.layout, model.boundaries, model.halo)

    # --- launches

    def bind_leap(self, u: Array, kappa: Array, extra: Array | None) -> Callable[..., None]:
        """Bind `leap(row, steps, way=1)`, which computes rows of u [B, rows, size], each from the two before it.

        The first one is computed from `row` and `row + way`. Indices of rows are taken modulo their number.
        """
        outer, lag = (self.model.cells[0], self.model.halo) if self.model.dim > 1 else (1, 0)
        parallel, pieces, at_once = self._split_time(outer, lag)
        loop = self._compile(loops.leap, (self.model.dim, self.model.order, extra is not None), parallel=parallel)
        arrays = {"u": u, "before": u, "new": u, "kappa": kappa, **({} if extra is None else {"extra": extra})}
        known = {"members": self.batch, "pieces": pieces, "outer": outer, "group": self.layout.lines // outer}
        known |= {"lag": lag, "outer_step": self.layout.strides[0], "rows": u.shape[1], "size": u.shape[2]}
        bound = loop.bind({**known, **self._numbers, **array_arguments(arrays)})

        def leap(row: int, steps: int, way: int = 1) -> None:
            for done in range(0, steps, at_once):
                count = min(at_once, steps - done)
                bound(0, row + way * done, way, count)
                if pieces > 1 and count > 1:
                    bound(1, row + way * done, way, count)

        return leap

    def _split_time(self, outer: int, lag: int) -> tuple[bool, int, int]:
        """Choose whether `leap` goes parallel, its number of pieces, and the steps of a launch.

        Pieces shrink with each step at their inner ends, which must not meet.
        """
        if not self.has_bare_steps:
            return self._parallel, min(self._work["pieces"], outer), 1
        pieces = min(-(-runtime.settings().threads // self.batch), outer)
        at_once = max(1, min(STEPS_APART, outer // pieces // (2 * lag))) if pieces > 1 else STEPS_AT_ONCE
        if runtime.parallel(self._step_us * at_once):
            return True, pieces, at_once
        return False, 1, STEPS_AT_ONCE

    def bind(self, make: Callable[..., LineLoop], **arrays: Array | None) -> Launch:
        """Bind a loop over the cells of the grid, which takes what layers add to the curvature if `extra` is given.

        The launch takes the offsets of the loop's moving arrays.
        """
        given = {name: values for name, values in arrays.items() if values is not None}
        loop = self._compile(make, (self.model.dim, self.model.order, "extra" in given))
        return loop.bind({**self._work, **self._numbers, **array_arguments(given)})

    def bind_layers(self, u: Array, psi: Array, zeta: Array, extra: Array) -> Launch:
        """Bind `step(u_at, memory_at, new_at)`: step the memories of all layers to `new_at`, and add to `extra`."""
        pairs = []
        for number in range(len(self.slabs)):
            slope = self._bind_layer(loops.slope_memory, number, u=u, psi=psi, new=psi)
            curvature = self._bind_layer(loops.curvature_memory, number, u=u, extra=extra, psi=psi, zeta=zeta, new=zeta)
            pairs.append((slope, curvature))

        def launch(u_at: int, memory_at: int, new_at: int) -> None:
            for slope, curvature in pairs:
                slope(u_at, memory_at, new_at)
                curvature(u_at, new_at, memory_at, new_at)

        return launch

    def bind_adj_layers(self, w: Array, adj_psi: Array, adj_zeta: Array, extra: Array) -> Launch:
        """Bind `step(w_at)`: step the adjoint memories of all layers back, and add the adjoint of u to `extra`."""
        q, s, r = (aligned_zeros((self.batch, self.memory), runtime.real_dtype()) for _ in range(3))
        parts = []
        for number in range(len(self.slabs)):
            bend = self._bind_layer(loops.adj_curvature_memory, number, w=w, adj_zeta=adj_zeta, q=q, s=s)
            slope = self._bind_layer(loops.adj_slope_memory, number, s=s, adj_psi=adj_psi, r=r)
            parts.append((bend, slope, self._bind_layer(loops.adj_height, number, extra=extra, q=q, r=r)))

        def launch(w_at: int) -> None:
            for bend, slope, height in parts:
                bend(w_at)
                slope()
                height()

        return launch

    def _bind_layer(self, make: Callable[..., LineLoop], number: int, **arrays: Array) -> Launch:
        place = self.slabs[number]
        numbers = place.reached if make is loops.adj_height else place.numbers
        loop = self._compile(make, (self.model.order,), on_last_axis=place.on_last_axis)
        known = {**self._work, "slab_stride": self.memory, **numbers, **self._profiles[number]}
        return loop.bind({**known, **array_arguments(arrays)})

    def bind_fill_halo(self, u: Array) -> Launch:
        """Bind `fill_halo(u_at)`, which continues a field beyond the sides."""
        model = self.model
        return bind_fill_halo(self.layout, u, boundaries=model.boundaries, reach=model.halo, parallel=self._parallel)

    def _compile(
        self,
        make: Callable[..., LineLoop],
        sizes: tuple[int, ...],
        *,
        on_last_axis: bool = False,
        parallel: bool | None = None,
    ) -> TextLoop:
        parallel = self._parallel if parallel is None else parallel
        return _compile(make, sizes, parallel, on_last_axis)


@runtime.cached
def _compile(make: Callable[..., LineLoop], sizes: tuple[int, ...], parallel: bool, on_last_axis: bool) -> TextLoop:
    functions = {f"fn_{func.__name__}": func for func in loops.ELEMENTS}
    spread = SPREAD if parallel and not runtime.settings().on_gpu else 1
    return compile_lines(make(*sizes), functions, parallel=parallel, spread=spread, on_last_axis=on_last_axis)
