"""`WaveEngine`, the fused loops of one rollout over arrays; see `simphys.simulator.Engine`."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.simulator import Array, Arrays
from simphys.simulator.array_engine import ArrayEngine

from . import advance
from .adjoint import Adjoint
from .grid_loops import GridLoops, Launch
from .model import Wave
from .segment import Segment
from .sources_and_receivers import SourcesAndReceivers
from .tape import Tape


class WaveEngine(ArrayEngine):
    """The rollout of a batch of waves. Grid loops cover all batch members; sources and receivers loop over members."""

    model: Wave

    def __init__(self, model: Wave, params: Arrays, control: Array | None, **options: Any) -> None:
        super().__init__(model, params, control, **options)
        self.grid = GridLoops(model, self.batch)
        self._shared = params["speed"].ndim == model.dim
        self.last_adjoint: tuple[Array, Array, Array, Array] | None = None
        """Adjoints of height and previous that the last `pull` returned, and the two rows of w they came from."""

    @property
    def needs_states(self) -> bool:
        """True if `pull` reads states. The equation is linear in the field, so only gradients of speeds, sources and
        receiver positions need them."""
        return bool(self.needs & {"speed", "receiver_position"}) or bool(self.model.sources)

    @property
    def sparse_adjoints(self) -> bool:
        return True

    def segment_bytes(self, steps: int, *, dense: bool) -> int:
        held = {**self.sums, **self.params}
        work = self.batch * (6 * self.grid.layout.size + 7 * self.grid.memory) * runtime.real_dtype().itemsize
        return Segment.bytes_of(self.grid, steps) + sum([values.nbytes for values in held.values()]) + work

    def segment(self, steps: int) -> Segment:  # type: ignore[override]
        return Segment(self.grid, steps)

    def load(self, segment: Segment, state: Arrays) -> None:  # type: ignore[override]
        segment.load(state)
        for launch in self.grid.bind_fill_halo(segment.height, u_stride=segment.height[0].size):
            launch(self.grid.layout.size)

    def read(  # type: ignore[override]
        self, segment: Segment, rows: slice | list[int], names: Collection[str] | None = None
    ) -> Arrays:
        return segment.read(rows, names)

    def advance(self, segment: Segment, *, first: int, start: int, steps: int) -> None:
        grid, size, u = self.grid, self.grid.layout.size, segment.height
        extra = self._zero_extra()
        layers = [] if extra is None else self.bind_layers(segment, extra)
        leap = grid.bind_leap(u, self.kappa, extra, u_stride=u[0].size)
        fill_halos = grid.bind_fill_halo(u, u_stride=u[0].size)
        for row in range(start, start + steps):
            if extra is not None:
                self.apply_layers(layers, extra, row)
            leap(row * size, (row + 1) * size, (row + 2) * size)
            self.sources_and_receivers.inject(segment, row, first + row)
            for launch in fill_halos:
                launch((row + 2) * size)
            self.sources_and_receivers.receive(segment, row + 1)

    def tape_bytes(self, steps: int) -> int:
        return Tape.bytes_of(self.grid, steps)

    def tape(self, steps: int) -> Tape:
        return Tape(self.grid, steps)

    def record(self, tape: Tape, segment: Segment, *, first: int, steps: int) -> None:
        tape.record(segment, first=first, steps=steps)

    def rebuild(self, tape: Tape, segment: Segment, *, first: int, steps: int) -> None:
        tape.restore(segment, first=first, steps=steps)
        grid, size, u = self.grid, self.grid.layout.size, segment.height
        leap = grid.bind_leap(u, self.kappa, None, u_stride=u[0].size)
        fill_halos = grid.bind_fill_halo(u, u_stride=u[0].size)
        for row in reversed(range(steps)):
            leap((row + 2) * size, (row + 1) * size, row * size)
            self.sources_and_receivers.add_sources(segment, row, first + row, row)
            if first + row > 0:
                tape.restore_layers(u[:, row], first + row - 1)
            for launch in fill_halos:
                launch(row * size)

    def pull(self, segment: Segment, *, first: int, steps: int, adjoint: Arrays) -> None:
        """Reverse the segment. Some fields of `adjoint` may have one row while others have a row for each state."""
        running = Adjoint(self, segment, first=first, steps=steps, adjoint=adjoint)
        for row in reversed(range(steps)):
            running.step(row)
        running.finish()

    def push(self, segment: Segment, *, first: int, steps: int, tangent: Arrays) -> Arrays:
        grid, size, u = self.grid, self.grid.layout.size, segment.height
        dsegment = self.segment(steps)
        self.load(dsegment, tangent)
        du, tangents, dextra = dsegment.height, self.tangents, self._zero_extra()
        extra = np.zeros((self.batch, size), u.dtype)
        layers = [] if dextra is None else self.bind_layers(segment, extra)
        dlayers = [] if dextra is None else self.bind_layers(dsegment, dextra)
        leap = grid.bind_leap(du, self.kappa, dextra, u_stride=du[0].size)
        fill_halos = grid.bind_fill_halo(du, u_stride=du[0].size)
        dkappa = grid.layout.pad(advance.jvp_courant(self.model, self.params["speed"], tangents["speed"]))
        add_dkappa = grid.bind_jvp_kappa(u, du, dkappa, extra, u_stride=u[0].size, new_stride=du[0].size)
        for row in range(steps):
            if dextra is not None:
                self.apply_layers(dlayers, dextra, row)
                self.apply_layers(layers, extra, row)
            leap(row * size, (row + 1) * size, (row + 2) * size)
            add_dkappa((row + 1) * size, (row + 2) * size)
            self.sources_and_receivers.jvp_inject(segment, dsegment, row, first + row, dkappa, tangents)
            for launch in fill_halos:
                launch((row + 2) * size)
            self.sources_and_receivers.jvp_receive(segment, dsegment, row + 1, tangents)
        return dsegment.read(slice(steps + 1))

    def gradients(self) -> Arrays:
        if "speed" in self.needs:
            adj_log = self.grid.layout.view_cells(self.adj_log_courant)
            self.sums["speed"] += advance.adj_speed(self.params["speed"], adj_log)
            self.adj_log_courant[...] = 0
        return super().gradients()

    def bind_layers(self, segment: Segment, extra: Array) -> list[Launch]:
        """Bind the loops of the absorbing layers to the states of a segment, see `GridLoops.bind_layers`."""
        u_stride, psi_stride = segment.height[0].size, segment.slope_memory[0].size
        return self.grid.bind_layers(
            segment.height,
            segment.slope_memory,
            segment.curvature_memory,
            extra,
            u_stride=u_stride,
            psi_stride=psi_stride,
        )

    def apply_layers(self, layers: list[Launch], extra: Array, row: int) -> None:
        """Compute the layers' contribution to the curvature of state `row`, and their memories of the next state."""
        size, memory = self.grid.layout.size, self.grid.memory
        extra[...] = 0
        for layer in layers:
            layer((row + 1) * size, row * memory, (row + 1) * memory)

    @cached_property
    def sources_and_receivers(self) -> SourcesAndReceivers:
        """Launches of sources and receivers."""
        return SourcesAndReceivers(self.grid, self.params, self.control, self.kappa)

    @cached_property
    def kappa(self) -> Array:
        """(c dt / dx)^2 in the grid's layout, [B, size], or [1, size] if all batch members share the speed."""
        speed = self.params["speed"][:1] if self._shared else self.params["speed"]
        return self.grid.layout.pad(advance.courant(self.model, speed))

    @cached_property
    def adj_log_courant(self) -> Array:
        """Adjoint sum of log kappa that `pull` adds to, in the grid's layout, [B, size]."""
        return np.zeros((self.batch, self.grid.layout.size), runtime.real_dtype())

    def _zero_extra(self) -> Array | None:
        """Allocate the layers' contribution to the curvature; None without absorbing layers."""
        size = self.grid.layout.size
        return np.zeros((self.batch, size), runtime.real_dtype()) if self.grid.slabs else None
