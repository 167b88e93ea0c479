"""The loops of advection, bound once for each model to extended arrays that are allocated once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.kernels.launch import Kernel
from simphys.simulator import Array

from . import maccormack, sampling
from .lattice import Lattice, extended_shape
from .model import Smoke

POINT_US = 0.006
"""Serial cost [us] of one value in a loop."""


class ArrayPool:
    """Extended arrays by name, allocated on first use."""

    def __init__(self, model: Smoke) -> None:
        self.model = model
        self._shape = extended_shape(model)
        self._arrays: dict[str, Array] = {}

    def get(self, name: str, fields: int) -> Array:
        """Return an array [fields, *extended_shape], initially zero."""
        if name not in self._arrays:
            self._arrays[name] = np.zeros((fields, *self._shape), runtime.real_dtype())
        return self._arrays[name]

    def get_velocity(self, kind: str = "") -> Array:
        """Return the velocity, or its adjoint for kind "adj_", or its tangent for kind "d"."""
        return self.get(f"{kind}u", self.model.dim)


class Transport:
    """Transport of the fields f of a lattice by the velocity u. `given` [fields, 2 dim] holds the values at sides."""

    def __init__(self, pool: ArrayPool, lattice: Lattice, name: str) -> None:
        model = pool.model
        self.lattice, self._pool, self._name = lattice, pool, name
        self._corrects = model.advection == "maccormack"
        self._h = model.dt / model.spacing
        parallel = runtime.parallel(POINT_US * lattice.fields * lattice.lines * lattice.shape[-1])
        kind = runtime.real(), model.dim, model.grid == "staggered", lattice.fields, parallel
        self._sampling, self._maccormack = sampling.kernels(*kind), maccormack.kernels(*kind)

    def get_field(self, kind: str = "") -> Array:
        """Return f, its adjoint or its tangent; for a transport of the velocity, a part of that array."""
        whole = self._pool.get_velocity(kind) if self._name == "u" else self._work_array(kind + self._name)
        return whole[self.lattice.components]

    def forward(self, given: Array) -> Array:
        """Compute the transported fields, whose ghosts are undefined."""
        self._sample()
        if not self._corrects:
            return self._work_array("moved")
        self.lattice.extend(self._work_array("moved"), given)
        self._correct()
        return self._work_array("corrected")

    def pull(self, adj: Array, given: Array, adj_given: Array) -> None:
        """Add to the adjoints of f and u in the space, and to adj_given, from `adj` without ghosts."""
        lattice = self.lattice
        self._work_array("g")[lattice.inside] = adj[lattice.own]
        if self._corrects:
            self._sample()
            lattice.extend(self._work_array("moved"), given)
            self._work_array("adj_moved").fill(0)
            self._adj_correct()
            lattice.adj_extend(self._work_array("adj_moved"), adj_given)
        self._adj_sample()

    def push(self, given: Array, dgiven: Array) -> Array:
        """Compute the tangent of the transported fields, from those of f and u in the space."""
        self._jvp_sample()
        if not self._corrects:
            return self._work_array("dmoved")
        self._sample()
        self.lattice.extend(self._work_array("moved"), given)
        self.lattice.extend(self._work_array("dmoved"), dgiven)
        self._jvp_correct()
        return self._work_array("dcorrected")

    @cached_property
    def _sample(self) -> Callable[..., None]:
        return self._bind(self._sampling.sample, ["f", "u"], ["moved"])

    @cached_property
    def _adj_sample(self) -> Callable[..., None]:
        arrived = "adj_moved" if self._corrects else "g"
        return self._bind(self._sampling.adj_sample, ["f", "u"], [arrived, "adj_f", "adj_u"])

    @cached_property
    def _jvp_sample(self) -> Callable[..., None]:
        return self._bind(self._sampling.jvp_sample, ["f", "u"], ["df", "du", "dmoved"])

    @cached_property
    def _correct(self) -> Callable[..., None]:
        return self._bind(self._maccormack.correct, ["f", "moved", "u"], ["corrected"])

    @cached_property
    def _adj_correct(self) -> Callable[..., None]:
        return self._bind(self._maccormack.adj_correct, ["f", "moved", "u"], ["g", "adj_f", "adj_moved", "adj_u"])

    @cached_property
    def _jvp_correct(self) -> Callable[..., None]:
        return self._bind(self._maccormack.jvp_correct, ["f", "moved", "u"], ["df", "dmoved", "du", "dcorrected"])

    def _bind(self, loop: Kernel, read: list[str], rest: list[str]) -> Callable[..., None]:
        """Bind a loop to the arrays `read`, the locations of points, and the arrays `rest`, in this order."""
        lattice = self.lattice
        points = lattice.places, lattice.frame, lattice.lines, self._pool.get_velocity()[0].size, self._h
        return loop.bind(*[self._flat(name) for name in read], *points, *[self._flat(name) for name in rest])

    def _flat(self, name: str) -> Array:
        kind = name[:-1]
        if name.endswith("u"):
            return self._pool.get_velocity(kind).reshape(-1)
        return (self.get_field(kind) if name.endswith("f") else self._work_array(name)).reshape(-1)

    def _work_array(self, name: str) -> Array:
        """Return a work array of the fields; transports with the same number of fields share it."""
        return self._pool.get(f"{name} {self.lattice.fields}", self.lattice.fields)
