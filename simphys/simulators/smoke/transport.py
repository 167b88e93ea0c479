"""The loops of advection, bound once for each model to extended arrays that are allocated once, on the device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.kernels import device
from simphys.autograd.kernels.calls import Place
from simphys.autograd.kernels.fill import fill
from simphys.autograd.kernels.launch import Kernel
from simphys.simulator import Array
from simphys.substep import Chain, Entries, KernelCall, Launch, Target

from . import extended, maccormack, sampling
from .lattice import Lattice, extended_shape
from .model import Smoke
from .sampling import Form

POINT_US = 0.006
"""Serial cost [us] of one value in a loop."""


def _put(numbers: Array, target: Target) -> None:
    """Set entries of the host, or add to them."""
    own = target.entries.numbers[target.entries.begin :][: numbers.size]
    np.add(own, numbers, out=own) if target.adds else np.copyto(own, numbers)


class Workspace:
    """Flat arrays by name, on the device, allocated on first use."""

    def __init__(self, model: Smoke) -> None:
        self.model, self.size = model, math.prod(extended_shape(model))
        self._arrays: dict[str, Any] = {}

    def get(self, name: str, count: int) -> Any:
        """Return an array of `count` numbers, initially zero."""
        if name not in self._arrays:
            self._arrays[name] = device.device_array((count,))
            fill(self._arrays[name], 0.0)
        return self._arrays[name]

    def clear_beyond(self, target: Target) -> Launch:
        """Launch that sets a velocity to zero, where it has entries beyond the faces of its components."""
        if self.model.faces == self.model.cells:
            return Chain()
        numbers, entries = self.model.dim * math.prod(self.model.faces), target.entries
        put = extended.kernels(runtime.real(), self.model.dim, 1, runtime.settings().on_gpu).put
        return KernelCall(put, self.get("zeros", numbers), numbers, 0, entries.numbers, moving=[(entries, 0)])

    def velocity(self, kind: str = "") -> Any:
        """Return the extended velocity, or its adjoint for kind "adj_", or its tangent for kind "d"."""
        return self.get(f"{kind}u", self.model.dim * self.size)


class Transport:
    """Transport of the fields f of a lattice by the velocity u, with the values at the sides, `given`."""

    def __init__(self, work: Workspace, lattice: Lattice) -> None:
        model = work.model
        self.lattice, self._work = lattice, work
        self._component = lattice.components.start if lattice.is_velocity else 0
        self._corrects = model.advection == "maccormack"
        parallel = runtime.parallel(POINT_US * lattice.fields * lattice.lines * lattice.shape[-1])
        on_gpu, spread = runtime.settings().on_gpu, sampling.SPREAD if parallel else 1
        form = Form(
            runtime.real(), model.dim, model.grid == "staggered", lattice.fields, self._corrects, on_gpu, spread
        )
        self._extends: dict[str, Launch] = {}
        self._rounds = form.rounds(lattice.lines, lattice.shape[-1])
        *strides, of_field = [int(stride) * runtime.real_dtype().itemsize for stride in lattice.strides]
        self._own_shape, self._own_strides = (lattice.fields, *lattice.shape), (of_field, *strides)
        self._sampling, self._maccormack = sampling.kernels(form), maccormack.kernels(form)
        self._loops = extended.kernels(runtime.real(), model.dim, lattice.fields, on_gpu)

    # --- between arrays of an engine and extended ones

    def bring_field(
        self, kind: str, entries: Entries, given: Entries | None = None, extends: bool = True
    ) -> list[Launch]:
        """Launches that copy f, or its tangent, to the extended array, and write its ghosts.

        `given` has the values at the sides; without it, ghosts there do not matter.
        """
        launches = [] if given is None or self._work.model.is_periodic else [self._bind_given(kind, given)]
        launches.append(self._bind_load(entries, self._field(kind), self._component))
        return [*launches, self._extend(kind)] if extends else launches

    def bring_adjoint(self, entries: Entries) -> Launch:
        """Launch that copies the adjoint of the transported fields."""
        return self._bind_load(entries, self._own("g"), 0)

    def take_adjoint(self, target: Target) -> Launch:
        """Launch that copies the adjoint of f, whose ghosts are passed on before."""
        return self._bind_store(self._field("adj_"), self._component, target)

    def take_adj_given(self, target: Target) -> Launch:
        """Launch that copies the adjoint of the values at sides."""
        given, entries = self._given("adj_"), target.entries
        if isinstance(given, np.ndarray):
            return partial(_put, given, target)
        numbers = given, given.shape[0], int(target.adds), entries.numbers
        return KernelCall(self._loops.put, *numbers, moving=[(entries, 0)])

    def clear_adjoints(self) -> list[Launch]:
        """Launches that set the adjoints of f and of the values at sides to zero."""
        fields = [self._clear(self._field("adj_"))]
        return fields if self._work.model.is_periodic else [*fields, self._clear(self._given("adj_"))]

    # --- the scheme

    def forward(self, target: Target) -> Launch:
        """Launch that computes the transported fields."""
        if not self._corrects:
            return self._bind_to(target, self._sampling.sample, ["f", "u"])
        correct = self._bind_to(target, self._maccormack.correct, ["f", "moved", "u"])
        return Chain(self._sample, self._extend_moved, correct)

    @cached_property
    def pull(self) -> Launch:
        """Launch that adds to the adjoints of f, u and of the values at sides."""
        if not self._corrects:
            return self._adj_sample
        moved = self._sample, self._extend_moved
        clear = self._clear(self._own("adj_moved"))
        return Chain(*moved, clear, self._adj_correct, self._adj_extend_moved, self._adj_sample)

    def push(self, target: Target) -> Launch:
        """Launch that computes the tangents of the transported fields, from those of f and u."""
        if not self._corrects:
            return self._bind_to(target, self._sampling.jvp_sample, ["f", "u"], ["df", "du"])
        correct = self._bind_to(target, self._maccormack.jvp_correct, ["f", "moved", "u"], ["df", "dmoved", "du"])
        return Chain(self._jvp_sample, self._sample, self._extend_moved, self._extend_dmoved, correct)

    @cached_property
    def _sample(self) -> Launch:
        return self._bind_to(Target(Entries(self._own("moved"))), self._sampling.sample, ["f", "u"])

    @cached_property
    def _jvp_sample(self) -> Launch:
        target = Target(Entries(self._own("dmoved")))
        return self._bind_to(target, self._sampling.jvp_sample, ["f", "u"], ["df", "du"])

    @cached_property
    def _adj_sample(self) -> Launch:
        arrived = "adj_moved" if self._corrects else "g"
        return self._bind(self._sampling.adj_sample, ["f", "u"], [arrived, "adj_f", "adj_u"])

    @cached_property
    def _adj_correct(self) -> Launch:
        return self._bind(self._maccormack.adj_correct, ["f", "moved", "u"], ["g", "adj_f", "adj_moved", "adj_u"])

    def _extend(self, kind: str) -> Launch:
        """Launch that writes the ghosts of f, or of its tangent."""
        if kind not in self._extends:
            self._extends[kind] = self._bind_extend(kind, self._field(kind), self._component)
        return self._extends[kind]

    @cached_property
    def _extend_moved(self) -> Launch:
        return self._bind_extend("", self._own("moved"))

    @cached_property
    def _extend_dmoved(self) -> Launch:
        return self._bind_extend("d", self._own("dmoved"))

    @cached_property
    def _adj_extend_moved(self) -> Launch:
        return self._bind_adj_extend(self._own("adj_moved"))

    @cached_property
    def pass_on_ghosts(self) -> Launch:
        """Launch that adds the adjoints of the ghosts of f to those of its values, and of the values at sides."""
        return self._bind_adj_extend(self._field("adj_"), self._component)

    # --- arrays

    def _field(self, kind: str) -> Any:
        """Return the array with f, its adjoint or its tangent; for a component of the velocity, that of all."""
        return self._work.velocity(kind) if self.lattice.is_velocity else self._own(f"{kind}smoke")

    def _own(self, name: str) -> Any:
        """Return an array of the fields; transports with the same number of fields share it."""
        fields = self.lattice.fields
        return self._work.get(f"{name} {fields}", fields * self._work.size)

    def _given(self, kind: str) -> Any:
        """Return the values at sides, their adjoint or their tangent: [2 dim, dim] of a velocity, [2 dim] of smoke."""
        dim = self._work.model.dim
        if self.lattice.is_velocity:
            return self._work.get(f"{kind}boundary_velocity", 2 * dim * dim)
        return self._work.get(f"{kind}boundary_smoke", 2 * dim)

    # --- launches

    def _bind(
        self, loop: Kernel, read: Sequence[str], rest: Sequence[str], *more: Any, moving: Sequence[Place] = ()
    ) -> Launch:
        """Call of a loop with the arrays `read`, the locations of points, and the arrays `rest` and more."""
        model = self._work.model
        points = self._to_device("places"), self._to_device("frame"), self._rounds, model.dt / model.spacing
        arrays = [[self._array(name) for name in names] for names in (read, rest)]
        return KernelCall(loop, *arrays[0], *points, *arrays[1], *more, moving=moving)

    def _bind_to(self, target: Target, loop: Kernel, read: Sequence[str], rest: Sequence[str] = ()) -> Launch:
        """Call of a loop whose last array, without ghosts or with them, is set: a target, from its first entry on."""
        entries = target.entries
        return self._bind(loop, read, rest, entries.numbers, moving=[(entries, self._begin)])

    def _clear(self, array: Any) -> Launch:
        """Launch that sets an array to zero."""
        if isinstance(array, np.ndarray):
            return partial(array.fill, 0.0)
        return KernelCall(self._loops.clear, array.shape[0], array)

    def _array(self, name: str) -> Any:
        if name in ("u", "adj_u", "du"):
            return self._work.velocity(name[:-1])
        return self._field(name[:-1]) if name in ("f", "adj_f", "df") else self._own(name)

    def _bind_load(self, entries: Entries, array: Any, component: int) -> Launch:
        if isinstance(array, np.ndarray):  # NumPy copies rows faster than a kernel, whose stores are not wide
            inside = self._inside(array, component)

            def copy() -> None:
                inside[...] = self._own_view(entries)

            return copy
        places = self._to_device("places"), math.prod(self.lattice.shape)
        given = entries.numbers, *places, component, array
        return KernelCall(self._loops.load, *given, moving=[(entries, self._begin)])

    def _bind_store(self, array: Any, component: int, target: Target) -> Launch:
        entries = target.entries
        if isinstance(array, np.ndarray):
            inside = self._inside(array, component)

            def copy() -> None:
                own = self._own_view(entries)
                np.add(own, inside, out=own) if target.adds else np.copyto(own, inside)

            return copy
        places = self._to_device("places"), math.prod(self.lattice.shape)
        given = array, component, *places, int(target.adds), entries.numbers
        return KernelCall(self._loops.store, *given, moving=[(entries, self._begin)])

    def _bind_given(self, kind: str, given: Entries) -> Launch:
        array = self._given(kind)
        if isinstance(array, np.ndarray):
            return lambda: np.copyto(array, given.numbers[given.begin : given.begin + array.size])
        return KernelCall(self._loops.take, given.numbers, array.shape[0], array, moving=[(given, 0)])

    def _bind_extend(self, kind: str, array: Any, component: int = 0) -> Launch:
        begin = component * self._work.size
        return KernelCall(self._loops.extend, *self._ghosts, self._given(kind), begin, array)

    def _bind_adj_extend(self, array: Any, component: int = 0) -> Launch:
        begin = component * self._work.size
        return KernelCall(self._loops.adj_extend, *self._ghosts, begin, self._given("adj_"), array)

    def _inside(self, array: Array, component: int) -> Array:
        """View of the values of the fields, from a component on, in an extended array of the host."""
        lattice = self.lattice
        extended: Array = array.reshape(-1, *lattice.padded)[component : component + lattice.fields][lattice.inside]
        return extended

    def _own_view(self, entries: Entries) -> Array:
        """View of these values in an array of the host without ghosts."""
        numbers, begin = entries.numbers, entries.begin + self._begin
        return np.ndarray(self._own_shape, numbers.dtype, numbers, begin * numbers.itemsize, self._own_strides)

    @cached_property
    def _ghosts(self) -> tuple[Any, ...]:
        """The table of ghosts, and their number along each axis, 0 for missing ones."""
        counts = [int(count) for count in np.diff(self.lattice.ends)]
        return self._to_device("table"), *counts, *[0] * (3 - len(counts))

    @cached_property
    def _begin(self) -> int:
        """First number of the fields in an array without ghosts."""
        return self._component * int(self.lattice.strides[-1])

    def _to_device(self, name: str) -> Any:
        return device.to_device(getattr(self.lattice, name))
