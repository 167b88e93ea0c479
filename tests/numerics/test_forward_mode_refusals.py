"""What forward mode does not read is refused, with its place and the reason."""

import inspect
from textwrap import indent
from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import MissingJvp, linearize, tensor
from simphys.autograd.kernels.runtime import ti
from simphys.numerics.forward_mode import derive
from simphys.numerics.forward_rules import Underivable
from simphys.substep import element, per_element

from ..helpers.elements import define

dx = 0.1


@ti.func
@no_type_check
def fill(v, x):
    v[0] = x


@ti.func
@no_type_check
def filled(v: ti.template(), x):
    v[0] += x
    return 0.0


@ti.func
@no_type_check
def put(v: ti.template(), w: ti.template(), x):
    v[0] = x
    w[0] = 2 * x


@ti.func
@no_type_check
def power(x, n: ti.template()):
    return x * power(x, n - 1) if ti.static(n > 0) else 1.0


@ti.func
@no_type_check
def power_of(x):
    return x, x * x


def of_python(x: Any) -> Any:
    return x


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("y = x\nwhile y * y > 2: y = 0.5 * (y + 2 / y)\nreturn y", r"`while y \* y > 2:` has no rule"),
        ("return ti.Vector([x, 1.0]).max()", "the method max"),
        ("return ti.Vector([x, 1.0]).normalized(0.1)", "has no rule"),
        ("return ti.Vector([y for y in (x, 1.0) if y > 0])", "has no rule"),
        ("y = 0.0\nfor t in ti.static((x, 2 * x)): y += t\nreturn y", "has no rule"),
        ("return np.sinh(x)", "np.sinh is no function that the compiler reads"),
        ("return of_python(x)", "reads: decorate it by @ti.func"),
        ("dx = 2.0\nreturn x * dx", "dx has a meaning here"),
        ("y = x\nreturn y * dx", "dx has a meaning here"),
        ("v = ti.Vector([0.0, 1.0])\nfill(v, x)\nreturn v[0]", r"`fill\(v, x\)` has no rule"),
        ("v = ti.Vector([0.0, 1.0])\nk = filled(v, x)\nreturn v[0] + k", r"filled\(v, x\) may write v"),
        ("ti = 2.0\nreturn max(x, ti)", "ti has a meaning here"),
        ("return power(x, 3)", "power calls itself"),
        ("return ti.sin(x=x)", "has no rule"),
        ("return ti.Vector([x, x], dt=ti.i32)[0]", "a list of whole numbers"),
        ("k = ti.i32\nreturn ti.cast(x, k)", "the type k"),
        ("y, *z = power_of(x)\nreturn y", "has no rule"),
        ("y = 0.0\nif (t := x) > 0: y = t\nreturn y", "has no rule"),
        ("y = x\nreturn y + ti.Vector([y for y in range(3)])[2]", "y is counted"),
        ("v, k = ti.Vector([x, x]), 0\nk, v[k] = 1, 2 * x\nreturn v[0]", "assigns an index"),
    ],
)
def test_what_it_does_not_read_has_no_tangent(lines: str, reason: str) -> None:
    with pytest.raises(Underivable, match=reason):
        derive(define("def formula(x):\n" + indent(lines, "    ") + "\n", **globals()), ["x"])


def test_arrays_that_have_no_tangent_get_nothing_that_moves() -> None:
    with pytest.raises(Underivable, match="w stands still, and gets what moves"):
        derive(put, ["v", "x"])
    with pytest.raises(Underivable, match="filled writes an array, and returns a value"):
        derive(filled, ["v", "x"])


def test_parameters_with_defaults_are_refused() -> None:
    with pytest.raises(Underivable, match="formula has parameters with defaults"):
        derive(define("def formula(x, k=2.0):\n    return k * x\n"), ["x"])


@ti.func
@no_type_check
def half(x):
    while x > 1:
        x = x / 2
    return x


def test_the_place_of_an_error_is_in_the_function_that_is_called() -> None:
    with pytest.raises(Underivable) as caught:
        derive(define("def formula(x):\n    return half(x)\n", half=half), ["x"])
    line = inspect.getsourcelines(inspect.unwrap(half))[1] + 3
    assert caught.value.place == f"{__file__}:{line}"


@element
@no_type_check
def root(x, p):
    y = 1.0 + 0.0 * x
    while ti.abs(y * y - x) > p:
        y = 0.5 * (y + x / y)
    return y


@root.adjoint
@no_type_check
def adj_root(x, p, adj_y):
    return 0.5 / ti.sqrt(x) * adj_y


Root = per_element(root, over="numbers", own={"x": "number"}, constant={"p": "precision"})


def test_a_sub_step_without_a_tangent_says_why() -> None:
    x = tensor(np.array([2.0, 3.0]), requires_grad=True)
    reason = r"root has no tangent: .*test_forward_mode_refusals.py:\d+: `while .*` has no rule .*\. Add @root.tangent"
    with pytest.raises(MissingJvp, match=reason):
        linearize([Root.apply(None, x, 1e-13)], [x])
