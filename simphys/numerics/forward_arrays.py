"""Arrays in forward mode: records and arrays that functions take by reference (`ti.template()`), and views of them.

    x.speed[e] = x.speed[e] - s * x.twist[e]        has the tangent of dx.speed[e] right before it
    add_row(i, s, x.row, x.speed)                   is jvp_add_row(i, s, x.row, x.speed, ds, dx.row, dx.speed)

The tangent of a function that writes arrays writes them, too, beside their tangents, and stands in its place. One that
returns values only reads arrays. Fields of records that are fixed have no tangent, and nothing that moves may be read
there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any

from simphys.autograd.kernels.records import View
from simphys.autograd.kernels.runtime import ti

from .forward_rules import Expressions, Underivable
from .names import resolve
from .places import base_name, list_parts


class Fixed:
    """Fields of records that have no tangent."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names = frozenset(names)
        self.written: set[str] = set()
        """Those that something moving is written to."""
        self.read: set[str] = set()
        """Those that a value is read from."""

    def require_unread(self) -> None:
        """Raise Underivable if something moving is written to one of them and read."""
        for name in self.read & self.written:
            error = Underivable(0, "something that moves is written there, and read")
            error.place = f"{name} has no room for its tangent"
            raise error


class Arrays:
    """Names of a function that stand for arrays, or for records of them."""

    def __init__(self, definition: ast.FunctionDef, known: Mapping[str, Any], fixed: Fixed) -> None:
        self.fixed, self._known = fixed, known
        by_reference = [a.arg for a in definition.args.args if a.annotation and "template" in ast.unparse(a.annotation)]
        self.names = set(by_reference)
        self.statics: set[str] = set()
        """Names of what the compiler knows, which nothing writes."""
        self._sources: dict[str, ast.expr] = {}
        """For each view, the array that it is a part of."""
        for node in [part for part in ast.walk(definition) if isinstance(part, ast.Assign)]:
            targets = list_parts(node.targets[0])
            for target, value in zip(targets, self.split(node.value, len(targets)), strict=False):
                if isinstance(target, ast.Name) and isinstance(value, ast.Call) and self._is(value, ti.static):
                    self.statics.add(target.id)
                    if (source := self.find_source(value)) is not None:
                        self._sources[target.id] = source
        self.names |= self._sources.keys()

    def split(self, value: ast.expr, count: int) -> list[ast.expr]:
        """List the values that are assigned to some targets: one for each, or the only one of a call."""
        if isinstance(value, ast.Tuple) and count > 1:
            return list(value.elts)
        if isinstance(value, ast.Call) and len(value.args) == count > 1 and self._is(value, ti.static):
            return [ast.copy_location(ast.Call(value.func, [part], []), part) for part in value.args]
        return [value]

    def find_source(self, value: ast.expr) -> ast.expr | None:
        """Return the array that a value is a view of, as in ti.static(View(array, start)); None for other values."""
        if isinstance(value, ast.Call) and len(value.args) == 1 and self._is(value, ti.static):
            view = value.args[0]
            return view.args[0] if isinstance(view, ast.Call) and self._is(view, View) else None
        return None

    def holds(self, place: ast.expr) -> bool:
        """True for an entry, or a field, of an array or a record."""
        return isinstance(place, ast.Subscript | ast.Attribute) and base_name(place) in self.names

    def find_fixed(self, place: ast.expr) -> str:
        """Name the fixed field that a place is in; '' if it is in none."""
        while isinstance(place, ast.Subscript | ast.Attribute):
            if isinstance(place, ast.Attribute) and isinstance(place.value, ast.Name) and place.value.id in self.names:
                return place.attr if place.attr in self.fixed.names else ""
            place = place.value
        source = self._sources.get(place.id) if isinstance(place, ast.Name) else None
        return "" if source is None else self.find_fixed(source)

    def note_written(self, place: ast.expr) -> None:
        """Note that something moving is written to a place without a tangent. Errors: Underivable for a whole array."""
        if not (name := self.find_fixed(place)):
            raise Underivable(place.lineno, f"{base_name(place)} stands still, and gets what moves")
        self.fixed.written.add(name)

    def _is(self, call: ast.Call, wanted: Any) -> bool:
        return resolve(call.func, self._known) is wanted


class ArrayExpressions(Expressions):
    """The tangent of each expression of a function with arrays."""

    def __init__(self, arrays: Arrays, *others: Any) -> None:
        super().__init__(*others)
        self._arrays = arrays

    def tangent(self, value: ast.expr) -> str | None:
        if isinstance(value, ast.Name | ast.Attribute) and (name := self._arrays.find_fixed(value)):
            self._arrays.fixed.read.add(name)
            return None
        match value:
            case ast.Attribute(value=ast.Name(id=record), attr=name) if (
                record in self._arrays.names and name != "width"
            ):
                found = super().tangent(value.value)
                return found and f"{found}.{name}"
            case ast.Call() if (source := self._arrays.find_source(value)) is not None:
                found = None if self._arrays.find_fixed(source) else self.tangent(source)
                return found and ast.unparse(value).replace(ast.unparse(source), found, 1)
        return super().tangent(value)
