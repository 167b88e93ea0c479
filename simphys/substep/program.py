"""Program: the sub-steps of one time step, in order, with the values that go from one to the next."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple
from weakref import ref

from simphys.autograd import Tensor
from simphys.numerics.outside import Outside
from simphys.simulator import Array, Shape

Role = Literal["state", "param", "control", "constant", "local"]


class Domain(NamedTuple):
    """An index set: nodes, springs, cells; or the whole system, of size 1."""

    name: str
    size: int
    grid: Shape = ()
    """Number of cells along each axis, where its elements are the cells of a regular grid."""


WHOLE = Domain("whole", 1)
"""Index set of sub-steps that act on the whole system at once."""


class ElementView(NamedTuple):
    """An array as elements of an index set: of shape () numbers, (c,) vectors, (r, c) matrices."""

    domain: Domain
    element: Shape
    components_first: bool = False
    """True for vectors whose array is [c, *elements]: all first components, then all second ones."""

    @property
    def components(self) -> int:
        return math.prod(self.element)


@dataclass(eq=False)
class Value:
    """An array in a program: a field of the state, a parameter, the control, a constant or the result of a sub-step."""

    name: str
    shape: Shape
    role: Role
    view: ElementView | None = None
    """Elements of the array, as the sub-steps see it; None before the first one does."""
    data: Array | None = field(default=None, repr=False)
    """Numbers of a constant array."""
    by_component: bool = False
    """True if its vectors, and its tangent's, lie in memory component by component, as sums over all elements want."""
    adjoint_by_component: bool = False
    """True if the vectors of its adjoint do."""
    is_flat: bool = False
    """True if it lies in memory as numbers, vector by vector, as routines take it; so do its adjoint and tangent."""

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def element(self) -> Shape:
        """Shape of an element; an array that no sub-step sees consists of numbers."""
        return () if self.view is None else self.view.element

    @property
    def elements(self) -> ElementView:
        """Elements of an array that a sub-step sees."""
        assert self.view is not None, "a sub-step sees it"
        return self.view

    @property
    def components_first(self) -> bool:
        """True if the array itself has its vectors component by component."""
        return self.view is not None and self.view.components_first

    @property
    def count(self) -> int:
        """Number of elements."""
        return self.size // math.prod(self.element)

    @property
    def memory_element(self) -> Shape:
        """Shape of an element in memory."""
        return () if self.is_flat or self.by_component or self.components_first else self.element

    @property
    def memory_count(self) -> int:
        """Number of elements in memory."""
        return self.size // math.prod(self.memory_element)

    @property
    def varies(self) -> bool:
        """True if gradients flow to it."""
        return self.role != "constant"


def make_local(name: str, domain: Domain, element: Shape = (), *, components_first: bool = False) -> Value:
    """Make a value with an element for each index of a set."""
    leading = () if domain == WHOLE else domain.grid or (domain.size,)
    shape = (*element, *leading) if components_first else (*leading, *element)
    return Value(name, shape, "local", ElementView(domain, element, components_first))


def arrays_of(inputs: Mapping[str, Value | float]) -> dict[str, Value]:
    """Return the arrays among the inputs of a sub-step."""
    return {name: value for name, value in inputs.items() if isinstance(value, Value)}


@dataclass(eq=False)
class Op:
    """A sub-step applied to values."""

    pattern: Any
    """Pattern of the sub-step, see pattern.py."""
    inputs: Mapping[str, Value | float]
    """Value of each parameter of the element function, or a number that no gradient flows to."""
    domain: Domain
    views: Mapping[str, ElementView]
    """Elements of each array among the inputs."""
    outputs: tuple[Value, ...] = ()
    relations: Mapping[str, Array] = field(default_factory=dict)
    """Index arrays that the pattern reads, by name."""
    onto: Domain | None = None
    """Index set of the results, where it is not that of the loop."""
    extra: Any = None
    """Anything that the pattern itself wants to know again, but for what the text of its loops depends on."""
    variant: Any = None
    """Anything else that the text of its loops depends on, hashable, such as which axes of a grid are periodic."""
    model: ref[Any] | None = None
    """Model, for operations on whole arrays. Weak, as a model keeps its programs."""

    @property
    def label(self) -> str:
        """Name of the sub-step, and that of its first result, which no other result in its program has."""
        return f"{self.pattern.name} ({self.outputs[0].name})"

    def array(self, name: str) -> Value:
        """Return the input of a parameter that takes an array."""
        value = self.inputs[name]
        assert isinstance(value, Value), "an array"
        return value

    @property
    def arrays(self) -> dict[str, Value]:
        """Arrays among the inputs, by parameter."""
        return arrays_of(self.inputs)

    def values(self) -> Collection[Value]:
        """List the arrays among the inputs."""
        return self.arrays.values()


@dataclass(frozen=True, eq=False)
class Program:
    """A step as its sub-steps, and the values that go from one to the next."""

    ops: tuple[Op, ...]
    state: Mapping[str, Value]
    """Fields of the state that enters."""
    params: Mapping[str, Value]
    control: Value | None
    result: Mapping[str, Value]
    """Fields of the state that leaves; each is the result of a sub-step, and of one field only."""
    outside: tuple[tuple[Tensor, int], ...] = ()
    """Tensors whose numbers are constants of the program, each with the version that these are of."""
    names: Outside | None = None
    """Names that the step takes from outside."""
    captured: tuple[Outside, ...] = ()
    """Names that the compiled functions capture."""

    @property
    def is_current(self) -> bool:
        """True if the step would be read like this again: its names and Tensors from outside are what they were."""
        if self.names is not None and not self.names.is_same:
            return False
        if not all([captured.is_same for captured in self.captured]):
            return False
        return all([given.version == version for given, version in self.outside])

    @property
    def has_operations(self) -> bool:
        """True if some sub-steps are operations on whole arrays, which are no loops."""
        return any([op.pattern.on_host for op in self.ops])

    def without_idle(self, zeros: Collection[Value]) -> Program:
        """Leave out the sub-steps whose result is one of their inputs, or is not read, as these parameters are zero."""
        same: dict[Value, Value] = {}
        result, ops = dict(self.result), []
        for op in self.ops:
            inputs = {n: same.get(v, v) if isinstance(v, Value) else v for n, v in op.inputs.items()}
            instead = {u: inputs[other] for n, (u, other) in op.pattern.unread.items() if inputs[n] in zeros}
            inputs |= instead
            through = next((inputs[t] for n, t in op.pattern.idle.items() if inputs[n] in zeros), None)
            fields = [name for name, value in result.items() if value is op.outputs[0]]
            if isinstance(through, Value) and (not fields or _may_leave(through, result.values())):
                same[op.outputs[0]] = through
                result |= dict.fromkeys(fields, through)
            else:
                ops.append(replace(op, inputs=inputs) if instead or any([v in same for v in op.values()]) else op)
        if len(ops) == len(self.ops) and all([op is own for op, own in zip(ops, self.ops, strict=True)]):
            return self
        return replace(self, ops=_find_needed(ops, result.values()), result=result)

    @property
    def is_complex(self) -> bool:
        """True if a sub-step takes so long, to compile and to run, that all others are cheap: one plan serves all."""
        return any([op.pattern.is_complex for op in self.ops])

    def constants(self) -> list[Value]:
        """List the constant arrays, each once."""
        found = {id(v): v for op in self.ops for v in op.values() if v.role == "constant"}
        return list(found.values())


def _find_needed(ops: Sequence[Op], results: Collection[Value]) -> tuple[Op, ...]:
    """Find the sub-steps that the results depend on, and operations, which may have notes."""
    needed, found = set(results), []
    for op in reversed(ops):
        if op.pattern.on_host or needed.intersection(op.outputs):
            found.append(op)
            needed |= set(op.values())
    return tuple(reversed(found))


def _may_leave(value: Value, results: Collection[Value]) -> bool:
    """True if a value may be a field of the new state: a fresh one, which is no other field."""
    return value.role == "local" and value.view is not None and all([value is not other for other in results])
