"""Every operation as calls that run with `ops` and with NumPy, with shapes and domains of the inputs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from simphys.autograd import Tensor, ops, tensor

Array = np.ndarray
Shape = tuple[int, ...]


class Rule(NamedTuple):
    """A call that runs with `ops` and with NumPy, the shapes of its inputs, and their domain."""

    call: Callable[..., Any]
    shapes: Sequence[tuple[Shape, ...]]
    domain: str = "real"  # away from 0, where kinks are; or "positive"


def placed(base: Array, index: Any, values: Array) -> Array:
    result = base.copy()
    result[index] = values
    return result


NUMPY = SimpleNamespace(**{name: getattr(np, name) for name in ops.__all__ if hasattr(np, name)})
NUMPY.sub, NUMPY.mul, NUMPY.div, NUMPY.neg, NUMPY.pow = np.subtract, np.multiply, np.divide, np.negative, np.power
NUMPY.sigmoid = lambda x: 1 / (1 + np.exp(-x))
NUMPY.softplus = lambda x: np.log(1 + np.exp(x))
NUMPY.norm = np.linalg.norm
NUMPY.clone = np.copy
NUMPY.astype = lambda x, dtype: x.astype(dtype)
NUMPY.getitem = operator.getitem
NUMPY.put = placed

Shapes = list[tuple[Shape, ...]]
ONE: Shapes = [((),), ((0,),), ((3,),), ((2, 3),), ((2, 0, 3),)]
FULL: Shapes = [((1,),), ((3,),), ((2, 3),), ((2, 3, 2),)]
TWO: Shapes = [
    *[((), ()), ((0,), ()), ((0,), (1,)), ((3,), (3,)), ((2, 3), (3,)), ((), (2, 2))],
    *[((2, 1), (1, 3)), ((1, 1), (3,)), ((2, 1, 2), (3, 1))],
]
PRODUCTS: Shapes = [
    *[((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 2)), ((2, 2, 3), (3, 2)), ((2, 2, 3), (3,))],
    *[((3,), (2, 3, 2)), ((2, 3), (2, 3, 2)), ((2, 1, 2, 3), (3, 3, 1)), ((1, 2, 3), (2, 3, 2))],
    *[((0, 3), (3, 2)), ((2, 0), (0, 3)), ((2, 2, 0), (0, 3)), ((0,), (0,))],
]
MASK = np.array([[True, False, True], [False, False, True]])
ROWS = np.array([1, 0, 1, -1])
LOW, HIGH = np.array([[-0.7], [-1.1]], np.float32), np.array([0.1, 0.2, 1.3], np.float32)

RULES = {
    "add": Rule(lambda o, x, y: o.add(x, y), TWO),
    "add number": Rule(lambda o, x: o.add(1, x), ONE),
    "sub": Rule(lambda o, x, y: o.sub(x, y), TWO),
    "sub number": Rule(lambda o, x: o.sub(0.5, x), ONE),
    "mul": Rule(lambda o, x, y: o.mul(x, y), TWO),
    "mul number": Rule(lambda o, x: o.mul(x, 3), ONE),
    "div": Rule(lambda o, x, y: o.div(x, y), TWO),
    "div by number": Rule(lambda o, x: o.div(x, 3.0), ONE),
    "div number": Rule(lambda o, x: o.div(3.0, x), ONE),
    "neg": Rule(lambda o, x: o.neg(x), ONE),
    "pow": Rule(lambda o, x, y: o.pow(x, y), TWO, "positive"),
    "pow by number": Rule(lambda o, x: o.pow(x, 3), ONE),
    "pow by negative number": Rule(lambda o, x: o.pow(x, -1.5), ONE, "positive"),
    "pow by array": Rule(lambda o, x: o.pow(x, np.array([2, 0, 3], x.dtype)), [((),), ((3,),), ((2, 1),)]),
    "pow of array": Rule(
        lambda o, x: o.pow(np.array([0.5, 1, 3]).astype(x.dtype), x), [((),), ((3,),), ((2, 1),)], "positive"
    ),
    "pow of number": Rule(lambda o, x: o.pow(2.0, x), ONE),
    "square": Rule(lambda o, x: o.square(x), ONE),
    "abs": Rule(lambda o, x: o.abs(x), ONE),
    "maximum": Rule(lambda o, x, y: o.maximum(x, y), TWO),
    "maximum number": Rule(lambda o, x: o.maximum(x, 0.01), ONE),
    "minimum": Rule(lambda o, x, y: o.minimum(x, y), TWO),
    "minimum number": Rule(lambda o, x: o.minimum(0.01, x), ONE),
    "clip": Rule(lambda o, x: o.clip(x, -1.0, 0.9), ONE),
    "clip below": Rule(lambda o, x: o.clip(x, 0.05, None), ONE),
    "clip above": Rule(lambda o, x: o.clip(x, None, 0.05), ONE),
    "clip by arrays": Rule(lambda o, x: o.clip(x, LOW, HIGH), [((),), ((3,),), ((2, 3),)]),
    "where": Rule(lambda o, x, y: o.where(MASK, x, y), [((), ()), ((2, 3), (3,)), ((2, 1), (2, 2, 3))]),
    "where nothing": Rule(lambda o, x, y: o.where(MASK[:0], x, y), [((), (3,)), ((0, 3), (1,)), ((0, 1), (0, 3))]),
    "where number": Rule(lambda o, x: o.where(MASK, x, 0.5), [((),), ((2, 3),)]),
    "exp": Rule(lambda o, x: o.exp(x), ONE),
    "log": Rule(lambda o, x: o.log(x), ONE, "positive"),
    "sqrt": Rule(lambda o, x: o.sqrt(x), ONE, "positive"),
    "sin": Rule(lambda o, x: o.sin(x), ONE),
    "cos": Rule(lambda o, x: o.cos(x), ONE),
    "tanh": Rule(lambda o, x: o.tanh(x), ONE),
    "sigmoid": Rule(lambda o, x: o.sigmoid(x), ONE),
    "softplus": Rule(lambda o, x: o.softplus(x), ONE),
    "sum": Rule(lambda o, x: o.sum(x), ONE),
    "sum over one": Rule(lambda o, x: o.sum(x, -1), ONE[1:]),
    "sum over none": Rule(lambda o, x: o.sum(x, ()), ONE),
    "sum over two": Rule(lambda o, x: o.sum(x, (0, -1), keepdims=True), [((2, 3),), ((2, 3, 2),), ((0, 3),)]),
    "mean": Rule(lambda o, x: o.mean(x), FULL),
    "mean over one": Rule(lambda o, x: o.mean(x, 0), [*FULL, ((3, 0),)]),
    "mean over two": Rule(lambda o, x: o.mean(x, (0, 1), keepdims=True), FULL[2:]),
    "max": Rule(lambda o, x: o.max(x), FULL),
    "max over one": Rule(lambda o, x: o.max(x, -1), [*FULL, ((0, 3),)]),
    "max over two": Rule(lambda o, x: o.max(x, (0, 1), keepdims=True), FULL[2:]),
    "min": Rule(lambda o, x: o.min(x), FULL),
    "min over one": Rule(lambda o, x: o.min(x, 0), [*FULL, ((3, 0),)]),
    "norm": Rule(lambda o, x: o.norm(x), [*FULL[1:], ((0,),)]),
    "norm over last": Rule(lambda o, x: o.norm(x, axis=-1), [*FULL[1:], ((0, 3),)]),
    "norm over two": Rule(lambda o, x: o.norm(x, axis=(0, 1), keepdims=True), FULL[2:]),
    "matmul": Rule(lambda o, x, y: o.matmul(x, y), PRODUCTS),
    "reshape": Rule(lambda o, x: o.reshape(x, (3, -1)), [((3,),), ((2, 3),), ((0, 3),)]),
    "reshape flat": Rule(lambda o, x: o.reshape(x, -1), ONE),
    "transpose": Rule(lambda o, x: o.transpose(x), ONE),
    "transpose axes": Rule(lambda o, x: o.transpose(x, (1, -1, 0)), [((2, 3, 4),)]),
    "broadcast_to": Rule(lambda o, x: o.broadcast_to(x, (2, 3)), [((),), ((3,),), ((2, 1),)]),
    "broadcast_to nothing": Rule(lambda o, x: o.broadcast_to(x, (2, 0)), [((),), ((0,),), ((2, 1),)]),
    "astype": Rule(lambda o, x: o.astype(x, x.dtype), ONE),
    "clone": Rule(lambda o, x: o.clone(x), ONE),
    "stack": Rule(lambda o, x, y: o.stack([x, y], -1), [((), ()), ((0,), (0,)), ((2, 3), (2, 3))]),
    "stack array": Rule(lambda o, x: o.stack([np.ones(2, x.dtype), x]), [((2,),)]),
    "concatenate": Rule(
        lambda o, x, y: o.concatenate([x, y], -1), [((0,), (0,)), ((2,), (3,)), ((2, 0), (2, 3)), ((2, 1), (2, 3))]
    ),
    "concatenate array": Rule(lambda o, x: o.concatenate([x, np.ones((1, 2), x.dtype)]), [((2, 2),)]),
    "getitem": Rule(lambda o, x: o.getitem(x, (-1, None, ...)), FULL),
    "getitem step": Rule(lambda o, x: o.getitem(x, slice(None, None, -2)), ONE[1:]),
    "getitem mask": Rule(lambda o, x: o.getitem(x, MASK), FULL[2:]),
    "getitem repeated": Rule(lambda o, x: o.getitem(x, ROWS), FULL[1:]),
    "getitem nothing": Rule(lambda o, x: o.getitem(x, []), ONE[1:]),
    "getitem mixed": Rule(lambda o, x: o.getitem(x, (slice(1), ROWS)), FULL[2:]),
    "put": Rule(lambda o, x, y: o.put(x, 1, y), [((3,), ()), ((2, 3), (3,)), ((2, 3), ()), ((2, 3), (1, 3))]),
    "put nothing": Rule(lambda o, x, y: o.put(x, slice(0), y), [((3,), ()), ((3,), (0,)), ((0, 3), (3,))]),
    "put mask": Rule(lambda o, x, y: o.put(x, MASK, y), [((2, 3), (3,)), ((2, 3), ())]),
    "put repeated": Rule(lambda o, x, y: o.put(x, ROWS, y), [((4,), (4,)), ((4, 2), (4, 2)), ((4,), (1,))]),
    "put into array": Rule(lambda o, y: o.put(np.zeros(3, y.dtype), ROWS[:2], y), [((2,),)]),
}


def draw(rule: Rule, shapes: tuple[Shape, ...]) -> list[Array]:
    """Inputs of these shapes, always the same."""
    rng = np.random.default_rng(7)
    signs = (1.0,) if rule.domain == "positive" else (-1.0, 1.0)
    return [np.asarray(rng.uniform(0.2, 2.0, shape) * rng.choice(signs, shape)) for shape in shapes]


def largest(rule: Rule) -> tuple[Shape, ...]:
    """The shapes with most elements."""
    return max(rule.shapes, key=lambda shapes: sum(int(np.prod(shape)) for shape in shapes))


def leaves(arrays: Sequence[Array], dtype: Any = np.float64) -> list[Tensor]:
    return [tensor(array, requires_grad=True, dtype=dtype) for array in arrays]
