"""Tables of the rows of all joints for kernels: constrained rows, and free rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from simphys.numerics.orientation import matrices
from simphys.simulator import Array
from simphys.simulator.arrays import locked

from .joint import FIXED, PRISMATIC, REVOLUTE, WORLD, Joint, orient_world

LINE, TURN, ALIGN = range(3)
"""Kinds of rows, see joint_row.py."""


def numbers(dim: int) -> int:
    """Count the numbers of a row, in the order c, axis_a, axis_b, relative, to_world (s)."""
    return 3 * dim + (1 if dim == 2 else 4) + 1


class Table(NamedTuple):
    """Rows in the order of their joints."""

    a: Array
    """Body a of each row, [m]."""
    b: Array
    """Body b, or WORLD, [m]."""
    kind: Array
    joint: Array
    """Index of the joint, [m]."""
    motor: Array
    """Index of its motor, or -1, [m]."""
    parts: Array
    """Description of each row (see joint_row.py), [m, numbers(dim)]."""
    still: Array
    """Orientation of the world where it is body b, else 0, [m, R]."""


def tabulate_constraints(joints: Sequence[Joint], dim: int) -> Table:
    """Return the constrained rows of the joints, [NJ]: for each joint its lines, then its rotations."""
    spins = 1 if dim == 2 else 3
    rows = [
        (index, kind, c)
        for index, joint in enumerate(joints)
        for kind, includes_axis in _constrained_kinds(joint)
        for c in range(dim if kind == LINE else spins)[0 if includes_axis else 1 :]
    ]
    return _tabulate(joints, dim, rows)


def tabulate_free_rows(joints: Sequence[Joint], dim: int) -> Table:
    """Return the free row of each joint; a fixed joint has none."""
    kinds = {REVOLUTE: ALIGN, PRISMATIC: LINE}
    rows = [(index, kinds[joint.kind], 0) for index, joint in enumerate(joints) if joint.kind != FIXED]
    return _tabulate(joints, dim, rows)


def _constrained_kinds(joint: Joint) -> Iterable[tuple[int, bool]]:
    """Return the kinds of rows that a joint constrains; False excludes the row along, or about, its axis."""
    if joint.kind == REVOLUTE:
        return ((LINE, True), (ALIGN, False))
    return (LINE, joint.kind == FIXED), (TURN, True)


def _tabulate(joints: Sequence[Joint], dim: int, rows: Sequence[tuple[int, int, int]]) -> Table:
    """Build a table of rows (joint, kind, index of the basis vector)."""
    motors = [index for index, joint in enumerate(joints) if joint.motor]
    numbered = [motors.index(index) if joint.motor else -1 for index, joint in enumerate(joints)]
    links = [(joints[index].a, joints[index].b, kind, index, numbered[index]) for index, kind, _ in rows]
    a, b, kind, joint, motor = np.array(links, np.int32).reshape(-1, 5).T
    parts = np.array([_numbers(joints[index], dim, c) for index, _, c in rows]).reshape(-1, numbers(dim))
    return Table(*map(locked, (a, b, kind, joint, motor, parts, orient_world(b, dim))))


def _numbers(joint: Joint, dim: int, c: int) -> list[float]:
    basis = _basis(joint, dim)
    relative = np.zeros(1) if dim == 2 else np.array([1.0, 0.0, 0.0, 0.0])
    if joint.relative is not None:
        relative = np.array(joint.relative, float)
    if dim == 3:
        relative = relative / np.linalg.norm(relative)
    axis_b = matrices(relative).T @ basis[0]
    found = [*basis[c], *basis[0], *axis_b, *relative, float(joint.b == WORLD)]
    assert len(found) == numbers(dim)
    return found


def _basis(joint: Joint, dim: int) -> Array:
    """Return orthogonal unit vectors in the frame of a, the joint's axis first; [dim, dim]."""
    axis = np.array(joint.axis, float) if joint.axis is not None else np.eye(dim)[0]
    if dim == 2:
        return np.array([axis, [-axis[1], axis[0]]])
    first = np.cross(axis, np.eye(3)[np.argmin(abs(axis))])
    first /= np.linalg.norm(first)
    return np.array([axis, first, np.cross(axis, first)])
