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
from .ends import Ends
from .grid_loops import GridLoops, Launch
from .model import Wave
from .segment import Segment
from .tape import Tape


class WaveEngine(ArrayEngine):
    """The rollout of a batch of waves. Grid loops cover all batch members; sources and receivers loop over members."""

    model: Wave

    def __init__(self, model: Wave, params: Arrays, control: Array | None, **options: Any) -> None:
        super().__init__(model, params, control, **options)
        self.grid = GridLoops(model, self.batch)
        self._shared = params["speed"].ndim == model.dim
        self.carried: tuple[Array, Array, Array, Array] | None = None
        """Adjoints of height and previous that the last `pull` returned, and the two rows of w they came from."""

    @property
    def needs_states(self) -> bool:
        """True if `pull` reads states. The equation is linear in the field, so only gradients of speeds, sources and
        receiver positions need them."""
        return bool(self.needs & {"speed", "receiver_position"}) or bool(self.model.sources)

    @property
    def fields_apart(self) -> bool:
        return True

    def segment_bytes(self, steps: int, *, dense: bool) -> int:
        held = {**self.sums, **self.params}
        work = self.batch * (6 * self.grid.layout.size + 7 * self.grid.memory) * runtime.real_dtype().itemsize
        return Segment.bytes_of(self.grid, steps) + sum([values.nbytes for values in held.values()]) + work

    def segment(self, steps: int) -> Segment:  # type: ignore[override]
        return Segment(self.grid, steps)

    def load(self, segment: Segment, state: Arrays) -> None:  # type: ignore[override]
        segment.load(state)
        for launch in self.grid.continue_beyond(segment.height, of_u=segment.height[0].size):
            launch(self.grid.layout.size)

    def read(  # type: ignore[override]
        self, segment: Segment, rows: slice | list[int], names: Collection[str] | None = None
    ) -> Arrays:
        return segment.read(rows, names)

    def advance(self, segment: Segment, *, first: int, start: int, steps: int) -> None:
        grid, size, u = self.grid, self.grid.layout.size, segment.height
        extra = self._extra()
        layers = [] if extra is None else self.layers(segment, extra)
        leap = grid.leap(u, self.kappa, extra, of_u=u[0].size)
        beyond = grid.continue_beyond(u, of_u=u[0].size)
        for row in range(start, start + steps):
            if extra is not None:
                self.absorb(layers, extra, row)
            leap(row * size, (row + 1) * size, (row + 2) * size)
            self.ends.inject(segment, row, first + row)
            for launch in beyond:
                launch((row + 2) * size)
            self.ends.receive(segment, row + 1)

    def tape_bytes(self, steps: int) -> int:
        return Tape.bytes_of(self.grid, steps)

    def tape(self, steps: int) -> Tape:
        return Tape(self.grid, steps)

    def record(self, tape: Tape, segment: Segment, *, first: int, steps: int) -> None:
        tape.record(segment, first=first, steps=steps)

    def rebuild(self, tape: Tape, segment: Segment, *, first: int, steps: int) -> None:
        tape.replay(segment, first=first, steps=steps)
        grid, size, u = self.grid, self.grid.layout.size, segment.height
        leap = grid.leap(u, self.kappa, None, of_u=u[0].size)
        beyond = grid.continue_beyond(u, of_u=u[0].size)
        for row in reversed(range(steps)):
            leap((row + 2) * size, (row + 1) * size, row * size)
            self.ends.add(segment, row, first + row, row)
            if first + row > 0:
                tape.correct(u[:, row], first + row - 1)
            for launch in beyond:
                launch(row * size)

    def pull(self, segment: Segment, *, first: int, steps: int, adjoint: Arrays) -> None:
        """Reverse the segment. Some fields of `adjoint` may have one row while others have a row for each state."""
        back = Adjoint(self, segment, first=first, steps=steps, adjoint=adjoint)
        for row in reversed(range(steps)):
            back.step(row)
        back.finish()

    def push(self, segment: Segment, *, first: int, steps: int, tangent: Arrays) -> Arrays:  # type: ignore[override]
        grid, size, u = self.grid, self.grid.layout.size, segment.height
        moved = self.segment(steps)
        self.load(moved, tangent)
        du, changes, extra = moved.height, self.tangents, self._extra()
        base = np.zeros((self.batch, size), u.dtype)
        layers = [] if extra is None else self.layers(segment, base)
        dlayers = [] if extra is None else self.layers(moved, extra)
        leap = grid.leap(du, self.kappa, extra, of_u=du[0].size)
        beyond = grid.continue_beyond(du, of_u=du[0].size)
        dkappa = grid.layout.padded(advance.jvp_courant(self.model, self.params["speed"], changes["speed"]))
        of_kappa = grid.jvp_kappa(u, du, dkappa, base, of_u=u[0].size, of_new=du[0].size)
        for row in range(steps):
            if extra is not None:
                self.absorb(dlayers, extra, row)
                self.absorb(layers, base, row)
            leap(row * size, (row + 1) * size, (row + 2) * size)
            of_kappa((row + 1) * size, (row + 2) * size)
            self.ends.jvp_inject(segment, moved, row, first + row, dkappa, changes)
            for launch in beyond:
                launch((row + 2) * size)
            self.ends.jvp_receive(segment, moved, row + 1, changes)
        return moved.read(slice(steps + 1))

    def gradients(self) -> Arrays:
        if "speed" in self.needs:
            of_log = self.grid.layout.cells(self.of_log_kappa)
            self.sums["speed"] += advance.adj_speed(self.params["speed"], of_log)
            self.of_log_kappa[...] = 0
        return super().gradients()

    def layers(self, segment: Segment, extra: Array) -> list[Launch]:
        """Bind the loops of the absorbing layers to the states of a segment, see `GridLoops.layers`."""
        of_u, of_psi = segment.height[0].size, segment.slope_memory[0].size
        return self.grid.layers(
            segment.height, segment.slope_memory, segment.curvature_memory, extra, of_u=of_u, of_psi=of_psi
        )

    def absorb(self, layers: list[Launch], extra: Array, row: int) -> None:
        """Compute the layers' contribution to the curvature of state `row`, and their memories of the next state."""
        size, memory = self.grid.layout.size, self.grid.memory
        extra[...] = 0
        for layer in layers:
            layer((row + 1) * size, row * memory, (row + 1) * memory)

    @cached_property
    def ends(self) -> Ends:
        """Launches of sources and receivers."""
        return Ends(self.grid, self.params, self.control, self.kappa)

    @cached_property
    def kappa(self) -> Array:
        """(c dt / dx)^2 in the grid's layout, [B, size], or [1, size] if all batch members share the speed."""
        speed = self.params["speed"][:1] if self._shared else self.params["speed"]
        return self.grid.layout.padded(advance.courant(self.model, speed))

    @cached_property
    def of_log_kappa(self) -> Array:
        """Adjoint sum of log kappa that `pull` adds to, in the grid's layout, [B, size]."""
        return np.zeros((self.batch, self.grid.layout.size), runtime.real_dtype())

    def _extra(self) -> Array | None:
        """Allocate the layers' contribution to the curvature; None without absorbing layers."""
        size = self.grid.layout.size
        return np.zeros((self.batch, size), runtime.real_dtype()) if self.grid.slabs else None
