"""The fused steps in reverse. They carry w = kappa adj_u in place of adj_u, see `advance`."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.simulator import Arrays

from .segment import Segment


class Adjoint:
    """The running adjoint of a segment. Each field of `adjoint` has either one row or a row for each state."""

    def __init__(self, engine: Any, segment: Segment, *, first: int, steps: int, adjoint: Arrays) -> None:
        grid = engine.grid
        self._engine, self._segment, self._first, self._adjoint = engine, segment, first, adjoint
        self._grid, self._ends = grid, engine.ends
        batch, size, dtype = grid.batch, grid.layout.size, engine.kappa.dtype
        self._extra_w = np.zeros((batch, size), dtype) if grid.slabs else None
        """Adjoint contribution of the absorbing layers."""
        self._w = np.zeros((batch, 3, size), dtype)
        """w of the new height, -w of the height before, and a row for the next result; the three rows rotate."""
        self._now, self._steps = 0, steps
        self._psi, self._zeta = (grid.into_slabs(adjoint[name][:, -1]) for name in ("slope_memory", "curvature_memory"))
        self._position = adjoint["source_position"][:, -1].copy()
        self._kappa = grid.layout.cells(engine.kappa)
        of_w = self._w[0].size
        self._leap = grid.leap(self._w, engine.kappa, self._extra_w, of_u=of_w)
        self._beyond = grid.continue_beyond(self._w, of_u=of_w)
        self._layers = []
        if self._extra_w is not None:
            self._layers = grid.adj_layers(self._w, self._psi, self._zeta, self._extra_w, of_w=of_w)
        self._of_speed = "speed" in engine.needs
        if self._of_speed:
            height, extra = segment.height, np.zeros((batch, size), dtype)
            of_u = height[0].size
            self._extra = extra
            self._again = engine.layers(segment, extra)
            self._log = grid.adj_log_courant(height, self._w, engine.of_log_kappa, extra, of_u=of_u, of_w=of_w)
        self._begin()

    def step(self, row: int) -> None:
        """Step from the adjoint of state `row` + 1 to that of state `row`."""
        engine, size = self._engine, self._grid.layout.size
        now, before, new = self._now, (self._now + 2) % 3, (self._now + 1) % 3
        self._receive(row + 1)
        for launch in self._beyond:
            launch(now * size)
        of_log = engine.of_log_kappa if self._of_speed else None
        if engine.model.sources:
            time = self._first + row
            self._ends.adj_inject(self._segment, row, time, self._w, now, of_log, self._position, engine.sums)
        if self._of_speed:
            engine.absorb(self._again, self._extra, row)  # rewrites the memories with the values they already hold
            self._log((row + 1) * size, now * size)
        if self._extra_w is not None:
            self._extra_w[...] = 0
        for layer in self._layers:
            layer(now * size)
        self._leap(before * size, now * size, new * size)
        self._now = new
        self._keep(row)

    def finish(self) -> None:
        """Write the adjoint of the first state to the fields that have one row."""
        cells, kappa = self._grid.layout.cells, self._kappa
        w, before = self._w[:, self._now].copy(), self._w[:, self._now - 1].copy()
        height, previous = cells(w) / kappa, -cells(before) / kappa
        self._engine.carried = height, previous, w, before
        found = {
            "height": height,
            "previous": previous,
            "slope_memory": self._grid.from_slabs(self._psi),
            "curvature_memory": self._grid.from_slabs(self._zeta),
            "source_position": self._position,
            "received": 0.0,
        }
        for name, values in found.items():
            if not self._is_dense(name):
                self._adjoint[name][:, 0] = values

    def _begin(self) -> None:
        """Load the adjoint of the last state; if the last `pull` returned these very values, reuse its w unrounded."""
        height, previous = (self._adjoint[name][:, -1] for name in ("height", "previous"))
        carried = self._engine.carried
        if carried is not None and np.array_equal(carried[0], height) and np.array_equal(carried[1], previous):
            self._w[:, 0], self._w[:, -1] = carried[2:]
            return
        cells = self._grid.layout.cells
        cells(self._w[:, 0])[...] = self._kappa * height
        cells(self._w[:, -1])[...] = -self._kappa * previous

    def _receive(self, row: int) -> None:
        """Add the receivers' contribution to the adjoint of the height of state `row`."""
        received, engine = self._adjoint["received"], self._engine
        place = row if self._is_dense("received") else 0
        if row < self._steps and place == 0:
            return
        height, at = self._segment.height, row + 1 if engine.needs_states else 0  # only adj_position reads heights
        adj_position = engine.sums["receiver_position"]
        self._ends.adj_receive(height, at, received, place, self._w, self._now, adj_position)

    def _keep(self, row: int) -> None:
        """Add the direct loss derivatives of state `row` and store the total, for fields with a row for each state."""
        cells, adjoint, kappa = self._grid.layout.cells, self._adjoint, self._kappa
        w, before = cells(self._w[:, self._now]), cells(self._w[:, self._now - 1])
        if self._is_dense("height"):
            w += kappa * adjoint["height"][:, row]
            adjoint["height"][:, row] = w / kappa
        if self._is_dense("previous"):
            before -= kappa * adjoint["previous"][:, row]
            adjoint["previous"][:, row] = -before / kappa
        for name, memory in (("slope_memory", self._psi), ("curvature_memory", self._zeta)):
            if self._is_dense(name):
                memory += self._grid.into_slabs(adjoint[name][:, row])
                adjoint[name][:, row] = self._grid.from_slabs(memory)
        if self._is_dense("source_position"):
            self._position += adjoint["source_position"][:, row]
            adjoint["source_position"][:, row] = self._position

    def _is_dense(self, name: str) -> bool:
        return self._adjoint[name].shape[1] > 1
