"""The tangent that follows from the source of an element function is the derivative of what it computes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simphys.autograd import linearize, tensor
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import forward_rules
from simphys.numerics.forward_mode import _derive, derive
from simphys.numerics.in_python import in_python

from ..helpers.elements import define
from ..helpers.elements import element as in_kernels

SCALE = 1.5


@no_type_check
def arithmetic(x, y, c):
    return -(x - y) / (x * c + 2) + x**2 * y**3 - c, (x + y) ** c


@no_type_check
def functions(x, y, c):
    s = ti.sin(x) * ti.cos(y) + ti.tan(0.3 * x) - ti.exp(-x) + ti.log(y) * ti.sqrt(x + y)
    s += ti.rsqrt(x + y) * abs(y - 2 * x) * max(c, x) + (x + 2 * y) % (c + 0.05) + float(pow(x, 2) + int(c))
    return s + ti.tanh(x) - ti.asin(0.3 * x) * ti.acos(0.3 * y), ti.atan2(x, y) + ti.pow(x, c) * ti.abs(x - 3 * y)


@no_type_check
def vectors(x, y, c):
    a, b = ti.Vector([x, y, x * y]), ti.Vector([c, x, 1.0])
    n, M = a.cross(b), a.outer_product(b)
    w = ti.Vector([x * a[k] + c for k in ti.static(range(3))])
    r = w[1] * w[2] + w.normalized()[0] + n.norm() + a.norm_sqr() + (M @ a - M.transpose() @ b).sum() + M.trace()
    A = ti.Matrix([[x, y], [c, 2.0]])
    return r + (A.inverse() @ ti.Vector([x, 1.0])).dot(ti.Vector([1.0, y])), a[0] * b[1] - n[2]


@no_type_check
def branches(x, y, c):
    f, g = x, 0.0 * x
    if x * y > c:
        f, g = x * y, y
    elif ti.static(SCALE > 1):
        g = SCALE * x
    else:
        f = 1.0
    return f * (y if x > c else x * x), g + ti.max(x, c) * ti.min(y, x) + ti.select(x < y, x, 2 * y)


@no_type_check
def loops(x, y, c):
    v = ti.Vector([x, y, x + y, c])
    total = 0 * x
    for i in ti.static(range(v.n)):
        for j in range(i):
            v[i] += 0.5 * v[j] * v[i]
            if i == 2:
                continue
            total -= v[j] / (1 + v[i])
        v[i] *= y
    return total, v[3]


@ti.func
@no_type_check
def inner(a, b):
    square = a * a
    return square + b, b * square


@no_type_check
def calls(x, y, c):
    p, _ = inner(x, c)
    _, q = inner(c, y)
    r, s = inner(p * x, q)
    return r - c, s * in_two(x, y)


@ti.func
@no_type_check
def in_two(a, b):
    once = a * b
    once = once * a
    return once


@no_type_check
def shapes(x, y, c):
    """Sums and choices of numbers and vectors, of which one moves."""
    still, moving = ti.Vector([c, 2.0]), ti.Vector([x, y])
    spread = (still + x) * (y - still) + ti.max(moving, 0.7) - ti.select(moving > 0.7, moving, 0.0) + abs(moving)
    kept = still
    kept[0] += x
    return spread[0] * kept[0], (spread + (x if c > 1 else 2.0)).sum()


CONSTANT = ti.Vector([0.3, -2.0])
sine = ti.sin


@no_type_check
def written(x, y, c):
    """Names that change their meaning, or have one for the derivation, and choices between sums."""
    c += x * y
    x, y = y, ti.select(x > 9, x, c - 1) + (c - 2 if c > x else x)
    dx_, jvp_in_two = in_two_b(b=x, a=y), ti.max(x, 2 * y, SCALE + 1)
    return dx_ * x - c, jvp_in_two * y + ti.min(x, SCALE - 2)


@ti.func
@no_type_check
def in_two_b(a, b):
    return in_two(b=b, a=a) + in_two(b, 2.0)


@no_type_check
def entries(x, y, c):
    v, M = ti.Vector([c, y], dt=ti.f64), ti.Matrix([[x * i + j * y for i in range(2)] for j in range(2)])
    put = in_entry(v, x) * v.yx + CONSTANT.dot(v) * M[1, :] + v.norm(0.3) + M.norm_sqr() * M.norm()
    M[0, 1], M[1, 1] = M[1, 1] * x, M[0, 1]
    return put[0] + M[0, 1] * M[1, 1], put[1] * sine(x) + x // 0.25 + +y


@ti.func
@no_type_check
def in_entry(v, a):
    w = 1.0 * v
    w[0] = a * a
    a *= w[0]
    return w * a


FORMULAS = [arithmetic, functions, vectors, branches, loops, calls, written, entries]


def push(function: Callable[..., Any], point: Any, direction: Any) -> np.ndarray[Any, Any]:
    """The derived tangent by the parameters whose direction is not None."""
    names = list(inspect.signature(function).parameters)
    moving = [name for name, d in zip(names, direction, strict=True) if d is not None]
    found = in_python(ti.func(derive(function, moving)))(*point, *[d for d in direction if d is not None])
    return np.array(found, np.float64)


def differences(function: Callable[..., Any], point: Any, direction: Any, h: float = 1e-5) -> np.ndarray[Any, Any]:
    """Central differences of fourth order."""
    run, step = in_python(function), [d or 0.0 for d in direction]
    ends = [run(*[x + s * h * d for x, d in zip(point, step, strict=True)]) for s in (1, -1, 2, -2)]
    a, b, c, e = (np.array(end, np.float64) for end in ends)
    return (8 * (a - b) - (c - e)) / (12 * h)


@pytest.mark.parametrize("function", FORMULAS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("direction", [(1.0, 0.0, None), (0.0, 1.0, None), (0.7, -0.4, None), (None, 1.0, None)])
@pytest.mark.parametrize("point", [(0.6, 0.9, 1.3), (1.4, 0.5, 0.6), (0.8, 1.7, 0.9)])
def test_it_is_the_derivative(function: Any, direction: Any, point: Any) -> None:
    expected = differences(function, point, direction)
    np.testing.assert_allclose(push(function, point, direction), expected, rtol=1e-8, atol=1e-8)


NUMBERS = st.one_of(st.sampled_from(["x", "y", "c"]), st.floats(0.5, 2).map(lambda number: f"{number:.2f}"))


def _combine(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.builds(lambda a, op, b: f"({a} {op} {b})", parts, st.sampled_from("+-*"), parts)
    quotient = st.builds(lambda a, b: f"({a} / (2.5 + ti.sin({b})))", parts, parts)
    unary = st.builds(lambda f, a: f"ti.{f}({a})", st.sampled_from(["sin", "cos", "tanh"]), parts)
    chosen = st.builds(lambda a, b, d: f"(-{a} if c > {b:.2f} else {d} - c)", parts, st.floats(0.5, 2), parts)
    return st.one_of(binary, quotient, unary, chosen)


@given(st.lists(st.recursive(NUMBERS, _combine, max_leaves=5), min_size=2, max_size=4), st.booleans())
def test_random_formulas(formulas: list[str], branched: bool) -> None:
    lines = [f"    {'xyt'[k % 3]} = {formula}" for k, formula in enumerate(formulas)]
    if branched:
        lines[1] = f"    if c > 1:\n    {lines[1]}"
    text = "\n".join(["def formula(x, y, c):", "    t = x", *lines, "    return x + t, x * y"]) + "\n"
    point, direction, formula = (0.613, 0.917, 1.371), (0.7, -0.4, None), define(text, ti=ti)
    expected = differences(formula, point, direction)
    found = push(formula, point, direction)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * (1 + abs(expected).max()), err_msg=text)


def push_in_kernels(function: Any) -> np.ndarray[Any, Any]:
    """The derived tangent at x = 0.6, y = 0.9, c = 1.3 in the direction of dx = 0.7, dy = -0.4."""
    value, tangent = ti.func(function), ti.func(derive(function, ["x", "y"]))

    @no_type_check
    def pack(real: Any) -> SimpleNamespace:
        @ti.func
        def f(x):
            a, b = value(x[0], x[1], 1.3)
            return ti.Vector([a, b])

        @ti.func
        def jvp(x, dx):
            a, b = tangent(x[0], x[1], 1.3, dx[0], dx[1])
            return ti.Vector([a, b])

        return SimpleNamespace(f=f, jvp=jvp, adj=None)

    x = tensor(np.array([[0.6, 0.9]]), requires_grad=True)
    (found,) = linearize([in_kernels(pack, 2)(x)], [x])(np.array([[0.7, -0.4]]))
    return np.asarray(found)[0]


@pytest.mark.parametrize("function", [*FORMULAS, shapes], ids=lambda function: function.__name__)
def test_kernels_compute_what_python_does(function: Any) -> None:
    """Vectors and numbers have types there."""
    expected = push(function, (0.6, 0.9, 1.3), (0.7, -0.4, None))
    np.testing.assert_allclose(push_in_kernels(function), expected, rtol=1e-12)


@pytest.mark.parametrize("name", sorted(forward_rules._SLOPES))
def test_a_wrong_slope_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    point, direction = (0.6, 0.9, 1.3), (0.7, -0.4, None)
    expected = push(functions, point, direction)
    monkeypatch.setitem(forward_rules._SLOPES, name, f"(0.9 * {forward_rules._SLOPES[name]})")
    _derive.cache_clear()
    assert not np.allclose(push(functions, point, direction), expected, rtol=1e-4)
    _derive.cache_clear()


@no_type_check
def kinks(x, v):
    return ti.max(x, 2.0), ti.max(2.0, x), ti.min(x, 2.0), ti.abs(x - 2), ti.max(x, 3 * x - 4), v.norm()


def test_at_kinks_what_stands_still_wins() -> None:
    """At a tie of two that move the second one counts; absolute value and length are flat at 0."""
    found = in_python(ti.func(derive(kinks, ["x", "v"])))(2.0, ti.Vector([0.0, 0.0]), 1.0, ti.Vector([1.0, 0.0]))
    assert [float(d) for d in found] == [0.0, 0.0, 0.0, 0.0, 3.0, 0.0]


@no_type_check
def spreads(v, k):
    return v + k, k - v, v * k


def test_the_sum_of_a_number_that_moves_and_a_vector_is_a_vector() -> None:
    v = ti.Vector([3.0, 5.0])
    found = in_python(ti.func(derive(spreads, ["k"])))(v, 2.0, 1.0)
    assert [list(d) for d in found] == [[1.0, 1.0], [1.0, 1.0], [3.0, 5.0]]


@no_type_check
def determinants(x, y, c):
    M = ti.Matrix([[x, y], [c, x * y]])
    return M.determinant(), M[0, 0] * M[1, 1] - M[0, 1] * M[1, 0]


def test_the_determinant_in_kernels() -> None:
    found = push_in_kernels(determinants)
    assert found[0] == pytest.approx(found[1], rel=1e-12)
