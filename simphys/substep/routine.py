"""Routines: sub-steps written as functions over named arrays, for physics that is a search or an iteration.

A routine is three functions of the compiler, for one batch member:

    forward(model, x)             computes the results and the tape
    adjoint(model, x, adj_x)      adds to the adjoints of the inputs
    tangent(model, x, dx)         computes the tangents of the results

They take records of flat arrays of numbers by name: `x` has the inputs, the results, the tape and the workspace, adj_x
and dx have what varies among them. `model` has counts, numbers and arrays of the model. The tape is what the forward
function leaves for the others; workspace has any values at first. The adjoints of results may be overwritten.

The functions come from a factory, as they depend on precision, on dimensions and on features of the model. An array
without elements is never read: any other one stands for it.
"""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable, Hashable, Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.errors import InputError
from simphys.autograd.kernels.records import View as Region
from simphys.simulator import Array, Shape

from .action import Access, Action, Site, Slot, size_name
from .function import declare
from .pattern import Pattern, Source
from .program import WHOLE, Domain, Op, Value, View
from .relation import cached
from .scope import Scope, adjoint_slot, hidden

Names = tuple[str, ...]
Constants = Mapping[str, Any]
"""Integers, numbers and arrays by name, and mappings of such."""


class Arrays(NamedTuple):
    """Names of the arrays of a routine."""

    given: Names
    """Inputs, in the order in which the Function takes them."""
    results: Names
    tape: Names = ()
    """Arrays that the forward function leaves for the adjoint and the tangent."""
    work: Names = ()
    """Arrays without meaning outside a call."""
    moving: Names = ()
    """Arrays of tape and workspace that have room for their adjoints and tangents, too."""
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
    functions: Callable[..., SimpleNamespace],
    arrays: Arrays,
    setting: Setting,
    *,
    of_model: Names = (),
    choose: Callable[[Any], tuple[Hashable, ...]] = lambda model: (model.dim,),
    repeats: bool = False,
) -> Any:
    """Declare a sub-step by its functions: functions(real, *choices) has `forward`, `adjoint` and `tangent`.

    - `of_model`: names of the constants that the functions read.
    - `choose`: what the functions depend on, apart from the precision.
    - `repeats`: True if the tangent function computes tape and results again, and begins with nothing.

    Returns a Function, to be applied to the model, the numbers and the inputs.
    """
    return declare(Routine(name, functions, arrays, setting, of_model=of_model, choose=choose, repeats=repeats))


class Routine(Pattern):
    """The pattern of `routine`."""

    is_serial = is_complex = True
    reads_results = True

    def __init__(
        self,
        name: str,
        functions: Callable[..., SimpleNamespace],
        arrays: Arrays,
        setting: Setting,
        *,
        of_model: Names,
        choose: Callable[[Any], tuple[Hashable, ...]],
        repeats: bool,
    ) -> None:
        self.name, self.over = name, ""
        self.source = f"Routine({name})"
        self.element: Any = SimpleNamespace(name=name, tangent=functions)
        self.sources = {number: Source("constant", number) for number in arrays.numbers}
        self.sources |= {field: Source("fixed" if field in arrays.choices else "own", field) for field in arrays.given}
        self.arguments = tuple(self.sources)
        self.places = tuple(range(len(self.arguments)))
        self.varying = tuple([field for field in arrays.given if field not in arrays.choices])
        self.results = dict.fromkeys(arrays.results, (0,))
        self.hidden_results = len(arrays.tape)
        self.fixed_results = tuple([n for n, result in enumerate(arrays.results) if result in arrays.choices])
        self._functions, self._arrays, self._setting = functions, arrays, setting
        self._of_model, self._choose, self._repeats = of_model, choose, repeats

    def cost_us(self, op: Op) -> float:
        return 0.0  # it runs on one thread

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        shapes = self._setting.shapes(model)
        for name in self._arrays.given:
            value = inputs[name]
            assert isinstance(value, Value), "an array"
            if value.size != int(np.prod(shapes[name])):
                constraint = f"{name} has the shape {list(shapes[name])}"
                raise InputError(self.name, constraint, str(list(value.shape)), "Correct the array.")
        views = {n: v.view or _view(n, v.shape) for n, v in inputs.items() if isinstance(v, Value)}
        made = [Value(n, shapes[n], "local", _view(n, shapes[n])) for n in (*self._arrays.results, *self._arrays.tape)]
        own = tuple([shapes[n] for n in (*self._arrays.results, *self._arrays.tape, *self._arrays.work)])
        op = Op(self, inputs, WHOLE, views, tuple(made), variant=(self._choose(model), own))
        key = f"constants of {self.name}, {runtime.real_dtype()}"
        constants = cached(model, key, lambda: _pack(model, self._setting.constants(model), self._of_model))
        op.relations, op.extra = constants.arrays, _Extra(constants, shapes, self._choose(model))
        return op

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
            value = op.inputs[name]
            assert isinstance(value, Value), "an array"
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
            value = op.inputs[name]
            if isinstance(value, Value) and scope.moves(value):
                given[name] = Slot("tangent", value)
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
        return {n: Slot("value", v) for n in self._arrays.given if isinstance(v := op.inputs[n], Value)}

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
        call = getattr(self._functions(runtime.real(), *op.extra.choices), pass_name)
        known = {*op.values(), *(() if pass_name == "forward" else op.outputs)}
        reads: dict[Slot, Access] = {
            s: "other" for pair in records for part in pair for s in part.values() if s.value in known
        }
        writes: dict[Slot, Access] = {s: "other" for _, made in records for s in made.values()}
        writes |= dict.fromkeys(cleared or [], "other")
        reads = {slot: access for slot, access in reads.items() if slot.value.size}
        writes = {slot: access for slot, access in writes.items() if slot.value.size}

        def emit(site: Site) -> None:
            for slot in cleared or []:
                if slot.value.size:
                    place = site.place(slot)
                    with site.block(f"for k in range({_length(slot.value)}):"):
                        site.line(f"{place.array}[{place.offset} + k] = 0.0")
            stand_in = next(iter({**reads, **writes}))
            arguments = [self._model_text(op, scope, site)]
            for given, made in records:
                parts = [_region(site, slot, stand_in, word) for part, word in ((given, "Region"), (made, "Target"))
                         for slot in part.values()]  # fmt: skip
                kind = _name_function(scope, "Arrays", _record_type((*given, *made)))
                arguments.append(site.assign("x", f"ti.static({kind}({', '.join(parts)}))"))
            scope.functions |= {"Region": Region, "Target": Region}
            site.line(f"{_name_function(scope, f'{self.name}_{pass_name}', call)}({', '.join(arguments)})")

        scope.add(Action(WHOLE, emit, reads, writes, is_long=True))

    def _model_text(self, op: Op, scope: Scope, site: Site) -> str:
        """Write the record of the model's constants; returns its name."""
        constants: _Packed = op.extra.constants
        words = {path: f"{scope.relation(op, array)}[{k}]" for array, paths in constants.scalars.items()
                 for k, path in enumerate(paths)}  # fmt: skip
        words = {path: site.assign(path.replace(".", "_"), word) for path, word in words.items()}
        words |= {
            path: f"Region({scope.relation(op, path)}, 0)" for path in op.relations if path not in constants.scalars
        }
        words |= {name: scope.number(op, name) for name in self._arrays.numbers}

        def write(tree: Constants, prefix: str) -> str:
            parts = [
                write(part, f"{prefix}{name}.") if isinstance(part, Mapping) else words[f"{prefix}{name}"]
                for name, part in tree.items()
            ]
            return f"{_name_function(scope, 'Model', _record_type(tuple(tree)))}({', '.join(parts)})"

        tree = {**constants.tree, **dict.fromkeys(self._arrays.numbers)}
        return site.assign("model", f"ti.static({write(tree, '')})")


class _Extra(NamedTuple):
    """Facts of a model that an application of a routine needs again."""

    constants: _Packed
    shapes: Mapping[str, Shape]
    choices: tuple[Hashable, ...]


class _Packed(NamedTuple):
    """Constants as arrays: the integers in one, the numbers in another, and the rest one by one."""

    tree: Constants
    arrays: dict[str, Array]
    scalars: dict[str, list[str]]
    """Paths of the scalars in the arrays `counts` and `numbers`."""


def _pack(model: Any, constants: Constants, names: Names) -> _Packed:
    tree = {name: constants[name] for name in names}
    leaves = dict(_leaves(tree, ""))
    real = runtime.real_dtype()
    scalars = {
        "counts": [path for path, value in leaves.items() if isinstance(value, int | np.integer)],
        "numbers": [path for path, value in leaves.items() if isinstance(value, float | np.floating)],
    }
    scalars = {name: paths for name, paths in scalars.items() if paths}
    kinds: dict[str, Any] = {"counts": np.int32, "numbers": real}
    arrays = {name: np.array([leaves[path] for path in paths], kinds[name]) for name, paths in scalars.items()}
    for path, value in leaves.items():
        if isinstance(value, np.ndarray):
            kind = np.int32 if value.dtype.kind in "iub" else real
            arrays[path] = cached(model, f"{path}, {np.dtype(kind)}", functools.partial(_flatten, value, kind))
    return _Packed(tree, arrays, scalars)


def _flatten(array: Array, kind: Any) -> Array:
    flat = np.ascontiguousarray(array, kind).reshape(-1)
    return flat if flat.size else np.zeros(1, kind)


def _leaves(tree: Constants, prefix: str) -> Any:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


@functools.cache
def _record_type(names: Names) -> Any:
    return namedtuple("Record", names)


def _name_function(scope: Scope, wanted: str, function: Any) -> str:
    """Name a function or a record's type in the text."""
    name = f"fn_{wanted}"
    while scope.functions.setdefault(name, function) is not function:
        name += "_"
    return name


def _view(name: str, shape: Shape) -> View:
    """View of an array, by its first axis."""
    if not shape:
        return View(WHOLE, ())
    if len(shape) > 2:
        return View(Domain(f"{name}_entries", int(np.prod(shape))), ())
    return View(Domain(f"{name}_rows", shape[0]), shape[1:])


def _spare(op: Op, slot: Slot) -> Slot:
    """Make a slot for a result that is computed again, where its own numbers stay."""
    value = slot.value
    return Slot(slot.kind, hidden(f"{value.name}_again", Domain(f"{value.name}_entries", value.size), View(WHOLE, ())))


def _length(value: Value) -> str:
    """Expression of the number of entries of an array."""
    view = value.view
    assert view is not None, "a routine has seen it"
    if view.domain == WHOLE:
        return str(view.components)
    return f"{size_name(view.domain)} * {view.components}"


def _region(site: Site, slot: Slot, stand_in: Slot, word: str) -> str:
    """Expression of an array's place in memory, as a region that is read, or read and written."""
    if not slot.value.size:
        slot, word = stand_in, "Region"
    place = site.place(slot)
    return f"{word}({place.array}, {place.offset})"
