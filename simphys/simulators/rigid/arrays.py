"""Records of the arrays that a step passes between its loops; rows.py has shapes, meaning and origin of each.

A record serves values and, with the same fields, their adjoints. Fields that a loop does not use stay empty.
"""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any, NamedTuple, no_type_check

from simphys.autograd import record, stands_for
from simphys.autograd.kernels.records import View
from simphys.autograd.kernels.runtime import ti

from .rows import flatten


class Motion(NamedTuple):
    """Position, orientation, velocity and angular velocity of all bodies."""

    x: Any = None
    q: Any = None
    v: Any = None
    w: Any = None
    theta: Any = None
    """Adjoint by small rotations [n, S], in place of that by q."""


class Impact(NamedTuple):
    """Poses at the first impact that reaches each body, and the fraction of the step before it."""

    x: Any = None
    q: Any = None
    fraction: Any = None
    theta: Any = None
    """Adjoint by small rotations [n, S], in place of that by q."""


class Change(NamedTuple):
    """Forces of a step and what they and the impulses make of the velocities."""

    wrench: Any = None
    twist: Any = None
    """Velocities after the forces, before the impulses."""
    new: Any = None
    """Velocities after the impulses."""
    shift: Any = None


class Contacts(NamedTuple):
    """Distances, times and states of the contact candidates."""

    gap: Any = None
    frame: Any = None
    attitude: Any = None
    """Its adjoint is by small rotations, [M, 2 S]."""
    time: Any = None
    active: Any = None
    first: Any = None
    gap_normal: Any = None
    """Normals [M, dim] at which gaps of contacts at rest are measured, see time_of_impact.py."""


class Rows(NamedTuple):
    """Constraint rows of joints and contacts, with the mobilities of their bodies."""

    row: Any = None
    target: Any = None
    limit: Any = None
    bounce: Any = None
    inverse_mass: Any = None
    spin_change: Any = None
    moment: Any = None


class Solver(NamedTuple):
    """Order, impulses and workspace of a solve, kept for its adjoint; see phases.py and sweeps.py."""

    impulse: Any = None
    order: Any = None
    held: Any = None
    record: Any = None
    speed: Any = None
    trace: Any = None
    phase_target: Any = None
    delta_v: Any = None
    result: Any = None


class Params(NamedTuple):
    """Physical parameters, in the order in which a member's are packed."""

    mass: Any = None
    inertia: Any = None
    gravity: Any = None
    friction: Any = None
    restitution: Any = None
    contact_stiffness: Any = None
    contact_damping: Any = None
    spring_stiffness: Any = None
    spring_damping: Any = None
    spring_length: Any = None
    joint_damping: Any = None
    motor_strength: Any = None
    hidden_weight: Any = None
    hidden_bias: Any = None
    output_weight: Any = None
    output_bias: Any = None


class Signals(NamedTuple):
    """Actions of the motors, and the network that makes them; rows of the network are padded, see nn/fused.py."""

    action: Any = None
    weights: Any = None
    inputs: Any = None
    hidden: Any = None
    outputs: Any = None


class Member(NamedTuple):
    """All arrays of a step of one batch member."""

    stage: Any = None
    """The motion in which forces act."""
    change: Any = None
    contacts: Any = None
    rows: Any = None
    impact: Any = None
    solver: Any = None
    params: Any = None
    signals: Any = None


class System(NamedTuple):
    """Constants of the bodies and their rows."""

    free: Any = None
    """[n], 0 for a fixed body."""
    bodies: Any = None
    """Both bodies of each joint row, then of each candidate, [2 (NJ + M)]."""
    n: Any = None
    """Number of bodies."""
    NJ: Any = None
    """Number of joint rows."""
    M: Any = None
    """Number of candidates that have rows."""
    sweeps: Any = None


class Candidates(NamedTuple):
    """Pairs of features that may touch, see geometry/candidates.py."""

    kind: Any = None
    body_a: Any = None
    body_b: Any = None
    constants: Any = None
    count: Any = None


class Table(NamedTuple):
    """Rows of joints, see joint_tables.py."""

    links: Any
    parts: Any
    count: Any


class Springs(NamedTuple):
    """Bodies [2 K] and anchors [2 K dim] of the spring-dampers, end a first."""

    bodies: Any
    anchors: Any
    count: Any


class Constants(NamedTuple):
    """All constants of a step."""

    system: Any
    candidates: Any
    joints: Any
    free_rows: Any
    springs: Any
    times: Any


class Times(NamedTuple):
    """Numbers of a step."""

    h: Any
    """Time step [s]."""
    threshold: Any
    """Restitution threshold, or the slip speed [m/s]."""
    gain: Any
    """Correction of joints per time step [1/s]."""


class Packed(NamedTuple):
    """Parameters, controls and workspaces of all batch members, one after the other, and their sizes."""

    params: Any
    """[B, P]."""
    control: Any
    """[B, T, A]."""
    work: Any
    """[B, size]."""
    order: Any
    """[B, order_size]."""
    layout: Any
    P: Any
    T: Any
    A: Any
    size: Any
    order_size: Any


@functools.cache
@no_type_check
def types(real: Any) -> SimpleNamespace:
    """Return the types of records, with flat arrays, for kernels."""
    reals, ints, whole = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1), ti.i32

    def part(kind, fields):
        """Return the type of a record with these fields alone, which are arrays of real numbers."""
        return record(kind, **dict.fromkeys(fields.split(), reals))

    system = record(System, whole, free=ints, bodies=ints)
    candidates = record(Candidates, ints, constants=reals, count=whole)
    table = record(Table, links=ints, parts=reals, count=whole)
    springs = record(Springs, bodies=ints, anchors=reals, count=whole)
    constants = {"system": system, "candidates": candidates, "joints": table, "free_rows": table, "springs": springs}
    return SimpleNamespace(
        reals=reals,
        ints=ints,
        part=part,
        pose=part(Motion, "x q"),
        turned_pose=part(Motion, "x q theta"),
        motion=part(Motion, "x q v w"),
        turned_motion=part(Motion, "x q v w theta"),
        bodies=record(System, free=ints, n=whole),
        system=system,
        candidates=candidates,
        table=table,
        springs=springs,
        constants=record(Constants, **constants, times=record(Times, real)),
        packed=record(Packed, whole, params=reals, control=reals, work=reals, order=ints, layout=ints),
    )


@stands_for("system")
@no_type_check
def select_rows(system: Any, impulses: bool) -> System:
    """Return the system, without rows of contacts where these give no impulses, in a kernel."""
    return system if impulses else system._replace(M=0)


@stands_for("rows")
@no_type_check
def rows_of_contacts(rows: Any, NJ: Any, width: int) -> Rows:
    """Make views of the rows after those of the joints, in a kernel."""
    return rows._replace(row=View(rows.row, NJ * width), target=View(rows.target, NJ))


@stands_for("motion")
@no_type_check
def from_row(motion: Any, row: Any, dim: int) -> Motion:
    """Make views of the bodies of a motion from number `row` on, in a kernel."""
    spins, rotations = (1, 1) if dim == 2 else (3, 4)
    widths = Motion(x=dim, q=rotations, v=dim, w=spins, theta=spins)
    return Motion(
        *[None if array is None else View(array, row * width) for array, width in zip(motion, widths, strict=True)]
    )


def flat(values: Any) -> Any:
    """Flatten the arrays and Tensors of a record, for kernels; numbers and empty fields stay."""
    return type(values)(*[_flat(each) for each in values])


def _flat(value: Any) -> Any:
    if hasattr(value, "_fields"):
        return flat(value)
    return value if value is None or isinstance(value, int | float) else flatten(value)[0]
