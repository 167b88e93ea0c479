"""`WaveEngine`, the fused loops of one rollout over arrays; see `simphys.simulator.Engine`."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import Any

from simphys.autograd import runtime
from simphys.autograd.kernels.alignment import aligned_zeros
from simphys.simulator import Array, Arrays, Rewinding, Rows
from simphys.simulator.array_engine import ArrayEngine

from .. import advance
from ..model import Wave
from . import loops
from .adjoint import Adjoint
from .grid_loops import GridLoops, Launch
from .segment import Segment
from .sources_and_receivers import SourcesAndReceivers
from .tape import Tape


class WaveEngine(Rewinding, ArrayEngine):
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
    def segments_roll(self) -> bool:
        return self.grid.has_bare_steps

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
        self.grid.bind_fill_halo(segment.height)(self.grid.layout.size)

    def read(  # type: ignore[override]
        self, segment: Segment, rows: Rows, names: Collection[str] | None = None
    ) -> Arrays:
        return segment.read(rows, names)

    def advance(self, segment: Segment, *, first: int, start: int, steps: int) -> None:
        size, u, grid = self.grid.layout.size, segment.height, self.grid
        if segment.launches is None:
            layers, extra = self.bind_layers(segment)
            leap, fill_halo = grid.bind_leap(u, self.kappa, extra), grid.bind_fill_halo(u)
            segment.launches = layers, leap, fill_halo
        layers, leap, fill_halo = segment.launches
        if grid.has_bare_steps:
            leap(start, steps)
            return
        for row in range(start, start + steps):
            layers(row)
            leap(row, 1)
            self.sources_and_receivers.inject(segment, row, first + row)
            fill_halo((row + 2) * size)
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
        leap, fill_halo = grid.bind_leap(u, self.kappa, None), grid.bind_fill_halo(u)
        for row in reversed(range(steps)):
            leap(row + 2, 1, way=-1)
            self.sources_and_receivers.add_sources(segment, row, first + row, row)
            if first + row > 0:
                tape.restore_layers(u[:, row], first + row - 1)
            fill_halo(row * size)

    def pull(self, segment: Segment, *, first: int, steps: int, adjoint: Arrays) -> None:
        """Reverse the segment. Some fields of `adjoint` may have one row while others have a row for each state."""
        Adjoint(self, segment, first=first, steps=steps, adjoint=adjoint).run()

    def push(self, segment: Segment, *, first: int, steps: int, tangent: Arrays) -> Arrays:
        grid, size, u = self.grid, self.grid.layout.size, segment.height
        dsegment = self.segment(steps)
        self.load(dsegment, tangent)
        du, tangents = dsegment.height, self.tangents
        (layers, extra), (dlayers, dextra) = self.bind_layers(segment), self.bind_layers(dsegment)
        dkappa = grid.layout.pad(advance.jvp_courant(self.model, self.params["speed"], tangents["speed"]))
        arrays = {"u": u, "du": du, "dbefore": du, "new": du, "kappa": self.kappa, "dkappa": dkappa}
        leap = grid.bind(loops.jvp_leap, **arrays, extra=extra, dextra=dextra)
        fill_halo, moves = grid.bind_fill_halo(du), self.sources_and_receivers.moves(dkappa, tangents)
        for row in range(steps):
            layers(row)
            dlayers(row)
            leap((row + 1) * size, row * size, (row + 1) * size, (row + 2) * size)
            self.sources_and_receivers.jvp_inject(segment, dsegment, row, first + row, moves)
            fill_halo((row + 2) * size)
            self.sources_and_receivers.jvp_receive(segment, dsegment, row + 1, moves)
        return dsegment.read(slice(steps + 1))

    def gradients(self) -> Arrays:
        if "speed" in self.needs:
            adj_log = self.grid.layout.view_cells(self.adj_log_courant)
            self.sums["speed"] += advance.adj_speed(self.params["speed"], adj_log)
            self.adj_log_courant[...] = 0
        return super().gradients()

    def bind_layers(self, segment: Segment) -> tuple[Launch, Array | None]:
        """Bind `layers(row)`, and return the array [B, size] to which it writes the layers' part of the curvature.

        It computes that of state `row`, and the layers' memories of the next state. Without layers there is none.
        """
        grid, size, memory = self.grid, self.grid.layout.size, self.grid.memory
        if not grid.slabs:
            return lambda row: None, None
        extra = aligned_zeros((self.batch, size), runtime.real_dtype())
        launch = grid.bind_layers(segment.height, segment.slope_memory, segment.curvature_memory, extra)

        def layers(row: int) -> None:
            extra[...] = 0
            launch((row + 1) * size, row * memory, (row + 1) * memory)

        return layers, extra

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
        return aligned_zeros((self.batch, self.grid.layout.size), runtime.real_dtype())
