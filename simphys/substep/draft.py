"""Draft of a program: a step runs on symbols in place of Tensors, and no numbers move."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

from simphys.autograd import Tensor
from simphys.simulator import Array, Shape

from .expressions import identifier
from .program import Domain, ElementView, Op, Value

Arithmetic = Mapping[str, Callable[[Any, Any, Any], Any]]
"""Sub-steps that stand for the operators of symbols, by name: functions of the draft and two operands."""


class NotDeclared(Exception):
    """A step that does something other than to apply declared sub-steps, so that it cannot be read as a program."""


DERIVED = ("d", "adj_", "dense_")
"""Prefixes of the names of a value's tangent, its adjoint, and the derivative of the loss by it at a step."""


class Draft:
    """The program under construction."""

    def __init__(self, arithmetic: Arithmetic) -> None:
        self.arithmetic = arithmetic
        self.ops: list[Op] = []
        self._names: dict[str, str] = {}
        self._sizes: dict[str, tuple[int, Shape]] = {}
        self._constants: dict[int, Value] = {}
        self._outside: dict[int, tuple[Tensor, int, Array]] = {}

    def name(self, wanted: str) -> str:
        """Make a name that no other value has, nor its tangent or adjoint."""
        wanted = name = identifier(wanted)
        count = 1
        while self.clash(name) is not None:
            count += 1
            name = f"{wanted}_{count}"
        self._names |= dict.fromkeys(_with_derived(name), name)
        return name

    def clash(self, name: str) -> str | None:
        """Return the value whose name, or that of its tangent or adjoint, is one of those of a name."""
        return next((self._names[each] for each in _with_derived(name) if each in self._names), None)

    def domain(self, wanted: str, size: int, grid: Shape = ()) -> Domain:
        """Make an index set of this size, under a name that no set of another size has."""
        wanted = name = identifier(wanted)
        count = 1
        while self._sizes.setdefault(name, (size, grid)) != (size, grid):
            count += 1
            name = f"{wanted}_{count}"
        return Domain(name, size, grid)

    def name_domains(self, op: Op) -> None:
        """Give an index set that has another size than before, under the same name, a name of its own."""
        op.domain, op.onto = self.domain(*op.domain), op.onto and self.domain(*op.onto)
        op.views = {name: self._name_view(op, name, view) for name, view in op.views.items()}
        for value in op.outputs:
            if value.view is not None:
                value.view = value.view._replace(domain=self.domain(*value.view.domain))

    def _name_view(self, op: Op, name: str, view: ElementView) -> ElementView:
        """Name the index set of an input: for a gathered array, that by which sub-steps before have seen it."""
        value = op.inputs.get(name)
        known = value.view if isinstance(value, Value) and op.pattern.sources[name].kind == "gathered" else None
        return known if known is not None and known[1:] == view[1:] else view._replace(domain=self.domain(*view.domain))

    def constant(self, name: str, data: Array) -> Value:
        """Make a constant array of the program, once for each array."""
        known = self._constants.get(id(data))
        if known is None or known.data is not data:
            known = self._constants[id(data)] = Value(self.name(name), data.shape, "constant", data=data)
        return known

    def outside(self, given: Tensor) -> Array:
        """Copy the numbers of a Tensor from outside the step, once; a write to it makes the program out of date."""
        if id(given) not in self._outside:
            self._outside[id(given)] = given, given.version, given.data.copy()
        return self._outside[id(given)][-1]

    def tensors(self) -> tuple[tuple[Tensor, int], ...]:
        """List the Tensors from outside the step, each with its version."""
        return tuple([(given, version) for given, version, _ in self._outside.values()])

    def add(self, op: Op) -> tuple[Symbol, ...]:
        """Append a sub-step, and return its results."""
        self.name_domains(op)
        for output in op.outputs:
            output.name = self.name(output.name)
        for name, view in op.views.items():
            value = op.inputs[name]
            if not isinstance(value, Value):
                continue
            if value.view is None:
                value.view = view
            elif value.view[1:] != view[1:]:
                seen = f"{value.name} has elements of shape {value.view.element} and of {view.element}"
                raise NotDeclared(f"two sub-steps see an array differently: {seen}")
        op.pattern.arrange(op)
        self.ops.append(op)
        return tuple([Symbol(self, value) for value in op.outputs])


def _with_derived(name: str) -> tuple[str, ...]:
    return name, *[f"{prefix}{name}" for prefix in DERIVED]


class Symbol:
    """A value of the program under construction, in place of a Tensor."""

    def __init__(self, draft: Draft, value: Value) -> None:
        self.draft, self.value = draft, value

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return len(self.value.shape)

    def __add__(self, other: Any) -> Symbol:
        return self._apply("add", self, other)

    def __sub__(self, other: Any) -> Symbol:
        return self._apply("subtract", self, other)

    def __mul__(self, factor: Any) -> Symbol:
        return self._apply("scale", self, factor)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Symbol:
        return self._apply("scale", self, -1.0)

    def __truediv__(self, divisor: Any) -> Symbol:
        if not isinstance(divisor, float | int | np.floating):
            self._refuse("a division by an array")
        return self._apply("scale", self, 1.0 / float(divisor))

    @property
    def data(self) -> NoReturn:
        self._refuse("the numbers of a value")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse(f"`{name}` of a value")

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse("the numbers of a value")

    def __getitem__(self, _: Any) -> NoReturn:
        self._refuse("elements of a value")

    def _refuse_operation(self, *_: Any) -> NoReturn:
        self._refuse("an operation on a value")

    __pow__ = __matmul__ = __rmatmul__ = __rtruediv__ = __rsub__ = __float__ = __bool__ = _refuse_operation
    __lt__ = __le__ = __gt__ = __ge__ = __array_ufunc__ = _refuse_operation

    def _apply(self, rule: str, a: Any, b: Any) -> Symbol:
        return self.draft.arithmetic[rule](self.draft, a, b)

    def _refuse(self, what: str) -> NoReturn:
        raise NotDeclared(f"the step uses {what} ({self.value.name}), which no declared sub-step gives")
