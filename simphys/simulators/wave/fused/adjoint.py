"""The fused steps in reverse. They carry w = kappa adj_u in place of adj_u, see `advance`."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.autograd.kernels.alignment import aligned_zeros
from simphys.simulator import Arrays

from . import loops
from .segment import Segment


class Adjoint:
    """The running adjoint of a segment. Each field of `adjoint` has either one row or a row for each state."""

    def __init__(self, engine: Any, segment: Segment, *, first: int, steps: int, adjoint: Arrays) -> None:
        grid = engine.grid
        self._engine, self._segment, self._first, self._adjoint = engine, segment, first, adjoint
        self._grid = grid
        batch, size, dtype = grid.batch, grid.layout.size, engine.kappa.dtype
        self._extra_w = aligned_zeros((batch, size), dtype) if grid.slabs else None
        """Adjoint contribution of the absorbing layers."""
        self._w = aligned_zeros((batch, 2, size), dtype)
        """w of the new height, and -w of the height before, whose place the next result takes."""
        self._now, self._steps = 0, steps
        memories = "slope_memory", "curvature_memory"
        self._psi, self._zeta = (grid.pack_memory(adjoint[name][:, -1]) for name in memories)
        self._position = adjoint["source_position"][:, -1].copy()
        self._kappa = grid.layout.view_cells(engine.kappa)
        w, kappa, extra = self._w, engine.kappa, self._extra_w
        self._leap = grid.bind_leap(w, kappa, extra)
        self._fill_halo = grid.bind_fill_halo(w)
        if extra is not None:
            self._adj_layers = grid.bind_adj_layers(w, self._psi, self._zeta, extra)
        self._needs_speed = "speed" in engine.needs
        if self._needs_speed:
            self._forward_layers, extra = engine.bind_layers(segment)
            self._adj_log_courant = grid.bind(
                loops.adj_log_courant,
                u=segment.height,
                w=w,
                total=engine.adj_log_courant,
                extra=extra,
            )
        self._load()

    def run(self) -> None:
        """Step from the adjoint of the last state to that of the first one."""
        is_dense = self._is_dense("height") or self._is_dense("previous")
        if self._grid.has_bare_steps and not is_dense and not self._needs_speed:
            self._leap(1 - self._now, self._steps)
            self._now = (self._now + self._steps) % 2
        else:
            for row in reversed(range(self._steps)):
                self._step(row)
        self._finish()

    def _step(self, row: int) -> None:
        """Step from the adjoint of state `row` + 1 to that of state `row`."""
        engine, size, now = self._engine, self._grid.layout.size, self._now
        self._adj_receive(row + 1)
        self._fill_halo(now * size)
        adj_log = engine.adj_log_courant if self._needs_speed else None
        if engine.model.sources:
            time = self._first + row
            sums = {**engine.sums, "source_position": self._position}
            engine.sources_and_receivers.adj_inject(self._segment, row, time, (self._w, now), adj_log, sums)
        if self._needs_speed:
            self._forward_layers(row)  # rewrites the memories unchanged
            self._adj_log_courant((row + 1) * size, now * size)
        if self._extra_w is not None:
            self._extra_w[...] = 0
            self._adj_layers(now * size)
        self._leap(1 - now, 1)
        self._now = 1 - now
        self._store(row)

    def _finish(self) -> None:
        """Write the adjoint of the first state to the fields that have one row."""
        cells, kappa = self._grid.layout.view_cells, self._kappa
        w, before = self._w[:, self._now], self._w[:, 1 - self._now]
        height, previous = cells(w) / kappa, -cells(before) / kappa
        self._engine.last_adjoint = height, previous, w, before
        found = {
            "height": height,
            "previous": previous,
            "slope_memory": self._grid.unpack_memory(self._psi),
            "curvature_memory": self._grid.unpack_memory(self._zeta),
            "source_position": self._position,
            "received": 0.0,
        }
        for name, values in found.items():
            if not self._is_dense(name):
                self._adjoint[name][:, 0] = values

    def _load(self) -> None:
        """Load the adjoint of the last state; if the last `pull` returned these very values, reuse its w unrounded."""
        height, previous = (self._adjoint[name][:, -1] for name in ("height", "previous"))
        last_adjoint = self._engine.last_adjoint
        if (
            last_adjoint is not None
            and np.array_equal(last_adjoint[0], height)
            and np.array_equal(last_adjoint[1], previous)
        ):
            self._w[:, 0], self._w[:, 1] = last_adjoint[2:]
            return
        cells = self._grid.layout.view_cells
        cells(self._w[:, 0])[...] = self._kappa * height
        cells(self._w[:, 1])[...] = -self._kappa * previous

    def _adj_receive(self, row: int) -> None:
        """Add the receivers' contribution to the adjoint of the height of state `row`."""
        received, engine = self._adjoint["received"], self._engine
        if not received.size:
            return
        place = row if self._is_dense("received") else 0
        if row < self._steps and place == 0:
            return
        needs_height = "receiver_position" in engine.needs
        height = (self._segment.height, row + 1) if needs_height else None
        adj_position = engine.sums["receiver_position"]
        engine.sources_and_receivers.adj_receive(height, (received, place), (self._w, self._now), adj_position)

    def _store(self, row: int) -> None:
        """Add the direct loss derivatives of state `row` and store the total, for fields with a row for each state."""
        cells, adjoint, kappa = self._grid.layout.view_cells, self._adjoint, self._kappa
        w, before = cells(self._w[:, self._now]), cells(self._w[:, 1 - self._now])
        if self._is_dense("height"):
            w += kappa * adjoint["height"][:, row]
            adjoint["height"][:, row] = w / kappa
        if self._is_dense("previous"):
            before -= kappa * adjoint["previous"][:, row]
            adjoint["previous"][:, row] = -before / kappa
        for name, memory in (("slope_memory", self._psi), ("curvature_memory", self._zeta)):
            if self._is_dense(name):
                memory += self._grid.pack_memory(adjoint[name][:, row])
                adjoint[name][:, row] = self._grid.unpack_memory(memory)
        if self._is_dense("source_position"):
            self._position += adjoint["source_position"][:, row]
            adjoint["source_position"][:, row] = self._position

    def _is_dense(self, name: str) -> bool:
        return self._adjoint[name].shape[1] > 1
