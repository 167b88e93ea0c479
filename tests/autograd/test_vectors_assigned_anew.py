"""A vector that is assigned anew after a branch has its new value, or is refused: a pass of the compilers loses it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import InputError, kernel, runtime, tensor
from simphys.autograd.kernels.runtime import ti
from simphys.numerics.assigned_anew import find_assigned_anew
from simphys.numerics.in_python import in_python
from simphys.substep import element, per_element


@no_type_check
def by_a_branch(a, b, k):
    v, x = ti.Vector([a, b]), k
    if v[0] < v[1]:
        x = 5.0
    v = x * v
    return v[0] * 100 + v[1]


@no_type_check
def by_a_choice(a, b, k):
    v = ti.Vector([a, b])
    x = 5.0 if v[0] < v[1] else k
    v = x * v
    return v[0] * 100 + v[1]


@no_type_check
def in_place(a, b, k):
    v, x = ti.Vector([a, b]), k
    t = v[0] - v[1]
    if t < 0:
        x = 5.0
    v *= x
    return v[0] * 100 + v[1]


@no_type_check
def of_its_length(a, b, k):
    v, x = ti.Vector([a, b, 0.0]), k
    if v[0] < v[1] + v[2]:
        x = 5.0
    v = v / v.norm() * x
    return v[0] * 100 + v[1] + v[2]


@no_type_check
def of_a_matrix(a, b, k):
    M = ti.Matrix([[k, a], [b, k]])
    x = k if M[0, 1] < M[1, 0] else 2.0
    M = x * ti.Matrix([[0.0, -1.0], [1.0, 0.0]])
    return k * x if M[0, 1] < M[1, 0] else k


@no_type_check
def by_parts(v, k):
    x = 2 * v
    if v[0] < k:
        x = v
    y = v + x
    v[0] = 1.0
    return y + v


FUNCTIONS = [by_a_branch, by_a_choice, in_place, of_its_length, of_a_matrix]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_it_is_found(function: Callable[..., Any]) -> None:
    assert find_assigned_anew(_read(function)) in ("v", "M")


def test_others_are_not() -> None:
    assert find_assigned_anew(_read(by_parts)) is None


@ti.func
@no_type_check
def slow(v, k):
    if v[0] < v[1]:
        k = 0.5 * k
    v = k * v
    return v


@pytest.mark.gpu
def test_a_sub_step_on_a_device_says_so() -> None:
    """Also of a function that its element calls."""

    @element
    def slow_down(v, k):
        return slow(v, k)

    @slow_down.adjoint
    def adj_slow_down(v, k, g):
        return k * g, v.dot(g)

    declared = per_element(slow_down, over="bodies", own={"v": "velocity", "k": "factor"})
    inputs = tensor(np.array([[1.0, 0.5]])), tensor(np.array([0.9]))
    if runtime.may_lose_vectors(runtime.settings().arch):
        with pytest.raises(InputError, match=r", slow: v is not assigned as a whole .* another name"):
            declared.apply(None, *inputs)
    else:
        np.testing.assert_allclose(declared.apply(None, *inputs).data, [[0.9, 0.45]], rtol=1e-6)


def _read(function: Callable[..., Any]) -> ast.FunctionDef:
    found = ast.parse(inspect.getsource(function)).body[0]
    assert isinstance(found, ast.FunctionDef)
    return found


@pytest.mark.skipif(runtime.compiler == "taichi", reason="Taichi cannot do without the pass: it refuses such functions")
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_it_has_its_new_value(function: Callable[..., Any]) -> None:
    numbers, real = (1.0, 0.5, 0.9), runtime.real()
    called, expected = ti.func(function), in_python(ti.func(function))(*numbers)

    @no_type_check
    def compute(x, y):
        for i in range(1):
            y[i] = called(x[0], x[1], x[2])

    array = ti.types.ndarray(dtype=real, ndim=1)
    compute.__annotations__ = {"x": array, "y": array}
    found = np.zeros(1, runtime.real_dtype())
    kernel(compute)(np.array(numbers, runtime.real_dtype()), found)
    assert found[0] == pytest.approx(expected, rel=1e-6)
