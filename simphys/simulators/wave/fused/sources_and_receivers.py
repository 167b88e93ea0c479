"""Sources and receivers of all batch members in the fused steps; see `source` and `receive`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simphys.simulator import Array, Arrays

from .. import source
from . import point_loops
from .grid_loops import GridLoops
from .point_loops import PointLoops, Row
from .segment import Segment


class Moves(NamedTuple):
    """Tangents of what sources and receivers read."""

    kappa: Array
    deltas: Array | None
    position: Array
    velocity: Array


class SourcesAndReceivers:
    """Launches of sources and receivers. `params` and `control` [B, T, S] hold all batch members; a row is a state."""

    def __init__(self, grid: GridLoops, params: Arrays, control: Array | None, kappa: Array) -> None:
        model = grid.model
        self._model, self._params, self._kappa = model, params, (kappa, 0)
        self._scales = source.delta_scales(model)
        self._deltas = None if control is None else control * self._scales
        self._sources, self._receivers = (
            PointLoops(grid.layout, model.boundaries, model.spacing, members=grid.batch, count=len(even), even=even)
            for even in (model.even_axes, np.zeros(model.receivers, np.int32))
        )
        self._position = params["receiver_position"], 0
        self._adj_deltas = np.zeros((grid.batch, 1, len(model.sources)), kappa.dtype)

    def inject(self, segment: Segment, row: int, time: int) -> None:
        """Add kappa dx^2 f of step `time` to the height that follows state `row`, and move the sources."""
        self._move(segment, row, self._params["source_velocity"])
        self.add_sources(segment, row, time, row + 2)

    def add_sources(self, segment: Segment, row: int, time: int, to: int) -> None:
        """Add kappa dx^2 f of step `time`, for the source positions of state `row`, to row `to` of the heights."""
        if self._deltas is not None:
            delta, x = (self._deltas, time), (segment.source_position, row)
            field = segment.height, to
            self._sources.run(point_loops.scatter, field=field, factor=self._kappa, value=delta, position=x)

    def adj_inject(self, segment: Segment, row: int, time: int, w: Row, adj_log: Array | None, sums: Arrays) -> None:
        """Reverse `inject`: from w = kappa adj_u, add to the adjoints of strengths, log kappa and positions.

        `sums` has the adjoint sums of the parameters and the running adjoint of the positions, "source_position".
        """
        adj_x = sums["source_position"]
        sums["source_velocity"] += self._model.dt * adj_x
        if self._deltas is None:
            return
        delta, x, run = (self._deltas, time), (segment.source_position, row), self._sources.run
        run(point_loops.adj_position, field=w, value=delta, position=x, adj_position=(adj_x, 0))
        if adj_log is not None:
            run(point_loops.scatter, field=(adj_log, 0), factor=w, value=delta, position=x)
        self._adj_deltas[...] = 0
        run(point_loops.gather, field=w, value=(self._adj_deltas, 0), position=x)
        sums["control"][:, time] += self._scales * self._adj_deltas[:, 0]

    def moves(self, dkappa: Array, tangents: Arrays) -> Moves:
        """Collect the tangents that `jvp_inject` and `jvp_receive` take."""
        deltas = tangents["control"] * self._scales if "control" in tangents else None
        return Moves(dkappa, deltas, tangents["receiver_position"], tangents["source_velocity"])

    def jvp_inject(self, segment: Segment, dsegment: Segment, row: int, time: int, moves: Moves) -> None:
        """Add the tangent of `inject` to the tangent of the height."""
        self._move(dsegment, row, moves.velocity)
        if self._deltas is not None and moves.deltas is not None:
            self._sources.run(
                point_loops.jvp_scatter, field=(dsegment.height, row + 2), factor=self._kappa, dfactor=(moves.kappa, 0),
                value=(self._deltas, time), position=(segment.source_position, row),
                dvalue=(moves.deltas, time), dposition=(dsegment.source_position, row),
            )  # fmt: skip

    def receive(self, segment: Segment, row: int) -> None:
        """Read state `row` at the receivers."""
        if self._model.receivers:
            segment.received[:, row] = 0
            field, value = (segment.height, row + 1), (segment.received, row)
            self._receivers.run(point_loops.gather, field=field, value=value, position=self._position)

    def adj_receive(self, height: Row | None, adj_received: Row, w: Row, adj_x: Array) -> None:
        """Reverse `receive`: add to w = kappa adj_u, and with heights to the adjoint of positions."""
        if self._model.receivers:
            given = {"value": adj_received, "position": self._position}
            self._receivers.run(point_loops.scatter, field=w, factor=self._kappa, **given)
            if height is not None:
                self._receivers.run(point_loops.adj_position, field=height, **given, adj_position=(adj_x, 0))

    def jvp_receive(self, segment: Segment, dsegment: Segment, row: int, moves: Moves) -> None:
        """Compute the tangent of the receivers' readings of state `row`."""
        if self._model.receivers:
            dsegment.received[:, row] = 0
            self._receivers.run(
                point_loops.jvp_gather, field=(segment.height, row + 1), dfield=(dsegment.height, row + 1),
                dvalue=(dsegment.received, row), position=self._position, dposition=(moves.position, 0),
            )  # fmt: skip

    def _move(self, segment: Segment, row: int, velocity: Array) -> None:
        x = segment.source_position
        if x.size:
            x[:, row + 1] = x[:, row] + velocity * self._model.dt
