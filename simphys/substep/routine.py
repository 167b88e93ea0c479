"""Routines: sub-steps written as functions over named arrays, for physics that is a search or an iteration.

A routine is three functions of the compiler, for one batch member:

    forward(model, x)             computes the results and the tape
    adjoint(model, x, adj_x)      adds to the adjoints of the inputs
    tangent(model, x, dx)         computes the tangents of the results

Without a tangent, that of the forward function follows from its source (numerics/forward_arrays.py). Functions take
records of flat arrays of numbers by name: `x` has the inputs, the results, the tape and the workspace, adj_x and dx
have what varies among them; `x.place.width` is the length of its rows. `model` has counts, numbers and arrays of the
model, and what is `Static`, such as dimensions. The tape is what the forward function leaves for the others; workspace
has any values at first. The adjoints of results may be overwritten. An array without elements is never read: any other
one stands for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.errors import InputError, MissingJvp
from simphys.autograd.kernels.runtime import ti
from simphys.numerics.assigned_anew import require_kept_vectors
from simphys.numerics.forward_arrays import Fixed
from simphys.numerics.forward_mode import derive
from simphys.numerics.forward_rules import Underivable
from simphys.numerics.outside import Outside, is_of_user
from simphys.simulator import Shape

from .action import Access, Action, Slot
from .function import declare
from .pattern import Pattern, Source
from .program import WHOLE, Domain, ElementView, Op, Value, arrays_of
from .relation import cached
from .routine_text import Constants, Names, Packed, name_function, pack, write_arrays, write_model, write_zeros
from .scope import Scope, adjoint_slot, hidden
from .site import Site


class Functions(NamedTuple):
    """Functions of a routine, for the compiler."""

    forward: Any
    adjoint: Any
    tangent: Any = None
    """None for the one that follows from the forward function."""


class Fields(NamedTuple):
    """Names of the arrays of a routine."""

    given: Names
    """Inputs, in the order in which the Function takes them."""
    results: Names
    tape: Names = ()
    """Arrays that the forward function leaves for the adjoint and the tangent."""
    work: Names = ()
    """Arrays without meaning outside a call."""
    moving: Names = ()
    """Arrays of tape and workspace that have room for their adjoints and tangents, too, as something that moves and is
    read needs it."""
    choices: Names = ()
    """Inputs and results that no gradient flows to."""
    numbers: Names = ()
    """Constant numbers that the Function takes before the inputs; they are among those of the model."""


class Setting(NamedTuple):
    """Properties that the routines of a simulator have in common."""

    shapes: Callable[[Any], Mapping[str, Shape]]
    """Shape of each array by name, for a model."""
    constants: Callable[[Any], Constants]
    """Constants of a model that its routines may read."""


def routine(
    name: str,
    functions: Functions,
    arrays: Fields,
    setting: Setting,
    *,
    of_model: Names = (),
) -> Any:
    """Declare a sub-step by its functions; `of_model` names the constants that they read.

    Returns a Function, to be applied to the model, the numbers and the inputs.
    """
    return declare(Routine(name, functions, arrays, setting, of_model))


class Routine(Pattern):
    """The pattern of `routine`."""

    is_serial = is_complex = True
    reads_results = True

    def __init__(self, name: str, functions: Functions, arrays: Fields, setting: Setting, of_model: Names) -> None:
        self.name, self.source, self.over = name, f"Routine({name})", ""
        self.element: Any = SimpleNamespace(name=name)
        numbers = {number: Source("constant", number) for number in arrays.numbers}
        given = {field: Source("own", field) for field in arrays.given}
        self.take_arrays(numbers | given, dict.fromkeys(arrays.results, (0,)))
        self.varying = tuple([field for field in arrays.given if field not in arrays.choices])
        self.hidden_results = len(arrays.tape)
        self.fixed_results = tuple([n for n, result in enumerate(arrays.results) if result in arrays.choices])
        self._all_names = (*arrays.given, *arrays.results, *arrays.tape, *arrays.work)
        self._require(arrays.choices, (*arrays.given, *arrays.results), "is an input or a result", "Name one.")
        self._require(arrays.moving, (*arrays.tape, *arrays.work), "is on the tape or in the workspace", "Name one.")
        twice = {name for name in self._all_names if self._all_names.count(name) > 1}
        self._require(tuple(twice), (), "has one meaning", "Give the other array another name.")
        self._functions, self._arrays, self._setting = functions, arrays, setting
        self._of_model, self._repeats = of_model, functions.tangent is None

    def _require(self, names: Names, known: Collection[str], constraint: str, remedy: str) -> None:
        """Raise InputError for a name that is not among the known ones."""
        for name in names:
            if name not in known:
                raise InputError(self.source, f"{name} {constraint}", "no such array", remedy)

    def require_tangent(self) -> None:
        if isinstance(self.tangent_function, Underivable):
            reason = f"{self.source} has no tangent: {self.tangent_function.place}: {self.tangent_function.reason}."
            raise MissingJvp(f"{reason} Pass one in Functions, or use reverse mode.")

    @cached_property
    def tangent_function(self) -> Any:
        """The tangent function, or why none follows from the forward function."""
        if self._functions.tangent is not None:
            return self._functions.tangent
        arrays, forward = self._arrays, self._functions.forward
        fixed = Fixed({*arrays.choices, *arrays.tape, *arrays.work} - {*arrays.moving})
        try:
            found = derive(forward, [list(inspect.signature(inspect.unwrap(forward)).parameters)[1]], fixed)
            fixed.require_unread()
        except Underivable as error:
            return error
        return ti.func(found)

    def cost_us(self, op: Op) -> float:
        return 0.0  # it runs on one thread

    def count_rounds(self, op: Op) -> int:
        """Estimate a round for each number of its arrays."""
        return sum([int(np.prod(op.extra.shapes[name])) for name in self._all_names])

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        if self.outside is None and is_of_user(self._functions.forward):  # all names of its module are known by now
            self.outside = Outside(*filter(None, self._functions), name=self.name)
        for each in filter(None, self._functions):
            require_kept_vectors(each)
        shapes = self._setting.shapes(model)
        self._require(self._all_names, shapes, "has a shape", "Add it to the shapes.")
        for name in self._arrays.given:
            value = inputs[name]
            assert isinstance(value, Value), "an array"
            if value.size != int(np.prod(shapes[name])):
                constraint = f"{name} has the shape {list(shapes[name])}"
                raise InputError(self.name, constraint, str(list(value.shape)), "Correct the array.")
        views = {n: v.view or _view(n, v.shape) for n, v in arrays_of(inputs).items()}
        made = [Value(n, shapes[n], "local", _view(n, shapes[n])) for n in (*self._arrays.results, *self._arrays.tape)]
        own = tuple([shapes[n] for n in (*self._arrays.results, *self._arrays.tape, *self._arrays.work)])
        self._require(self._of_model, self._setting.constants(model), "is a constant of the model", "Add it to these.")
        key = f"constants of {self.name}, {runtime.real_dtype()}"
        constants = cached(model, key, lambda: pack(model, self._setting.constants(model), self._of_model))
        variant, extra = (tuple(constants.static.items()), own), _Extra(constants, shapes)
        return Op(self, inputs, WHOLE, views, tuple(made), constants.arrays, variant=variant, extra=extra)

    def arrange(self, op: Op) -> None:
        for value in (*op.values(), *op.outputs):
            value.is_flat = True

    # --- the three passes

    def forward(self, op: Op, scope: Scope) -> None:
        slots = [Slot("value", value) for value in op.outputs]
        if all([slot in scope.frozen for slot in slots]):
            return
        names = (*self._arrays.results, *self._arrays.tape)
        made = {n: _spare(op, slot) if slot in scope.frozen else slot for n, slot in zip(names, slots, strict=True)}
        made |= {n: self._make_hidden(op, n, "value") for n in self._arrays.work}
        scope.started |= set(made.values())
        self._append(op, scope, "forward", [(self._given(op), made)])

    def adjoint(self, op: Op, scope: Scope) -> None:
        arrays = self._arrays
        adjoints, cleared = {}, []
        for name in self.varying:
            value = op.array(name)
            if not scope.wants(value):
                adjoints[name] = self._make_hidden(op, name, "adjoint")
                continue
            adjoints[name] = adjoint_slot(value)
            if not scope.begin(adjoints[name], op.views[name], "own"):
                cleared.append(adjoints[name])
        for name, value in zip(arrays.results, op.outputs, strict=False):
            if name in arrays.choices:
                continue
            slot = Slot("adjoint", value)
            if not scope.has_adjoint(value):
                slot = self._make_hidden(op, name, "adjoint")
                cleared.append(slot)
            adjoints[name] = slot
        adjoints |= {name: self._make_hidden(op, name, "adjoint") for name in arrays.moving}
        values = self._given(op), self._made(op) | {n: self._make_hidden(op, n, "value") for n in arrays.work}
        self._append(op, scope, "adjoint", [values, ({}, adjoints)], cleared)

    def tangent(self, op: Op, scope: Scope) -> None:
        arrays = self._arrays
        given, cleared = {}, []
        for name in self.varying:
            if scope.moves(op.array(name)):
                given[name] = Slot("tangent", op.array(name))
            else:
                given[name] = self._make_hidden(op, name, "tangent")
                cleared.append(given[name])
        made = {n: Slot("tangent", v) for n, v in zip(arrays.results, op.outputs, strict=False)}
        scope.started |= set(made.values())
        made = {n: slot for n, slot in made.items() if n not in arrays.choices}
        made |= {n: self._make_hidden(op, n, "tangent") for n in arrays.moving}
        again = {n: _spare(op, slot) for n, slot in self._made(op).items()} if self._repeats else {}
        again |= {n: self._make_hidden(op, n, "value") for n in arrays.work}
        values = self._given(op) | ({} if self._repeats else self._made(op)), again
        self._append(op, scope, "tangent", [values, (given, made)], cleared)

    # --- parts

    def _given(self, op: Op) -> dict[str, Slot]:
        return {n: Slot("value", op.array(n)) for n in self._arrays.given}

    def _made(self, op: Op) -> dict[str, Slot]:
        names = (*self._arrays.results, *self._arrays.tape)
        return {n: Slot("value", v) for n, v in zip(names, op.outputs, strict=True)}

    def _make_hidden(self, op: Op, name: str, kind: Any) -> Slot:
        """Make a slot for an array that only this routine knows."""
        shape = op.extra.shapes[name]
        view = _view(name, shape)
        value = Value(f"{op.outputs[0].name}_{name}", shape, "local", view, is_flat=True)
        return Slot(kind, value)

    def _append(
        self,
        op: Op,
        scope: Scope,
        pass_name: str,
        records: list[tuple[dict[str, Slot], dict[str, Slot]]],
        cleared: list[Slot] | None = None,
    ) -> None:
        """Append a call of a function; `records` have slots that it reads, and others that it reads and writes."""
        call = self.tangent_function if pass_name == "tangent" else getattr(self._functions, pass_name)
        known = {*op.values(), *(() if pass_name == "forward" else op.outputs)}
        reads: dict[Slot, Access] = {
            s: "other" for pair in records for part in pair for s in part.values() if s.value in known
        }
        writes: dict[Slot, Access] = {s: "other" for _, made in records for s in made.values()}
        writes |= dict.fromkeys(cleared or [], "other")
        reads = {slot: access for slot, access in reads.items() if slot.value.size}
        writes = {slot: access for slot, access in writes.items() if slot.value.size}

        def emit(site: Site) -> None:
            if self.outside is not None:
                self.outside.require_same()
            for slot in cleared or []:
                write_zeros(site, slot)
            stand_in = next(iter({**reads, **writes}))
            arguments = [write_model(site, op, scope, op.extra.constants, self._arrays.numbers)]
            arguments += [write_arrays(site, scope, *pair, stand_in, op.extra.shapes) for pair in records]
            site.line(f"{name_function(scope, f'{self.name}_{pass_name}', call)}({', '.join(arguments)})")

        scope.add(Action(WHOLE, emit, reads, writes, is_long=True))


class _Extra(NamedTuple):
    """Facts of a model that an application of a routine needs again."""

    constants: Packed
    shapes: Mapping[str, Shape]


def _view(name: str, shape: Shape) -> ElementView:
    """View of an array, by its first axis."""
    if not shape:
        return ElementView(WHOLE, ())
    if len(shape) > 2:
        return ElementView(Domain(f"{name}_entries", int(np.prod(shape))), ())
    return ElementView(Domain(f"{name}_rows", shape[0]), shape[1:])


def _spare(op: Op, slot: Slot) -> Slot:
    """Make a slot for a result that is computed again, where its own numbers stay."""
    value = slot.value
    return Slot(
        slot.kind, hidden(f"{value.name}_again", Domain(f"{value.name}_entries", value.size), ElementView(WHOLE, ()))
    )
