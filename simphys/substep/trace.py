"""Recording of a step as a program: the step runs on symbols in place of Tensors, and no numbers move."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

from simphys.simulator import Array

from .program import Op, Value

Arithmetic = Mapping[str, Callable[[Any, Any, Any], Any]]
"""Sub-steps that stand for the operators of symbols, by name: functions of the recording and two operands."""


class NotDeclared(Exception):
    """A step that does something other than to apply declared sub-steps, so that it cannot be recorded."""


class Recording:
    """The program under construction."""

    def __init__(self, arithmetic: Arithmetic) -> None:
        self.arithmetic = arithmetic
        self.ops: list[Op] = []
        self._names: dict[str, int] = {}
        self._constants: dict[int, Value] = {}

    def name(self, wanted: str) -> str:
        """Make a name that no other value has."""
        count = self._names.get(wanted, 0)
        self._names[wanted] = count + 1
        return wanted if count == 0 else f"{wanted}_{count + 1}"

    def constant(self, name: str, data: Array) -> Value:
        """Make a constant array of the program, once for each array."""
        known = self._constants.get(id(data))
        if known is None or known.data is not data:
            known = self._constants[id(data)] = Value(self.name(name), data.shape, "constant", data=data)
        return known

    def add(self, op: Op) -> tuple[Symbol, ...]:
        """Append a sub-step, and return its results."""
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


class Symbol:
    """A value of the program under construction, in place of a Tensor."""

    def __init__(self, recording: Recording, value: Value) -> None:
        self.recording, self.value = recording, value

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
        return self.recording.arithmetic[rule](self.recording, a, b)

    def _refuse(self, what: str) -> NoReturn:
        raise NotDeclared(f"the step uses {what} ({self.value.name}), which no declared sub-step gives")
