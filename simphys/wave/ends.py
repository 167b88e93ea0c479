"""Sources and receivers of all members, bound to a segment: where the field is driven, and where it is read."""

from __future__ import annotations

import numpy as np

from ..autograd import runtime
from ..simulator import Array, Arrays
from . import receive, source
from .grid_loops import GridLoops, flat
from .segment import Segment


class Ends:
    """`params` and `control` [B, T, S] are those of all members; rows are those of the segment's states."""

    def __init__(self, grid: GridLoops, params: Arrays, control: Array | None, kappa: Array) -> None:
        model, layout = grid.model, grid.layout
        self._grid, self._params, self._kappa = grid, params, kappa
        self._control = np.zeros((grid.batch, 0, 0), kappa.dtype) if control is None else control
        place = (layout.origin, *layout.strides)
        self._planes = source.planes(model)
        self._drives = control is not None
        self._reads = model.receivers > 0
        if self._drives:
            self._source = source.kernels(runtime.real(), model.cells, model.boundaries, place, place)
        if self._reads:
            self._receive = receive.kernels(runtime.real(), model.cells, model.boundaries, place)

    def inject(self, segment: Segment, row: int, time: int) -> None:
        """Add kappa dx^2 f of step `time` to the height after state `row`, and move the sources."""
        self._move(segment, row, self._params["source_velocity"])
        self.add(segment, row, time, row + 2)

    def add(self, segment: Segment, row: int, time: int, to: int) -> None:
        """Add kappa dx^2 f of step `time`, with sources where they are at state `row`, to row `to` of heights."""
        x, u = segment.source_position, segment.height
        for b in range(self._grid.batch if self._drives else 0):
            self._source.inject(
                flat(u), flat(self._kappa), flat(self._control), flat(x), self._planes, self._grid.model.spacing,
                self._row(b, u, to), self._of_kappa(b), self._strength(b, time), self._row(b, x, row),
            )  # fmt: skip

    def adj_inject(
        self,
        segment: Segment,
        row: int,
        time: int,
        w: Array,
        w_row: int,
        of_log: Array | None,
        adj_x: Array,
        sums: Arrays,
    ) -> None:
        """Reverse `inject`, from w = kappa adj_u: add to the adjoints of strengths, log kappa and positions."""
        sums["source_velocity"] += self._grid.model.dt * adj_x
        if not self._drives:
            return
        x, dx = segment.source_position, self._grid.model.spacing
        for b in range(self._grid.batch):
            strength, position, here = self._strength(b, time), self._row(b, x, row), self._row(b, w, w_row)
            arrays = flat(self._control), flat(x), self._planes
            self._source.adj_inject(
                flat(w), *arrays, flat(sums["control"]), flat(adj_x), dx,
                here, strength, position, strength, self._row(b, adj_x, 0),
            )  # fmt: skip
            if of_log is not None:
                total = b * of_log[0].size
                self._source.adj_inject_kappa(flat(w), *arrays, flat(of_log), dx, here, strength, position, total)

    def jvp_inject(self, segment: Segment, moved: Segment, row: int, time: int, dkappa: Array, changes: Arrays) -> None:
        """Add the change of what `inject` adds to that of the height."""
        self._move(moved, row, changes["source_velocity"])
        if not self._drives:
            return
        x, dx = segment.source_position, moved.source_position
        for b in range(self._grid.batch):
            strength, position = self._strength(b, time), self._row(b, x, row)
            self._source.jvp_inject(
                flat(moved.height), flat(self._kappa), flat(self._control), flat(x), self._planes, flat(dkappa),
                flat(changes["control"]), flat(dx), self._grid.model.spacing, self._row(b, moved.height, row + 2),
                self._of_kappa(b), strength, position, b * dkappa[0].size, strength, position,
            )  # fmt: skip

    def receive(self, segment: Segment, row: int) -> None:
        """What receivers read of state `row`."""
        u, out = segment.height, segment.received
        for b in range(self._grid.batch if self._reads else 0):
            self._receive.receive(
                flat(u), flat(self._params["receiver_position"]), flat(out), self._grid.model.receivers,
                self._grid.model.spacing, self._row(b, u, row + 1), self._receivers(b), self._row(b, out, row),
            )  # fmt: skip

    def adj_receive(
        self, height: Array, height_row: int, adj_received: Array, row: int, w: Array, w_row: int, adj_position: Array
    ) -> None:
        """Reverse `receive`: `adj_received` [B, rows, R] adds to w = kappa adj_u and adj_position [B, R, dim]."""
        for b in range(self._grid.batch if self._reads else 0):
            self._receive.adj_receive(
                flat(height), flat(self._params["receiver_position"]), flat(adj_received), flat(self._kappa), flat(w),
                flat(adj_position), self._grid.model.receivers, self._grid.model.spacing,
                self._row(b, height, height_row), self._receivers(b), self._row(b, adj_received, row),
                self._of_kappa(b), self._row(b, w, w_row), self._receivers(b),
            )  # fmt: skip

    def jvp_receive(self, segment: Segment, moved: Segment, row: int, changes: Arrays) -> None:
        """The change of what receivers read of state `row`."""
        u, du, out = segment.height, moved.height, moved.received
        for b in range(self._grid.batch if self._reads else 0):
            self._receive.jvp_receive(
                flat(u), flat(self._params["receiver_position"]), flat(du), flat(changes["receiver_position"]),
                flat(out), self._grid.model.receivers, self._grid.model.spacing, self._row(b, u, row + 1),
                self._receivers(b), self._row(b, du, row + 1), self._receivers(b), self._row(b, out, row),
            )  # fmt: skip

    def _move(self, segment: Segment, row: int, velocity: Array) -> None:
        x = segment.source_position
        if x.size:
            x[:, row + 1] = x[:, row] + velocity * self._grid.model.dt

    @staticmethod
    def _row(b: int, values: Array, row: int) -> int:
        """Where a row of member b begins in `values` [B, rows, ...]."""
        return b * values[0].size + row * (values[0, 0].size if values.ndim > 2 or row else 0)

    def _strength(self, b: int, time: int) -> int:
        return (b * self._control.shape[1] + time) * self._control.shape[2]

    def _receivers(self, b: int) -> int:
        return b * int(np.prod(self._params["receiver_position"].shape[1:]))

    def _of_kappa(self, b: int) -> int:
        return b * self._grid.layout.size if len(self._kappa) > 1 else 0
