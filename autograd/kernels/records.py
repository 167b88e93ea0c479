"""Records: named arrays and numbers that a kernel takes as one argument; views: arrays with an offset.

    Springs = record("Springs", k=reals, c=reals, n=ti.i32)

    @kernel
    def relax(s: Springs, h: real):
        for i in range(s.n):
            s.k[i] = s.k[i] * h

    relax(Springs(k=k, c=c, n=3), 0.5)

Where the types depend on precision, a class names the fields once, and the factory of the kernels gives the types:

    class Springs(NamedTuple):
        k: Any
        c: Any

    springs = record(Springs, reals)

The compiler sees a kernel with one parameter a field (flattened.py); a record costs nothing at run time. Inside, it is
passed to functions as one `ti.template()`.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar, cast

from ..errors import InputError
from . import runtime

ti = runtime.ti
F = TypeVar("F", bound=Callable[..., Any])


class RecordType:
    """The type of a record: annotation of a kernel's parameter, and maker of such records."""

    def __init__(self, make: Callable[..., Any], fields: Mapping[str, Any]) -> None:
        self.name = make.__name__
        self.make = make
        self.fields = {name: kind for name, kind in fields.items() if kind is not None}
        """Types of the fields by name: arrays, numbers, records."""
        self._empty = [name for name, kind in fields.items() if kind is None]
        self._empty_positions = [self.names.index(name) for name in self._empty]
        self._plan = [
            (self.names.index(name), name, kind if isinstance(kind, RecordType) else None)
            for name, kind in self.fields.items()
        ]

    def __call__(self, *values: Any, **named: Any) -> Any:
        """Make a record, in Python or inside a kernel."""
        if self._empty:
            given = [*self.names[: len(values)], *named]
            named |= {name: None for name in self._empty if name not in given}
        return self.make(*values, **named)

    @property
    def names(self) -> tuple[str, ...]:
        """All fields, with the empty ones."""
        return tuple(cast(Any, self.make)._fields)

    def __repr__(self) -> str:
        return f"record {self.name}({', '.join(self.fields)})"

    def flatten(self, source: str, value: Any) -> list[Any]:
        """The values of the fields, in order. Errors: InputError, from `source`, for another set of fields."""
        if type(value) is not self.make:
            self._check_names(source, value)
            value = self(**{name: getattr(value, name) for name in value._fields})
        for position in self._empty_positions:
            if value[position] is not None:
                self._check_names(source, value)
        flat = []
        for position, name, kind in self._plan:
            if kind is None:
                flat.append(value[position])
            else:
                flat += kind.flatten(f"{source}.{name}", value[position])
        return flat

    def _check_names(self, source: str, value: Any) -> None:
        """Raise InputError, from `source`, unless a value has the fields of the record."""
        names = getattr(value, "_fields", None)
        if names is None:
            remedy = f"Pass a tuple with these names, such as {self.name}(...)."
            raise InputError(source, f"it is a record with the fields {_list(self.fields)}", repr(value), remedy)
        others = [n for n in names if n not in self.fields and not (n in self._empty and getattr(value, n) is None)]
        missing = [n for n in self.fields if n not in names]
        if missing or others:
            changes = [f"{verb} {_list(which)}" for verb, which in (("add", missing), ("remove", others)) if which]
            constraint = f"record {self.name} has the fields {_list(self.fields)}"
            found = _list([name for name in names if name not in self._empty or name in others])
            raise InputError(source, constraint, found, f"Make it by the record's type: {', '.join(changes)}.")


def record(like: str | type, default: Any = None, /, **types: Any) -> RecordType:
    """The type of a record: of a name and types of fields, or of a NamedTuple and types.

    With a NamedTuple, fields that are not named have the type `default`. A field with the type None stays empty: it is
    None in what is passed, and in the kernel.
    Errors: InputError for a field that the NamedTuple has not, or one without a type.
    """
    if isinstance(like, str):
        return RecordType(namedtuple(like, types), types)
    names = cast(Any, like)._fields
    unknown = [name for name in types if name not in names]
    optional = cast(Any, like)._field_defaults
    untyped = [name for name in names if name not in types and default is None and name not in optional]
    if unknown or untyped:
        constraint, found = f"its fields are {_list(names)}", f"types for {_list(types) or 'none'}"
        raise InputError(f"record {like.__name__}", constraint, found, "Give a type for each, or one for all.")
    return RecordType(like, {name: types.get(name, default) for name in names})


def leaves(prefix: str, kind: RecordType) -> Iterator[tuple[str, Any]]:
    """(dotted name, type) of each array and number in a record, to any depth."""
    for name, inner in kind.fields.items():
        if isinstance(inner, RecordType):
            yield from leaves(f"{prefix}.{name}", inner)
        else:
            yield f"{prefix}.{name}", inner


def stands_for(*names: str) -> Callable[[F], F]:
    """Mark a Python function called in kernels: elements of its result are elements of these parameters."""

    def mark(function: F) -> F:
        function.stands_for = names  # type: ignore[attr-defined]
        return function

    return mark


class View(tuple[Any, Any]):  # as ti.static admits tuples
    """A flat array from an offset on, which may be known at run time only: `x = ti.static(View(a, a0))`.

    `x[i]` is a[a0 + i], to be read and written. The offset is read once, where the view is made.
    """

    __slots__ = ()
    stands_for = ("array",)

    def __new__(cls, array: Any, start: Any = 0) -> View:
        if isinstance(array, View):
            array, start = array.array, start + array.start
        is_number = isinstance(start, int)
        return super().__new__(cls, (array, start if is_number else ti.lang.impl.expr_init(start)))

    @classmethod
    def without_copy(cls, array: Any, start: Any) -> View:
        """Make a view whose offset is a parameter of the kernel, which is as good as a local."""
        return super().__new__(cls, (array, start))

    @property
    def array(self) -> Any:
        return tuple.__getitem__(self, 0)

    @property
    def start(self) -> Any:
        return tuple.__getitem__(self, 1)

    def __getitem__(self, index: Any) -> Any:
        start = self.start
        place = index if isinstance(start, int) and start == 0 else index + start
        if isinstance(self.array, tuple):
            return self.array[place]
        return ti.lang.impl.subscript(None, self.array, place)


def _list(names: Any) -> str:
    return ", ".join(names)
