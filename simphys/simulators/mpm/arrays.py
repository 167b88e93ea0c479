"""Records of arrays that the kernels of sub-steps take, and conversion to their form."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any, NamedTuple, no_type_check

import numpy as np

from simphys.autograd import Tensor, record
from simphys.autograd.kernels.runtime import ti
from simphys.simulator import Array


class Particles(NamedTuple):
    """Values of all particles, or of one; their adjoints or their tangents."""

    x: Any = None
    """Position [m]."""
    v: Any = None
    """Velocity [m/s]."""
    C: Any = None
    """Velocity gradient [1/s]."""
    F: Any = None
    """Deformation gradient."""
    q: Any = None
    """Hidden variable of the law."""
    tau: Any = None
    """Kirchhoff stress [Pa]."""
    m: Any = None
    """Mass [kg]."""
    V: Any = None
    """Volume at rest [m^dim]."""


class Material(NamedTuple):
    """Constants of all particles, and the controls of actuators; their adjoint sums or their tangents."""

    mass: Any = None
    volume: Any = None
    c: Any = None
    """Coefficients of the law, [n, width]."""
    law: Any = None
    """Number of the law of each particle."""
    act: Any = None
    """Column of the control of each particle."""
    fibre: Any = None
    control: Any = None
    """[T, A + 1], with a last column of 0."""


class Grid(NamedTuple):
    """Workspace on the nodes, or its tangent."""

    G: Any = None
    """Momentum and mass of the grid of each piece of particles."""
    total: Any = None
    """Sum of all grids; with one piece the same array."""
    U: Any = None
    """Velocity of the nodes."""
    span: Any = None
    """Boxes of the pieces."""


class Boundary(NamedTuple):
    """Surroundings of the nodes, see grid.py."""

    env: Any
    """Environment, a row for each step."""
    sizes: Any
    """Three sizes for each collider."""


class Constants(NamedTuple):
    """Numbers of a step."""

    h: Any
    """Time step [s]."""
    dx: Any
    """Distance of nodes [m]."""
    skin: Any
    """Width of a collider's skin [m]."""
    floor: Any
    """Mass floor [kg]."""


class Counts(NamedTuple):
    """Numbers of particles, of their pieces, of parts of the nodes, of env entries and of controls."""

    n: Any
    pieces: Any
    parts: Any
    env_size: Any
    controls: Any


@functools.cache
@no_type_check
def types(real: Any) -> SimpleNamespace:
    """Return the types of records, with flat arrays, for kernels."""
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    def part(kind, fields):
        """Return the type of a record with these fields alone; spans, laws and actuators are integers."""
        return record(kind, **{name: ints if name in ("span", "law", "act") else reals for name in fields.split()})

    return SimpleNamespace(
        reals=reals,
        part=part,
        particles=part(Particles, "x v C F q"),
        moved=part(Particles, "x v C"),
        stressed=part(Particles, "x v C tau m V"),
        material=part(Material, "mass volume c law act fibre control"),
        material_sums=part(Material, "mass volume c"),
        dmaterial=part(Material, "mass volume c control"),
        boundary=part(Boundary, "env sizes"),
        constants=record(Constants, real),
        counts=record(Counts, ti.i32),
    )


def flatten(values: Any) -> Array:
    """Flatten an array or Tensor in memory order, copying only if it is not contiguous."""
    array = values.data if isinstance(values, Tensor) else values
    return np.ascontiguousarray(array).reshape(-1)


def flatten_nonempty(values: Any) -> Array:
    """Flatten an array, or replace an empty one by a single zero, as kernels take no empty arrays."""
    array = flatten(values)
    return array if array.size else np.zeros(1, array.dtype)


def empty_like(*values: Any) -> list[Array]:
    """Allocate an array of the same shape and precision for each value."""
    return [np.empty(value.shape, value.dtype) for value in values]
