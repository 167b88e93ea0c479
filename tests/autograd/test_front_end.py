"""The front end of the compiler reads each source once, with the same messages as before."""

import textwrap
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import runtime
from simphys.autograd.kernels import front_end
from simphys.autograd.kernels.launch import kernel
from simphys.autograd.kernels.runtime import compiler, ti

needs_taichi = pytest.mark.skipif(compiler != "taichi", reason="quadrants has a front end of its own")


@no_type_check
def inlined(count: int) -> Any:
    """A kernel that calls a function this number of times, at compile time."""

    @ti.func
    def twice(x):
        return 2 * x

    @kernel
    def run(x: ti.types.ndarray(dtype=ti.f64, ndim=1)):
        for i in range(x.shape[0]):
            for _ in ti.static(range(count)):
                x[i] = twice(x[i])

    return run


@no_type_check
def of_a_missing_function() -> Any:
    @kernel
    def wrong(x: ti.types.ndarray(dtype=ti.f64, ndim=1)):
        for i in range(x.shape[0]):
            x[i] = ti.missing(x[i])

    return wrong


@needs_taichi
def test_the_source_of_a_function_that_is_inlined_often_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = ti.lang.kernel_impl
    read: list[str] = []

    def reading(function: Any) -> Any:
        read.append(function.__name__)
        return inspected(function)

    inspected = kernels.getsourcelines
    monkeypatch.setattr(kernels, "getsourcelines", front_end._by_function(reading))
    x = np.ones(3)
    inlined(5)(x)
    assert (x == 32).all()
    assert read == ["run", "twice"]


@needs_taichi
def test_a_message_shows_the_same_place_as_without() -> None:
    long = "    y = " + " + ".join(["a[i]"] * 30)
    for text in (long, "  x = 1  # a comment", "", " " * 95 + "^" * 9, "\tx\n"):
        assert front_end._Wrapper(width=80).wrap(text) == textwrap.TextWrapper(width=80).wrap(text)
    with pytest.raises(
        ti.TaichiCompilationError, match=r"(?s)line \d+, in wrong:.*x\[i\] = ti.missing\(x\[i\]\).*\^\^\^"
    ):
        of_a_missing_function()(np.ones(3))


def test_a_release_that_differs_is_left_alone() -> None:
    other = SimpleNamespace(lang=SimpleNamespace(kernel_impl=SimpleNamespace(textwrap=textwrap)))
    front_end.remember_sources(other)
    assert vars(other.lang.kernel_impl) == {"textwrap": textwrap}
    if compiler == "taichi":
        assert ti.lang.kernel_impl.getsourcelines.__module__ == front_end.__name__
    assert runtime.initialised()
