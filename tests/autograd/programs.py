"""Random programs of operations, as code: the strategy `programs` draws them, away from kinks, poles and overflow.

A program is a list of lines such as `v2 = o.maximum(x0, v1)` with `o` for `ops`, or for anything with the same
functions. Every value is computed while the program is drawn. So an operation with a kink is drawn only for operands
at least `MARGIN` away from it, softplus avoids poles, and values beyond `LARGEST` are scaled down. Values that no line
uses enter the loss through sin(v + 1), so that adjoints differ, second derivatives do not vanish, and opposite values
do not cancel.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from simphys.autograd import Tensor, ops

Array = np.ndarray
Shape = tuple[int, ...]

MARGIN = 0.03
LARGEST = 4.0
SHAPES: list[Shape] = [(), (3,), (2, 3), (1, 3), (2, 1), (3, 2), (1,), (2, 2, 3), (0, 3)]


@dataclass(frozen=True)
class Program:
    """Leaves by name, and lines of code that end in a scalar called `loss`."""

    leaves: dict[str, Array]
    lines: tuple[str, ...]

    def run(self, o: Any, *leaves: Any) -> Any:
        """Compute the loss with the functions of `o` from leaves in the order of their names."""
        names = dict(zip(self.leaves, leaves, strict=True))
        exec("\n".join(self.lines), {"o": o}, names)
        return names["loss"]

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """The text that hypothesis shows."""
        printer.text(repr(self))

    def __repr__(self) -> str:
        """The program as a script."""
        head = ["import numpy as np", "from simphys.autograd import ops as o, tensor"]
        for name, x in self.leaves.items():
            head.append(f"{name} = tensor({x.tolist() if x.size else f'np.zeros({x.shape})'}, requires_grad=True)")
        return "\n" + "\n".join([*head, *self.lines]) + "\n"


class Impossible(Exception):
    """No value of the program so far is a valid operand."""


class Writer:
    """A program that is being drawn: its lines, and the value of every name."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.values: dict[str, Array] = {}
        self.lines: list[str] = []
        self.unused: list[str] = []

    def one_of(self, choices: Any) -> Any:
        choices = list(choices)
        if not choices:
            raise Impossible
        return self.draw(st.sampled_from(choices))

    def name(self, fits: Callable[[Array], Any] = lambda x: True) -> str:
        """Draw a value that is a valid operand."""
        return str(self.one_of([name for name, x in self.values.items() if fits(x)]))

    def pair(self, fits: Callable[[Array, Array], Any]) -> tuple[str, str]:
        """Draw two values, maybe the same one, that are valid together."""
        x = self.name()
        return x, self.name(lambda y: fits(self.values[x], y))

    def value(self, expression: str) -> Array:
        constants = {name: Tensor(x.copy()) for name, x in self.values.items()}
        return np.asarray(eval(expression, {"o": ops}, constants).data)

    def assign(self, expression: str) -> None:
        value = self.value(expression)
        largest = float(np.max(abs(value), initial=0.0))
        if largest > LARGEST:
            expression = f"o.mul({expression}, {2.0 ** -np.ceil(np.log2(largest / LARGEST))})"
            value = self.value(expression)
        name = f"v{len(self.lines)}"
        used = re.findall(r"\b[vx]\d+", expression)
        self.unused = [*[other for other in self.unused if other not in used], name]
        self.values[name] = value
        self.lines.append(f"{name} = {expression}")

    def finish(self) -> Program:
        leaves = {name: x for name, x in self.values.items() if name.startswith("x")}
        loss = " + ".join([f"o.sum(o.sin({name} + 1))" for name in self.unused])
        return Program(leaves, (*self.lines, f"loss = {loss}"))

    # --- parts of expressions

    def constant(self, shape: Shape) -> str:
        """Draw a number, or a list of this shape without some of its first axes."""
        numbers = st.sampled_from([0.5, -1.5, 2.0])
        shape = shape[self.draw(st.integers(0, len(shape))) :] if 0 not in shape else ()
        flat = [self.draw(numbers) for _ in range(int(np.prod(shape)))]
        return repr(np.reshape(flat, shape).tolist())

    def axes(self, x: Array) -> str:
        """Draw the `axis` of a reduction, and maybe `keepdims`."""
        choices: list[Any] = [None, *range(-1, x.ndim)][: 1 if x.ndim == 0 else None]
        axis = self.one_of([*choices, *itertools.combinations(range(x.ndim), 2)])
        return f"{axis}, keepdims={self.draw(st.booleans())}"

    def index(self, shape: Shape) -> str:
        """Draw an index: basic, of integers that may repeat, a mask, or mixed."""
        first = shape[0]
        basic = ["0", "-1", "slice(1, None)", "(..., 0)", "(None, ..., slice(None, None, 2))", "(slice(None), None)"]
        repeated = self.draw(st.lists(st.integers(-first, first - 1), min_size=1, max_size=4))
        mask = self.draw(st.lists(st.booleans(), min_size=first, max_size=first))
        return str(self.one_of([*basic, f"{repeated}", f"{mask}", f"({repeated}, ...)"]))


def broadcasts(x: Array, y: Array) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(x.shape[::-1], y.shape[::-1], strict=False))


def apart(x: Any, y: Any) -> bool:
    return bool(np.all(abs(x - y) > MARGIN))


def multiplies(x: Array, y: Array) -> bool:
    if x.ndim == 0 or y.ndim == 0 or x.shape[-1] != y.shape[-2 if y.ndim > 1 else 0]:
        return False
    return x.ndim < 3 or y.ndim < 3 or broadcasts(x[..., 0, 0], y[..., 0, 0])


def joins(x: Array, y: Array, axis: int) -> bool:
    return x.ndim == y.ndim > axis and np.delete(x.shape, axis).tolist() == np.delete(y.shape, axis).tolist()


def unary(template: str) -> Callable[[Writer], str]:
    return lambda w: template.format(w.name())


def binary(template: str, fits: Callable[[Array, Array], Any] = lambda x, y: True) -> Callable[[Writer], str]:
    """An operation of two values, or of a value and a constant on either side."""

    def write(w: Writer) -> str:
        kind = w.one_of(["values", "left", "right"])
        if kind == "values":
            return template.format(*w.pair(lambda x, y: broadcasts(x, y) and fits(x, y)))
        x = w.name()
        c = w.constant(w.values[x].shape)
        if not fits(w.values[x], np.array(eval(c))):
            raise Impossible
        return template.format(*((x, c) if kind == "right" else (c, x)))

    return write


def reduction(function: str, fits: Callable[[Array, Any], Any]) -> Callable[[Writer], str]:
    def write(w: Writer) -> str:
        x = w.name()
        axes = w.axes(w.values[x])
        axis = eval(axes.split(", keepdims")[0])
        if not fits(w.values[x], axis):
            raise Impossible
        return f"o.{function}({x}, {axes})"

    return write


def length(x: Array, axis: Any) -> int:
    return int(np.prod([x.shape[i] for i in (range(x.ndim) if axis is None else np.atleast_1d(axis))]))


def one_extreme(sign: int) -> Callable[[Array, Any], bool]:
    """True if the largest (smallest) over an axis differs from the others by the margin."""

    def fits(x: Array, axis: Any) -> bool:
        if length(x, axis) == 0:
            return False
        top = np.max(sign * x, axis, keepdims=True)
        return bool(np.all(np.sum(sign * x >= top - MARGIN, axis) == 1))

    return fits


def clip(w: Writer) -> str:
    bounds = [None, -0.6, 0.4]
    x = w.name()
    low, high = w.one_of([(low, high) for low in bounds[:2] for high in bounds[::2]])
    if not all(apart(w.values[x], bound) for bound in (low, high) if bound is not None):
        raise Impossible
    return f"o.clip({x}, {low}, {high})"


def where(w: Writer) -> str:
    x, y = w.pair(broadcasts)
    shape = np.broadcast_shapes(w.values[x].shape, w.values[y].shape)[-1:]
    mask = np.array([w.draw(st.booleans()) for _ in range(int(np.prod(shape)))]).reshape(shape)
    return f"o.where({mask.tolist()}, {x}, {w.one_of([y, 0.5])})"


def reshape(w: Writer) -> str:
    x = w.name(np.size)
    shape = w.values[x].shape
    return f"o.reshape({x}, {w.one_of([(-1,), shape[::-1], (-1, 1), (1, *shape), (*shape[1:], *shape[:1])])})"


def transpose(w: Writer) -> str:
    x = w.name()
    return f"o.transpose({x}, {w.one_of([None, *itertools.permutations(range(w.values[x].ndim))])})"


def broadcast_to(w: Writer) -> str:
    x = w.name(lambda x: x.ndim < 3)
    shape = w.values[x].shape
    return f"o.broadcast_to({x}, {w.one_of([(2, *shape), tuple([2 if n == 1 else n for n in shape]), shape])})"


def stack(w: Writer) -> str:
    x, y = w.pair(lambda x, y: x.shape == y.shape and x.ndim < 3)
    return f"o.stack([{x}, {y}], {w.one_of(range(-1, w.values[x].ndim + 1))})"


def concatenate(w: Writer) -> str:
    axis = w.one_of([0, 1])
    x = w.name(lambda x: x.ndim > axis)
    y = w.name(lambda y: joins(w.values[x], y, axis))
    return f"o.concatenate([{x}, {y}], {axis})"


def getitem(w: Writer) -> str:
    x = w.name(lambda x: x.ndim and x.size)
    return f"o.getitem({x}, {w.index(w.values[x].shape)})"


def put(w: Writer) -> str:
    """No element is placed twice, as torch does not define the adjoint then."""
    x = w.name(lambda x: x.ndim and x.size)
    size = len(w.values[x])
    mask = [True] + [w.draw(st.booleans()) for _ in range(size - 1)]
    index = w.one_of(["0", "slice(1, None)", f"{list(range(size))[::-1]}", f"{mask}", "(..., 0)"])
    slot = np.empty(w.values[x].shape)[eval(index)]
    fits = [name for name, y in w.values.items() if y.ndim <= slot.ndim and broadcasts(slot, y)]
    fits = [name for name in fits if np.broadcast_shapes(slot.shape, w.values[name].shape) == slot.shape]
    return f"o.put({x}, {index}, {w.one_of([*fits, 0.5])})"


OPERATIONS: dict[str, list[Callable[[Writer], str]]] = {
    **{name: [unary(f"o.{name}({{}})")] for name in ("neg", "sin", "cos", "exp", "tanh", "sigmoid", "softplus")},
    **{name: [unary(f"o.{name}({{}})")] for name in ("square", "clone")},
    **{name: [unary(f"o.{name}(o.add(o.softplus({{}}), 0.2))")] for name in ("log", "sqrt")},
    **{name: [binary(f"o.{name}({{}}, {{}})")] for name in ("add", "sub", "mul")},
    **{name: [binary(f"o.{name}({{}}, {{}})", apart)] for name in ("maximum", "minimum")},
    **{name: [reduction(name, lambda x, axis: length(x, axis) > 0)] for name in ("sum", "mean")},
    "max": [reduction("max", one_extreme(1))],
    "min": [reduction("min", one_extreme(-1))],
    "norm": [reduction("norm", lambda x, axis: np.all(np.sum(np.square(x), axis) > 0.1))],
    "div": [binary("o.div({}, o.add(o.softplus({}), 0.2))")],
    "pow": [binary("o.pow(o.add(o.softplus({}), 0.2), {})"), unary("o.pow({}, 2)"), unary("o.pow({}, 3)")],
    "abs": [lambda w: f"o.abs({w.name(lambda x: apart(x, 0.0))})"],
    "clip": [clip],
    "where": [where],
    "matmul": [lambda w: "o.matmul({}, {})".format(*w.pair(multiplies))],
    "reshape": [reshape],
    "transpose": [transpose],
    "broadcast_to": [broadcast_to],
    "astype": [unary("o.astype({}, 'float64')")],
    "stack": [stack],
    "concatenate": [concatenate],
    "getitem": [getitem],
    "put": [put],
}


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Draw programs of up to 12 lines on up to 3 leaves."""
    writer = Writer(draw)
    random = np.random.default_rng(draw(st.integers(0, 999)))
    for i in range(draw(st.integers(1, 3))):
        shape = draw(st.sampled_from(SHAPES))
        writer.values[f"x{i}"] = np.asarray((2 * random.integers(-99, 99, shape) + 1) / 200)  # none is 0
    writer.unused = list(writer.values)
    for _ in range(draw(st.integers(1, 12))):
        try:
            writer.assign(writer.one_of(OPERATIONS[writer.one_of(OPERATIONS)])(writer))
        except Impossible:  # the line is left out
            continue
    return writer.finish()
