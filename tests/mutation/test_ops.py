"""Every term of every rule of the operations is needed: first order, tangents, and second derivatives."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np

from simphys.autograd import Tensor, grad, ops, tensor
from simphys.autograd import rules as node_rules
from simphys.autograd.ops import algebra, functions, indexing, linear, operands, piecewise, reductions, shaping
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck, gradgradcheck

from .suite import *  # noqa: F403 - the tests of all sweeps
from .sweep import Sweep

EACH = 12
"""Number of mutants per rule in a sample."""

Call = Callable[..., Any]
Check = Callable[[Any], None]
Shape = tuple[int, ...]


def smooth(call: Call, *shapes: Shape, low: float = 0.3) -> Check:
    """Compare first and second derivatives with differences, tangents with adjoints, at random points in [low, 1.7]."""
    random = np.random.default_rng(5)
    return near(call, *[random.uniform(low, 1.7, shape) for shape in shapes])


def near(call: Call, *points: Any) -> Check:
    """Do the same at given points, which are not kinks."""

    def check(o: Any) -> None:
        inputs = leaves(points)
        gradcheck(partial(call, o), inputs, mode="projected", repeats=1)
        gradgradcheck(partial(call, o), inputs, mode="projected", repeats=1)

    return check


def kink(call: Call, points: list[Any], slopes: list[Any]) -> Check:
    """Make a check of the convention at a kink: adjoints of ones in both orders, and tangents if they are finite."""

    def check(o: Any) -> None:
        inputs = leaves(points)
        for create_graph in (False, True):
            with np.errstate(all="ignore"):  # slopes may be infinite
                y = call(o, *inputs)
                found = grad(y, inputs, [np.ones(y.shape)], create_graph=create_graph)
            for adj, slope in zip(found, slopes, strict=True):
                np.testing.assert_array_equal(adj.data, slope)
        if np.isfinite(np.hstack(slopes)).all():
            dot_product_test(partial(call, o), inputs, tolerance=1e-6)  # astype computes in f32

    return check


def leaves(points: Any) -> list[Tensor]:
    return [tensor(point, dtype=np.float64, requires_grad=True) for point in points]


MASK = np.array([[True, False, True], [False, False, True]])
ROWS = np.array([1, 0, 1, -1])
MIXED = np.array([[-1.3, 0.4, 1.1], [0.7, -0.6, -0.2]])
ELEMENTWISE: list[tuple[Shape, Shape]] = [((2, 3), (2, 3)), ((3, 2, 1), (2, 4)), ((1,), (2, 1)), ((2, 2), ())]
"""Pairs of shapes, with axes along which one or both operands are broadcast."""


def binary(name: str) -> list[Check]:
    def call(o: Any, x: Any, y: Any) -> Any:
        return getattr(o, name)(x, y)

    return [
        *[smooth(call, *shapes) for shapes in ELEMENTWISE],
        smooth(lambda o, x: call(o, x, 1.3), (2, 3)),
        smooth(lambda o, y: call(o, 1.2, y), (2, 3)),
    ]


def unary(name: str) -> list[Check]:
    return [smooth(lambda o, x: getattr(o, name)(x), (2, 3))]


def reduction(name: str) -> list[Check]:
    return [
        smooth(lambda o, x: getattr(o, name)(x), (2, 3)),
        smooth(lambda o, x: getattr(o, name)(x, -1), (2, 3)),
        smooth(lambda o, x: getattr(o, name)(x, (0, 2), keepdims=True), (2, 3, 2)),
    ]


CHECKS: dict[type, list[Check]] = {
    algebra.Add: binary("add"),
    algebra.Sub: binary("sub"),
    algebra.Mul: binary("mul"),
    algebra.Div: binary("div"),
    algebra.Neg: unary("neg"),
    algebra.Pow: [
        *binary("pow"),
        *unary("square"),
        near(lambda o, x: o.pow(x, 3), MIXED),
        near(lambda o, x: o.pow(x, 0), MIXED),
        near(lambda o, x, y: o.pow(x, y), [1.3, 0.6], [0.0, 2.0]),
        kink(lambda o, x: o.pow(x, 0), [[0.0, 2.0]], [[0.0, 0.0]]),
        kink(lambda o, x: o.pow(x, 1), [[0.0, 2.0]], [[1.0, 1.0]]),
        kink(lambda o, x, y: o.pow(x, y), [[0.0, 0.0, 0.0], [0.0, 1.0, 3.0]], [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]),
        kink(lambda o, x, y: o.pow(x, y), [[0.0], [-1.0]], [[-np.inf], [-np.inf]]),
    ],
    functions.Exp: unary("exp"),
    functions.Log: unary("log"),
    functions.Sqrt: unary("sqrt"),
    functions.Sin: unary("sin"),
    functions.Cos: unary("cos"),
    functions.Tanh: unary("tanh"),
    functions.Sigmoid: unary("sigmoid"),
    functions.Softplus: unary("softplus"),
    piecewise.Abs: [near(lambda o, x: o.abs(x), MIXED), kink(lambda o, x: o.abs(x), [[0.0, -2.0]], [[0.0, -1.0]])],
    piecewise.Maximum: [*binary("maximum"), kink(lambda o, x, y: o.maximum(x, y), [[1.0, 2.0]] * 2, [[0.5, 0.5]] * 2)],
    piecewise.Minimum: [*binary("minimum"), kink(lambda o, x, y: o.minimum(x, y), [[1.0, 2.0]] * 2, [[0.5, 0.5]] * 2)],
    piecewise.Clamp: [
        near(lambda o, x: o.clip(x, -0.5, 0.9), MIXED),
        near(lambda o, x: o.clip(x, 0.1), MIXED),
        near(lambda o, x: o.clip(x, None, 0.1), MIXED),
        near(lambda o, x: o.clip(x, [[0.1], [0.5]], 0.9), MIXED[0]),
        kink(lambda o, x: o.clip(x, -1.0, 2.0), [[-1.0, 0.0, 2.0, 3.0]], [[1.0, 1.0, 1.0, 0.0]]),
    ],
    piecewise.Where: [
        smooth(lambda o, x, y: o.where(MASK, x, y), (2, 3), (3,)),
        smooth(lambda o, x, y: o.where(MASK, x, y), (2, 1), (2, 2, 3)),
        smooth(lambda o, x: o.where(MASK, x, 0.5), (2, 3)),
        smooth(lambda o, y: o.where(MASK, 0.5, y), (2, 3)),
    ],
    reductions.Sum: reduction("sum"),
    reductions.Mean: reduction("mean"),
    reductions.Amax: [
        *reduction("max"),
        *reduction("min"),
        kink(lambda o, x: o.max(x, -1), [[[1.0, 2.0, 2.0], [3.0, 3.0, 3.0]]], [[[0.0, 0.5, 0.5], [1 / 3] * 3]]),
        kink(lambda o, x: o.min(x), [[[1.0, 2.0], [1.0, 3.0]]], [[[0.5, 0.0], [0.5, 0.0]]]),
    ],
    linear.Matmul: [
        smooth(lambda o, x, y: o.matmul(x, y), *shapes)
        for shapes in [
            *[((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 2)), ((2, 2, 3), (3, 2)), ((2, 2, 3), (3,))],
            *[((3,), (2, 3, 2)), ((2, 3), (2, 3, 2)), ((2, 1, 2, 3), (3, 3, 1)), ((1, 2, 3), (2, 3, 2))],
        ]
    ],
    linear.LinalgVectorNorm: [*reduction("norm"), kink(lambda o, x: o.norm(x), [[0.0, 0.0]], [[0.0, 0.0]])],
    shaping.Reshape: [smooth(lambda o, x: o.reshape(x, (3, -1)), (2, 3))],
    shaping.Transpose: [
        smooth(lambda o, x: o.transpose(x), (2, 3)),
        smooth(lambda o, x: o.transpose(x, (1, -1, 0)), (2, 3, 4)),
    ],
    shaping.Expand: [smooth(lambda o, x: o.broadcast_to(x, (2, 3)), shape) for shape in [(), (3,), (2, 1)]],
    shaping.Clone: unary("clone"),
    shaping.ToCopy: [kink(lambda o, x: o.astype(x, np.float32), [MIXED], [np.ones(MIXED.shape)])],
    shaping.Stack: [
        smooth(lambda o, x, y: o.stack([x, y], -1), (2, 3), (2, 3)),
        smooth(lambda o, x: o.stack([np.ones(2), x]), (2,)),
    ],
    shaping.Cat: [
        smooth(lambda o, x, y: o.concatenate([x, y], -1), (2, 1), (2, 3)),
        smooth(lambda o, x: o.concatenate([x, np.ones((1, 2))]), (2, 2)),
    ],
    indexing.Index: [
        smooth(lambda o, x: o.getitem(x, (-1, None, ...)), (2, 3)),
        smooth(lambda o, x: o.getitem(x, MASK), (2, 3)),
        smooth(lambda o, x: o.getitem(x, ROWS), (2, 3)),
        smooth(lambda o, x: o.getitem(x, (slice(1), ROWS)), (2, 3)),
    ],
    indexing.IndexPut: [
        smooth(lambda o, x, y: o.put(x, 1, y), (2, 3), ()),
        smooth(lambda o, x, y: o.put(x, 1, y), (2, 3), (1, 3)),
        smooth(lambda o, x, y: o.put(x, MASK, y), (2, 3), (3,)),
        smooth(lambda o, x, y: o.put(x, ROWS, y), (4, 2), (4, 2)),
        smooth(lambda o, x, y: o.put(x, ROWS, y), (4,), (1,)),
        smooth(lambda o, y: o.put(np.zeros(3), ROWS[:2], y), (2,)),
        smooth(lambda o, x: o.put(x, ROWS[:2], 0.7), (3,)),
    ],
}
CHECKS[indexing.IndexAdd] = CHECKS[indexing.Index]

HELPERS: list[tuple[ModuleType, tuple[str, ...], list[Check]]] = [
    (operands, ("broadcast",), [*CHECKS[algebra.Add], *CHECKS[shaping.Expand]]),
    (operands, ("_one_operand.backward",), CHECKS[functions.Log]),
    (operands, ("_two_operands.backward", "_two_operands.jvp"), [*CHECKS[algebra.Sub], *CHECKS[algebra.Mul]]),
    (algebra, ("slope_in_base", "slope_in_exponent"), CHECKS[algebra.Pow]),
    (piecewise, ("_share_of_larger",), CHECKS[piecewise.Maximum]),
    (reductions, ("_shares",), CHECKS[reductions.Amax]),
    (reductions, ("broadcast_back", "keepdims_shape"), [*CHECKS[reductions.Sum], *CHECKS[reductions.Amax]]),
    (indexing, ("_add_at",), CHECKS[indexing.Index]),
]

NAMES = ("backward", "jvp", "direction", "inside")
"""Names of methods that are a rule or part of one."""

EQUIVALENT = {
    "_share_of_larger: x < y -> x <= y": "ties are shared before the order matters",
    "Matmul.backward: x.ndim > 2 -> x.ndim *": "tells only whether the product sums over a batch, or unbroadcast does",
    "_unbroadcast: lead < 0 -> lead <= 0": "no axes of length 1 are put in front",
}


def rules(operation: type) -> tuple[str, ...]:
    """List the rules of a class: its own methods, or the keywords of `elementwise`."""
    if issubclass(operation, operands.OptionalTangents) and operation is not linear.Matmul:
        return (f"{operation.__name__}.[xy]",)
    own = {name: vars(operation).get(name) for name in NAMES}
    paths = {name: f"{operation.__qualname__}.{name}" for name in NAMES}
    return tuple([paths[name] for name, rule in own.items() if rule and rule.__func__.__qualname__ == paths[name]])


def all_of(checks: list[Check]) -> Check:
    def check(o: Any) -> None:
        for each in checks:
            each(o)

    return check


def broadcasting(module: Any) -> None:
    """Check that adjoints are summed over the axes along which an operand was broadcast, for all operations."""
    with patch.object(node_rules, "_unbroadcast", module._unbroadcast):
        all_of([*CHECKS[algebra.Mul], *CHECKS[indexing.IndexPut]])(ops)


def sweeps() -> Iterator[Sweep]:

    table = [(sys.modules[c.__module__], rules(c), checks) for c, checks in CHECKS.items()]
    for module, names, checks in [*table, *HELPERS]:
        yield Sweep(module, names, all_of(checks), package=ops, equivalent=EQUIVALENT)
    yield Sweep(node_rules, ("_unbroadcast",), broadcasting, equivalent=EQUIVALENT)


SWEEPS = list(sweeps())
