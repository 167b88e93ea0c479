"""Loops over the lines of a grid compute the same in both forms of their text, alone and over time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import runtime
from simphys.numerics.stencil import first_difference, second_difference
from simphys.simulators.wave.fused import lines
from simphys.simulators.wave.fused.line_text import ALONG, by_entry, by_vector
from simphys.simulators.wave.fused.lines import LineLoop, array_arguments, compile_lines
from simphys.simulators.wave.layout import Layout

from ....helpers.rounding import assert_equal_but_for_rounding

Array = np.ndarray[Any, Any]
FORMS = pytest.mark.parametrize("form", [by_entry, by_vector])


@pytest.fixture
def compile_in(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Compile a loop with one form of text, whatever the compiler."""

    def compile_form(form: Any, loop: LineLoop, **options: Any) -> Any:
        monkeypatch.setattr(lines, "by_entry", form)
        monkeypatch.setattr(lines, "by_vector", form)
        return compile_lines(loop, {}, parallel=False, spread=1, **options)

    return compile_form


def differences(values: Array, coefficients: list[float], axis: int, sign: int) -> Array:
    """Sum coefficients times neighbours along an axis; beyond the sides there are zeros."""
    reach = len(coefficients)
    padded = np.pad(values, [(reach, reach) if a == axis else (0, 0) for a in range(values.ndim)])
    count = values.shape[axis]

    def shifted(by: int) -> Array:
        return np.take(padded, np.arange(reach + by, reach + by + count), axis)

    return sum([c * (shifted(k) + sign * shifted(-k)) for k, c in enumerate(coefficients, 1)], np.zeros_like(values))


@FORMS
@pytest.mark.parametrize("order", [2, 8])
@pytest.mark.parametrize("shape", [(33,), (5, 16), (3, 4, 7)], ids=str)
def test_differences_along_all_axes(form: Any, shape: tuple[int, ...], order: int, compile_in: Any) -> None:
    real = runtime.real_dtype()
    layout = Layout(shape, order // 2)
    u = np.random.default_rng(0).normal(size=(2, *shape)).astype(real)
    text = f"other[other_i] + {lines.laplace('u', len(shape), order)}"
    loop = compile_in(form, LineLoop("sums", {"other": text}, grid=("u", "other")))
    padded, other = layout.pad(u), layout.pad(0 * u + 1)
    numbers = {**layout.numbers("grid"), **layout.count_lines(), "members": 2, "pieces": 1}
    loop.bind({**numbers, **array_arguments({"u": padded, "other": other})})()
    c_0, *others = second_difference(order)
    expected = 1 + len(shape) * c_0 * u
    for axis in range(len(shape)):
        expected = expected + np.array([differences(each, list(others), axis, 1) for each in u])
    assert_equal_but_for_rounding(layout.view_cells(other), expected, ulps=200)


@FORMS
@pytest.mark.parametrize("on_last_axis", [False, True])
def test_slopes_along_one_axis_with_profiles(form: Any, on_last_axis: bool, compile_in: Any) -> None:
    real, shape, axis = runtime.real_dtype(), (6, 32), int(on_last_axis)
    layout = Layout(shape, 2)
    random = np.random.default_rng(0)
    u, a = random.normal(size=(1, *shape)).astype(real), random.normal(size=shape[axis]).astype(real)
    text = f"a_n * {lines.first('u', ALONG, 4)}"
    made = LineLoop("slopes", {"other": text}, grid=("u", "other"), profiles=("a",))
    loop = compile_in(form, made, on_last_axis=on_last_axis)
    padded, other = layout.pad(u), layout.pad(0 * u)
    numbers = {**layout.numbers("grid"), **layout.count_lines(), "members": 1, "pieces": 1}
    numbers |= {"stride": layout.strides[axis], "line_step": 1, "width": shape[axis]}
    loop.bind({**numbers, "a": a, **array_arguments({"u": padded, "other": other})})()
    slopes = differences(u[0], list(first_difference(4)), axis, -1)
    expected = slopes * (a if on_last_axis else a[:, None])
    assert_equal_but_for_rounding(layout.view_cells(other)[0], expected, ulps=100)
