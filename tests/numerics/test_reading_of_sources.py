"""The sources of element functions are read for what depends on what, and for what is zero: in doubt, nothing is."""

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from simphys.autograd.errors import InputError
from simphys.autograd.kernels.runtime import ti
from simphys.numerics.dependencies import find_dependencies
from simphys.numerics.element import element
from simphys.numerics.linear import find_linear
from simphys.numerics.vanishing import find_vanishing
from simphys.numerics.writes import find_written

G = 9.81


@ti.func
def put(target: ti.template(), value):
    target = value  # noqa: F841 - it is written where the caller has it


@ti.func
def double(value):
    return 2.0 * value


def read(function: Callable[..., Any]) -> ast.FunctionDef:
    definition = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(definition, ast.FunctionDef)
    return definition


def captured(x, a):
    return G * x, G * a


def annotated(x, a):
    y: ti.f64 = x
    return y, a


def helped(x, a):
    y = 0.0
    put(y, x)
    return y, a


def added(x, a):
    y = 0.0
    ti.atomic_add(y, x)
    return y, a


def unknown(x, a):
    y = 0.0
    somewhere.else_entirely(y, x)  # type: ignore[name-defined]  # noqa: F821 - that is the point
    return y, a


def walrus(x, a):
    return (y := x) + 0.0 * y, a


@pytest.mark.parametrize("function", [captured, annotated, helped, added, unknown, walrus])
def test_a_result_vanishes_only_with_all_that_it_is_made_of(function: Callable[..., Any]) -> None:
    definition, written = read(function), find_written(function, read(function))
    assert find_vanishing(definition, {"a"}, written) == (False, True)
    first, second = find_dependencies(definition, ("x", "a"), written)
    assert (set(first), set(second)) == ({"x"}, {"a"})


def numbers_alone(x):
    return G, 0.0 * x


def test_a_captured_number_does_not_vanish_and_a_zero_does() -> None:
    assert find_vanishing(read(numbers_alone), {"x"}) == (False, True)
    assert find_vanishing(read(numbers_alone), ()) == (False, True)


def pure(x, a):
    return double(x), a.dot(x)


def filled(x, a):
    y = 0.0 * x
    y.fill(a)
    return y, x


def test_calls_write_what_they_take_by_reference_and_nothing_else() -> None:
    assert find_written(pure, read(pure)) == ()
    assert [each.name for each in find_written(helped, read(helped))] == ["y"]
    assert [each.name for each in find_written(added, read(added))] == ["y"]
    assert [each.name for each in find_written(unknown, read(unknown))] == ["y", "x"]
    assert [each.name for each in find_written(filled, read(filled))] == ["y"]


def breaks(x, m):
    total = 0.0
    for i in range(5):
        if i > m:
            break
        total += x
    return total


def continues(x, m):
    total = 0.0
    for i in range(5):
        if i > m:
            continue
        total += x
    return total


def breaks_out_of_while(x, m):
    total = x
    while total < 5.0:
        total += 1.0
        if m > 0.0:
            break
    return total


def returns_early(x, m):
    if m > 0.0:
        return 1.0
    return x


@pytest.mark.parametrize("function", [breaks, continues, breaks_out_of_while, returns_early])
def test_a_result_depends_on_what_decides_how_far_a_function_runs(function: Callable[..., Any]) -> None:
    (found,) = find_dependencies(read(function), ("x", "m"), ())
    assert found == frozenset({"x", "m"})


def two_or_one(x):
    if x > 0.0:
        return x, x
    return x


def nothing(x):
    x += 1.0


@pytest.mark.parametrize(
    ("function", "message"), [(two_or_one, "it returns 2 values; found 1"), (nothing, "no return")]
)
def test_branches_return_the_same_number_of_results(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        find_dependencies(read(function), ("x",), ())


def assigned_within(x, a):
    return (y := x) * y, a


def test_a_product_of_a_name_assigned_within_it_is_not_linear() -> None:
    assert find_linear(read(assigned_within), ("x",)) == ()


def test_an_element_without_a_source_text_is_refused() -> None:
    made: dict[str, Any] = {}
    exec("def drag(v): return -v", made)
    with pytest.raises(InputError, match=r"element drag: .* source text can be read; found OSError.* not by exec"):
        element(made["drag"])
    shifted = (lambda v: v + 1.0, None)[0]
    with pytest.raises(InputError, match=r"element .*<lambda>: must be a function .*Write it with `def`"):
        element(shifted)
