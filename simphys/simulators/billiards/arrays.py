"""Records of arrays that loops over balls take; in fused loops, views of those of one batch member."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any, NamedTuple, no_type_check

from simphys.autograd import View, record, stands_for
from simphys.autograd.kernels.runtime import ti


class Balls(NamedTuple):
    """Positions and velocities of the balls, or their adjoints."""

    x: Any
    v: Any


class Table(NamedTuple):
    """Parameters of the balls and the table, or their adjoints."""

    r: Any
    """Radius of each ball [m]."""
    m: Any = None
    """Mass of each ball [kg]."""
    c: Any = None
    """Restitution of two balls."""
    side_c: Any = None
    """Restitution of a ball and a cushion."""
    a: Any = None
    """Deceleration [m/s^2]."""
    walls: Any = None
    """Coordinates of the four cushions [m]."""


class Legs(NamedTuple):
    """The flights of a step between impacts."""

    balls: Any
    """State before each leg."""
    times: Any
    pair: Any
    """The colliding pair at the end of each leg, but the last."""


class Limits(NamedTuple):
    """Counts of a table, and the times of a step."""

    h: Any
    min_step: Any
    """Interval at which balls that are pushed together collide again [s]."""
    n: Any
    """Number of balls."""
    partners: Any
    impacts: Any
    """Maximum number of impacts in a step."""


@functools.cache
@no_type_check
def types(real: Any) -> SimpleNamespace:
    """Return the types of records for kernels."""
    vectors = ti.types.ndarray(dtype=ti.types.vector(2, real), ndim=1)
    reals, pairs = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=2)
    balls = record(Balls, vectors)
    return SimpleNamespace(
        vectors=vectors,
        reals=reals,
        balls=balls,
        table=record(Table, reals),
        rims=record(Table, r=reals, walls=reals),
        legs=record(Legs, balls=balls, times=reals, pair=pairs),
        limits=record(Limits, ti.i32, h=real, min_step=real),
    )


@stands_for("balls")
@no_type_check
def balls_from(balls: Any, start: Any) -> Balls:
    """Make views of the balls from index `start` on, in a kernel."""
    return Balls(View(balls.x, start), View(balls.v, start))


@stands_for("table")
@no_type_check
def table_of(table: Any, b: Any, n: Any) -> Table:
    """Make views of the parameters of batch member b with n balls, in a kernel."""
    balls, member = b * n, (View(array, b) for array in (table.c, table.side_c, table.a))
    return Table(View(table.r, balls), View(table.m, balls), *member, View(table.walls, 4 * b))
