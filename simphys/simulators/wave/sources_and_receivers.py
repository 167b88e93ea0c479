"""Sources and receivers of all batch members, bound to the arrays of a segment."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.simulator import Array, Arrays

from . import receive, source
from .grid_loops import GridLoops, Launch, flatten
from .segment import Segment


class SourcesAndReceivers:
    """Launches of sources and receivers. `params` and `control` [B, T, S] hold all batch members; a row is a state."""

    def __init__(self, grid: GridLoops, params: Arrays, control: Array | None, kappa: Array) -> None:
        model, layout = grid.model, grid.layout
        self._grid, self._params, self._kappa = grid, params, kappa
        self._control = np.zeros((grid.batch, 0, 0), kappa.dtype) if control is None else control
        cell_layout = (layout.origin, *layout.strides)
        self._plane_axes = source.plane_axes(model)
        self._has_sources = control is not None
        self._has_receivers = model.receivers > 0
        self._launches: dict[str, tuple[tuple[Any, ...], Launch]] = {}
        if self._has_sources:
            self._source = source.kernels(runtime.real(), model.cells, model.boundaries, cell_layout, cell_layout)
        if self._has_receivers:
            self._receive = receive.kernels(runtime.real(), model.cells, model.boundaries, cell_layout)

    def inject(self, segment: Segment, row: int, time: int) -> None:
        """Add kappa dx^2 f of step `time` to the height that follows state `row`, and move the sources."""
        self._move(segment, row, self._params["source_velocity"])
        self.add_sources(segment, row, time, row + 2)

    def add_sources(self, segment: Segment, row: int, time: int, to: int) -> None:
        """Add kappa dx^2 f of step `time`, for the source positions of state `row`, to row `to` of the heights."""
        if not self._has_sources:
            return
        x, u = segment.source_position, segment.height
        arrays = u, self._kappa, self._control, x, self._plane_axes
        inject = self._bind(self._source.inject, *arrays, self._grid.model.spacing)
        for b in range(self._grid.batch):
            inject(self._row_at(b, u, to), self._kappa_at(b), self._strength_at(b, time), self._row_at(b, x, row))

    def adj_inject(
        self,
        segment: Segment,
        row: int,
        time: int,
        w: Array,
        w_row: int,
        adj_log: Array | None,
        adj_x: Array,
        sums: Arrays,
    ) -> None:
        """Reverse `inject`: from w = kappa adj_u, add to the adjoints of strengths, log kappa and positions."""
        sums["source_velocity"] += self._grid.model.dt * adj_x
        if not self._has_sources:
            return
        x, dx = segment.source_position, self._grid.model.spacing
        arrays = w, self._control, x, self._plane_axes
        adj_sources = self._bind(self._source.adj_inject, *arrays, sums["control"], adj_x, dx)
        adj_kappa = None if adj_log is None else self._bind(self._source.adj_inject_kappa, *arrays, adj_log, dx)
        for b in range(self._grid.batch):
            strength, position, here = self._strength_at(b, time), self._row_at(b, x, row), self._row_at(b, w, w_row)
            adj_sources(here, strength, position, strength, self._row_at(b, adj_x, 0))
            if adj_kappa is not None and adj_log is not None:
                adj_kappa(here, strength, position, b * adj_log[0].size)

    def jvp_inject(
        self, segment: Segment, dsegment: Segment, row: int, time: int, dkappa: Array, tangents: Arrays
    ) -> None:
        """Add the tangent of `inject` to the tangent of the height."""
        self._move(dsegment, row, tangents["source_velocity"])
        if not self._has_sources:
            return
        x, dx = segment.source_position, dsegment.source_position
        arrays = dsegment.height, self._kappa, self._control, x, self._plane_axes, dkappa, tangents["control"], dx
        inject = self._bind(self._source.jvp_inject, *arrays, self._grid.model.spacing)
        for b in range(self._grid.batch):
            strength, position = self._strength_at(b, time), self._row_at(b, x, row)
            inject(
                self._row_at(b, dsegment.height, row + 2), self._kappa_at(b), strength, position, b * dkappa[0].size,
                strength, position,
            )  # fmt: skip

    def receive(self, segment: Segment, row: int) -> None:
        """Read state `row` at the receivers."""
        if not self._has_receivers:
            return
        u, out = segment.height, segment.received
        receive = self._bind(self._receive.receive, u, self._params["receiver_position"], out, *self._receiver_scalars)
        for b in range(self._grid.batch):
            receive(self._row_at(b, u, row + 1), self._receivers_at(b), self._row_at(b, out, row))

    def adj_receive(
        self, height: Array, height_row: int, adj_received: Array, row: int, w: Array, w_row: int, adj_position: Array
    ) -> None:
        """Reverse `receive`: add `adj_received` [B, rows, R] to w = kappa adj_u and adj_position [B, R, dim]."""
        if not self._has_receivers:
            return
        arrays = height, self._params["receiver_position"], adj_received, self._kappa, w, adj_position
        receive = self._bind(self._receive.adj_receive, *arrays, *self._receiver_scalars)
        for b in range(self._grid.batch):
            receive(
                self._row_at(b, height, height_row), self._receivers_at(b), self._row_at(b, adj_received, row),
                self._kappa_at(b), self._row_at(b, w, w_row), self._receivers_at(b),
            )  # fmt: skip

    def jvp_receive(self, segment: Segment, dsegment: Segment, row: int, tangents: Arrays) -> None:
        """Compute the tangent of the receivers' readings of state `row`."""
        if not self._has_receivers:
            return
        u, du, out = segment.height, dsegment.height, dsegment.received
        arrays = u, self._params["receiver_position"], du, tangents["receiver_position"], out
        receive = self._bind(self._receive.jvp_receive, *arrays, *self._receiver_scalars)
        for b in range(self._grid.batch):
            receive(
                self._row_at(b, u, row + 1), self._receivers_at(b), self._row_at(b, du, row + 1), self._receivers_at(b),
                self._row_at(b, out, row),
            )  # fmt: skip

    @property
    def _receiver_scalars(self) -> tuple[int, float]:
        """Number of receivers, and the grid spacing."""
        return self._grid.model.receivers, self._grid.model.spacing

    def _bind(self, kernel: Any, *arguments: Any) -> Launch:
        """Return `kernel.bind(*arguments)`, bound again only when one of the arguments is another object."""
        cached = self._launches.get(kernel.name)
        if cached is None or any([old is not new for old, new in zip(cached[0], arguments, strict=True)]):
            flattened = [flatten(each) if isinstance(each, np.ndarray) else each for each in arguments]
            cached = self._launches[kernel.name] = arguments, kernel.bind(*flattened)
        return cached[1]

    def _move(self, segment: Segment, row: int, velocity: Array) -> None:
        x = segment.source_position
        if x.size:
            x[:, row + 1] = x[:, row] + velocity * self._grid.model.dt

    @staticmethod
    def _row_at(b: int, values: Array, row: int) -> int:
        """Index at which a row of batch member b begins in `values` [B, rows, ...]."""
        return b * values[0].size + row * (values[0, 0].size if values.ndim > 2 or row else 0)

    def _strength_at(self, b: int, time: int) -> int:
        return (b * self._control.shape[1] + time) * self._control.shape[2]

    def _receivers_at(self, b: int) -> int:
        return b * int(np.prod(self._params["receiver_position"].shape[1:]))

    def _kappa_at(self, b: int) -> int:
        return b * self._grid.layout.size if len(self._kappa) > 1 else 0
