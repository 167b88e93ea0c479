"""Text of calls of routines: records of arrays and of the model's constants, made in a kernel."""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.kernels.records import View
from simphys.simulator import Array, Shape

from .action import Slot
from .expressions import size_name
from .program import WHOLE, Op, Value
from .relation import cached
from .scope import Scope
from .site import Site

Names = tuple[str, ...]
Constants = Mapping[str, Any]
"""Integers, numbers, arrays and Static by name, and mappings of such."""


class Static(NamedTuple):
    """A constant that is known when functions are compiled: a number, a truth value, or a tuple of such."""

    value: Hashable


class Region(View):
    """An array of a routine, with the length of its rows."""

    __slots__ = ()

    def __new__(cls, array: Any, start: Any, width: int = 1) -> Region:
        return tuple.__new__(cls, (*View(array, start), width))

    @property
    def width(self) -> int:
        return int(tuple.__getitem__(self, 2))


class Packed(NamedTuple):
    """Constants as arrays: the integers in one, the numbers in another, and the rest one by one."""

    static: dict[str, Hashable]
    tree: Constants
    arrays: dict[str, Array]
    scalars: dict[str, dict[str, int]]
    """Places of the scalars in the arrays `counts` and `numbers`, by path."""


def pack(model: Any, constants: Constants, names: Names) -> Packed:
    """Pack the named constants of a model. All scalars share two arrays, as devices bind few of them."""
    tree = {name: constants[name] for name in names}
    every, real = dict(_leaves(constants, "")), runtime.real_dtype()
    kinds: dict[str, Any] = {"counts": np.int32, "numbers": real}
    scalars: dict[str, dict[str, int]] = {"counts": {}, "numbers": {}}
    arrays: dict[str, Array] = {}
    for path, value in every.items():
        if not isinstance(value, np.ndarray | Static):
            paths = scalars["counts" if isinstance(value, int | np.integer) else "numbers"]
            paths[path] = len(paths)
    for name, paths in scalars.items():
        values = functools.partial(np.array, [every[path] for path in paths], kinds[name])
        arrays[name] = cached(model, f"{name}, {kinds[name]}: {', '.join(paths)}", values)
    for path, value in _leaves(tree, ""):
        if isinstance(value, np.ndarray):
            kind = np.int32 if value.dtype.kind in "iub" else real
            arrays[path] = cached(model, f"{path}, {np.dtype(kind)}", functools.partial(_flatten, value, kind))
    used = {path for path, _ in _leaves(tree, "")}
    scalars = {name: {path: k for path, k in paths.items() if path in used} for name, paths in scalars.items()}
    static = {path: value.value for path, value in _leaves(tree, "") if isinstance(value, Static)}
    return Packed(static, tree, arrays, scalars)


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


def name_function(scope: Scope, wanted: str, function: Any) -> str:
    """Name a function or a record's type in the text."""
    name = f"fn_{wanted}"
    while scope.functions.setdefault(name, function) is not function:
        name += "_"
    return name


def write_model(site: Site, op: Op, scope: Scope, constants: Packed, numbers: Names) -> str:
    """Write the record of the model's constants; returns its name."""
    words = {path: f"{scope.relation(op, array)}[{k}]" for array, paths in constants.scalars.items()
             for path, k in paths.items()}  # fmt: skip
    words = {path: site.assign(path.replace(".", "_"), word) for path, word in words.items()}
    words |= {path: f"Region({scope.relation(op, path)}, 0)" for path in op.relations if path not in constants.scalars}
    words |= {name: scope.number(op, name) for name in numbers}
    words |= {path: repr(value) for path, value in constants.static.items()}

    def write(tree: Constants, prefix: str) -> str:
        parts = [
            write(part, f"{prefix}{name}.") if isinstance(part, Mapping) else words[f"{prefix}{name}"]
            for name, part in tree.items()
        ]
        return f"{name_function(scope, 'Model', _record_type(tuple(tree)))}({', '.join(parts)})"

    tree = {**constants.tree, **dict.fromkeys(numbers)}
    return site.assign("model", f"ti.static({write(tree, '')})")


def write_arrays(
    site: Site,
    scope: Scope,
    read: Mapping[str, Slot],
    written: Mapping[str, Slot],
    other: Slot,
    shapes: Mapping[str, Shape],
) -> str:
    """Write a record of arrays; returns its name. Another array stands for those without elements."""
    scope.functions |= {"Region": Region, "Target": Region}
    parts = [_region(site, slot, other, "Region", shapes[name]) for name, slot in read.items()]
    parts += [_region(site, slot, other, "Target", shapes[name]) for name, slot in written.items()]
    kind = name_function(scope, "Arrays", _record_type((*read, *written)))
    return site.assign("x", f"ti.static({kind}({', '.join(parts)}))")


def write_zeros(site: Site, slot: Slot) -> None:
    """Write the loop that clears an array."""
    if slot.value.size:
        place = site.place(slot)
        with site.block(f"for k in range({_length(slot.value)}):"):
            site.line(f"{place.array}[{place.offset} + k] = 0.0")


def _length(value: Value) -> str:
    """Expression of the number of entries of an array."""
    view = value.elements
    if view.domain == WHOLE:
        return str(view.components)
    return f"{size_name(view.domain)} * {view.components}"


def _region(site: Site, slot: Slot, stand_in: Slot, word: str, shape: Shape) -> str:
    """Expression of an array's place in memory, as a region that is read, or read and written."""
    if not slot.value.size:
        slot, word = stand_in, "Region"
    place = site.place(slot)
    return f"{word}({place.array}, {place.offset}, {shape[-1] if len(shape) > 1 else 1})"
