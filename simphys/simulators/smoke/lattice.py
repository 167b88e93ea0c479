"""The locations of smoke and velocity components, and their ghost values beyond the sides.

Kernels that read neighbours take extended arrays: arrays of `model.faces` entries with one more, a ghost, at each end
of each axis. The value at a side, halfway between the last entry and its ghost, is determined by

    periodic                                               ghost = entry at the other end
    closed, along the wall, without slip; inflow           ghost = 2 given - last      (boundary_velocity or _smoke)
    closed, across the wall, on a collocated grid          ghost = -last
    else (smoke at walls, slip, open)                      ghost = last                  (zero slope)

Along its own axis a component of a staggered grid has entries on the sides themselves; there ghost = last. Axes are
extended one after the other, including the ghosts of previous axes. In the adjoint, each ghost passes its adjoint on to
its source, in reverse order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.numerics.multilinear import UNBOUNDED, Axis
from simphys.simulator import Array, Shape

from .model import Smoke
from .sampling import BLOCK

Index = tuple[Any, ...]


@dataclass(frozen=True)
class Ghost:
    """A layer of ghosts beyond a side: layer = sign * source + 2 given, or layer = sign * source without `given`."""

    layer: Index
    source: Index
    sign: int
    given: Index | None = None
    """Index into the values [fields, 2 dim] at the sides."""


@dataclass(frozen=True, eq=False)
class Lattice:
    """Fields whose values are at the same locations."""

    components: slice
    """Components of velocity among the fields, or the single field of smoke."""
    shape: Shape
    """Number of values along each axis."""
    inside: Index
    """Index of these values in an extended array [fields, *extended_shape]."""
    ghosts: tuple[Ghost, ...]
    padded: Shape
    """Shape of the extended array of one field."""
    strides: tuple[int, ...]
    """Distances between values along each axis in an array without ghosts, and between its fields."""
    frame: Array
    """`Axis` of each axis, flattened."""
    places: Array
    """Integers for each axis: number of values, stride in an extended array, and the steps `up` and `back` between
    entries that are averaged to a staggered velocity (see sampling); then the number of entries in an extended array of
    one field, the first component, and `strides`."""
    is_velocity: bool

    @property
    def fields(self) -> int:
        """Number of fields."""
        return self.components.stop - self.components.start

    @property
    def dim(self) -> int:
        return len(self.shape)

    @property
    def lines(self) -> int:
        """Number of lines of values along the last axis."""
        return math.prod(self.shape[:-1])

    @cached_property
    def table(self) -> Array:
        """The ghosts of all fields in an extended array, axis by axis, flattened; see `extended.GHOST`.

        `given` is in an array [2 dim] for smoke, or [2 dim, dim] for components of a velocity.
        """
        index = np.arange(self.fields * math.prod(self.padded), dtype=np.int32).reshape(self.fields, *self.padded)
        rows = []
        for ghost in self.ghosts:
            layer, source, given = index[ghost.layer].reshape(-1), index[ghost.source].reshape(-1), -1
            if ghost.given is not None:
                field, side = ghost.given
                given = self.dim * side + self.components.start + field if self.is_velocity else side
            rows.append(np.column_stack(np.broadcast_arrays(layer, source, ghost.sign, given)))
        return np.concatenate(rows).astype(np.int32).reshape(-1)

    @cached_property
    def ends(self) -> Array:
        """First row of each axis in `table`, and the number of rows."""
        index, counts = np.empty((self.fields, *self.padded), bool), [0] * self.dim
        for ghost in self.ghosts:
            axis = next(a for a, entry in enumerate(ghost.layer[1:]) if not isinstance(entry, slice))
            counts[axis] += index[ghost.layer].size
        return np.cumsum([0, *counts]).astype(np.int32)


def extended_shape(model: Smoke) -> Shape:
    """Return the shape of the extended array of one field; lines along the last axis hold whole blocks."""
    *others, last = model.faces
    return (*[n + 2 for n in others], -(-last // BLOCK) * BLOCK + 2)


@runtime.cached
def velocity_lattices(model: Smoke) -> tuple[Lattice, ...]:
    """Build one lattice for all components on a collocated grid, or one for each on a staggered grid."""
    if model.grid == "collocated":
        return (_lattice(model, tuple(range(model.dim))),)
    return tuple([_lattice(model, (component,)) for component in range(model.dim)])


@runtime.cached
def smoke_lattice(model: Smoke) -> Lattice:
    """Build the lattice of the cell centres."""
    return _lattice(model, (None,))


def _lattice(model: Smoke, fields: tuple[int | None, ...]) -> Lattice:
    padded, dim, component = extended_shape(model), model.dim, fields[0]
    strides = [math.prod(padded[axis + 1 :]) for axis in range(dim)]
    periodic_axes = [model.boundaries[2 * axis] == "periodic" for axis in range(dim)]
    on_sides = [model.grid == "staggered" and component == axis and not periodic_axes[axis] for axis in range(dim)]
    shape = [cells + on_side for cells, on_side in zip(model.cells, on_sides, strict=True)]
    axes, ghosts = [], []
    for axis, (n, periodic, on_side) in enumerate(zip(shape, periodic_axes, on_sides, strict=True)):
        before, behind = [slice(m + 2) for m in shape[:axis]], [slice(1, m + 1) for m in shape[axis + 1 :]]
        if periodic:
            axes.append(Axis(-UNBOUNDED, UNBOUNDED, n - 1, n, 1 / n))
        else:
            axes.append(Axis(0, n - 1, n - 1) if on_side else Axis(-0.5, n - 0.5, n - 1))
        for side, layer, source in ((2 * axis, 0, n if periodic else 1), (2 * axis + 1, n + 1, 1 if periodic else n)):
            rules = [_rule(model, field, side) for field in fields]
            alike = rules[0] != "given" and len(set(rules)) == 1
            for field, rule in [(slice(None), rules[0])] if alike else enumerate(rules):
                given = (field, side) if rule == "given" else None
                ends = [(field, *before, index, *behind) for index in (layer, source)]
                ghosts.append(Ghost(ends[0], ends[1], 1 if rule == "even" else -1, given))
    up, back = strides, [0] * dim
    if component is not None:
        up = [0 if axis == component else strides[axis] for axis in range(dim)]
        back = [0 if axis == component else -strides[component] for axis in range(dim)]
    entries = model.cells if component is None else model.faces
    own = [math.prod(entries[axis:]) for axis in (*range(1, dim + 1), 0)]
    numbers = math.prod(padded), component or 0, *own
    return Lattice(
        components=slice(0, 1) if component is None else slice(component, component + len(fields)),
        shape=tuple(shape),
        inside=(slice(None), *[slice(1, n + 1) for n in shape]),
        ghosts=tuple(ghosts),
        padded=padded,
        strides=tuple(own),
        frame=np.array(axes, runtime.real_dtype()).reshape(-1),
        places=np.array([*np.transpose([shape, strides, up, back]).flat, *numbers], np.int32),
        is_velocity=component is not None,
    )


def _rule(model: Smoke, component: int | None, side: int) -> str:
    """Return the rule of a ghost: the last entry (even), its negative (odd), or 2 given - last (given)."""
    kind = model.boundaries[side]
    if component is None:
        return "given" if kind == "inflow" else "even"
    if component == side // 2:
        return "odd" if model.grid == "collocated" and kind == "closed" else "even"
    return "given" if kind == "inflow" or (kind == "closed" and not model.slip) else "even"
