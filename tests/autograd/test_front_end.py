"""The front end of the compiler reads each source once, with the same messages as before."""

import textwrap
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import runtime
from simphys.autograd.kernels import front_end, stored
from simphys.autograd.kernels.launch import kernel
from simphys.autograd.kernels.runtime import compiler, ti


@pytest.fixture(autouse=True)
def _runs_for_kernels_in_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "verifying", True)


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


READER = {"taichi": ("kernel_impl", "getsourcelines"), "quadrants": ("_func_base", "get_source_info_and_src")}
"""Module and name of the function by which a compiler reads the source of a function."""


def test_the_source_of_a_function_that_is_inlined_often_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    module, name = READER[compiler]
    home = getattr(ti.lang, module)
    read: list[str] = []

    def reading(function: Any) -> Any:
        read.append(function.__name__)
        return inspected(function)

    inspected = getattr(home, name)
    monkeypatch.setattr(home, name, front_end._by_function(reading))
    x = np.ones(3)
    inlined(5)(x)
    assert (x == 32).all()
    assert read == ["run", "twice"]


def test_a_function_is_walked_through_once_where_it_is_inlined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice (x) is inlined five times; Quadrants by itself would walk through each of these twice."""
    positions = ti.lang.ast.ast_transformer.ASTTransformer
    returns = []

    def counting(ctx: Any, node: Any) -> Any:
        returns.append(node.lineno)
        return build(ctx, node)

    build = positions.build_Return
    monkeypatch.setattr(positions, "build_Return", staticmethod(counting))
    inlined(5)(np.ones(3))
    assert len(returns) == 5


def test_a_message_shows_the_same_place_as_without() -> None:
    long = "    y = " + " + ".join(["a[i]"] * 30)
    for text in (long, "  x = 1  # a comment", "", " " * 95 + "^" * 9, "\tx\n"):
        assert front_end._Wrapper(width=80).wrap(text) == textwrap.TextWrapper(width=80).wrap(text)
    failed = getattr(ti, f"{compiler.capitalize()}CompilationError")
    with pytest.raises(failed, match=r"(?s)line \d+, in wrong:.*x\[i\] = ti.missing\(x\[i\]\).*\^\^\^"):
        of_a_missing_function()(np.ones(3))


@pytest.mark.parametrize("name", ["taichi", "quadrants"])
def test_a_release_that_differs_is_left_alone(name: str) -> None:
    parts = {"kernel_impl": SimpleNamespace(textwrap=textwrap), "_func_base": SimpleNamespace(textwrap=textwrap)}
    other = SimpleNamespace(__name__=name, lang=SimpleNamespace(**parts))
    front_end.hasten(other)
    front_end.skip_discovery(SimpleNamespace())
    assert [vars(part) for part in vars(other.lang).values()] == [{"textwrap": textwrap}] * 2
    module, reader = READER[compiler]
    assert getattr(getattr(ti.lang, module), reader).__module__ == front_end.__name__
    assert runtime.initialised()
